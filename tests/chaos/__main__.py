"""`python -m tests.chaos`: a chaos run of any size, with progress and a report. Exits 1 on a violation."""

from __future__ import annotations

import argparse
import random
import signal
import sys
import time
from pathlib import Path

from tests.chaos.run import Run
from tests.chaos.world import world


def main() -> int:
    options = _options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # nothing may stay behind
    began = time.monotonic()

    def report(sentence: str) -> None:
        print(f"{time.monotonic() - began:7.1f} s  {sentence}", flush=True)

    report(f"seed {options.seed}, {options.jobs} jobs")
    with world(report, keep=options.keep) as here:
        outcome = Run(here, options.seed, options.jobs, report).go()
    text = outcome.text()
    print(f"\n{text}", flush=True)
    if options.report is not None:
        options.report.write_text(f"{text}\n")
    return 1 if outcome.violations else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--jobs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000), help="replays a run; else random")
    parser.add_argument("--keep", action="store_true", help="leave the data folder (logs) for a look")
    parser.add_argument("--report", type=Path, help="also write the report to this file")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
