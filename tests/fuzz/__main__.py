"""`python -m tests.fuzz --lines N --seed S`: hostile input through watch and diagnose. Exits 1 on a violation."""

from __future__ import annotations

import argparse
import logging
import random
import time

import structlog

from tests.fuzz.run import run

LONG_LINE_MB = 100


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000), help="replays a run; else random")
    parser.add_argument("--only", type=int, help="play this round alone")
    parser.add_argument("--long-line", type=int, default=LONG_LINE_MB, metavar="MB", help="its length; 0: none")
    options = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    began = time.monotonic()

    def report(sentence: str) -> None:
        print(f"{time.monotonic() - began:7.1f} s  {sentence}", flush=True)

    report(f"seed {options.seed}, {options.lines:,} lines and one of {options.long_line} MB")
    outcome = run(options.lines, options.seed, report, only=options.only, long_line_mb=options.long_line)
    report(f"{outcome.lines:,} lines, {outcome.size / 1e6:,.0f} MB; memory grew by {outcome.growth_mb:.0f} MB")
    for way, worst in outcome.slowest.items():
        report(f"{way}: {outcome.events[way]:,} events; slowest file {worst:.2f} µs of CPU a byte")
    for violation in outcome.violations:
        report(f"VIOLATION {violation}")
    return 1 if outcome.violations else 0


if __name__ == "__main__":
    raise SystemExit(main())
