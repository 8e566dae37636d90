"""Reading job output: a file to facts beside `wc -l`, and matching alone beside GNU grep with the same patterns.

All sides read the same warm files. The time is that of CPU seconds, ended children included, so one core's worth.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from datetime import UTC
from pathlib import Path

from bench import logs
from bench.ere import extended
from bench.harness import Figure, cpu, in_turns, paired, peak_mb, timed
from schemas.aps import Aps
from schemas.decisions import AttemptView, JobView
from schemas.identity import AttemptId
from schemas.vocabulary import AttemptState, Mode
from streams.watch.matching.examples import load_matcher
from streams.watch.matching.matcher import Matcher
from streams.watch.matching.packs import Packs, load_packs
from streams.watch.source import Source
from streams.watch.telling import Reading
from streams.watch.throttle import Throttle
from streams.watch.whose.claims import Claim, claims_of

MEGABYTES = 64
ROUNDS = 9
T0_MS = 1_785_578_400_000
BLOCK = 1 << 20


def figures() -> list[Figure]:
    packs = load_packs()
    matcher = load_matcher(packs)
    with tempfile.TemporaryDirectory(prefix="recovery-bench-") as name:
        folder = Path(name)
        patterns = folder / "patterns"
        patterns.write_text("\n".join(map(extended, expressions(packs))) + "\n")
        found = []
        for chatty in (True, False):
            log = folder / ("chatty.out" if chatty else "quiet.out")
            size_mb = logs.write(log, MEGABYTES, chatty=chatty) / 1e6
            found.append(_to_facts(matcher, log, size_mb))
            found.append(_matching(matcher, log, size_mb, patterns, chatty=chatty))
        return found


def expressions(packs: Packs) -> list[str]:
    """Every pattern that the matcher searches for."""
    parts = [part for known in packs.formats for part in (known.step, known.saved, known.loaded) if part is not None]
    patterns = [signature.pattern for signature in packs.signatures] + [part.pattern for part in parts]
    return [pattern.expression.decode() for pattern in patterns]


def _to_facts(matcher: Matcher, log: Path, size_mb: float) -> Figure:
    claim = _claim(log)
    facts: list[int] = []

    def read() -> None:
        source, now_ms, count = Source(str(log), Reading(matcher, Throttle(), UTC, 2_000, 60_000)), T0_MS, 0
        while True:
            now_ms += 100
            count += sum(1 for _ in source.turn(now_ms, claim))
            if not source.more:
                break
        if source.read_to[1] != log.stat().st_size:
            raise RuntimeError(f"read to {source.read_to}, not to the end")
        source.close()
        facts.append(count)

    ours, base = in_turns(ROUNDS, lambda: timed(read), lambda: timed(lambda: _run("wc", "-l", str(log))))
    rate = size_mb / cpu(ours)
    return Figure(
        f"file to fact, {log.stem}",
        rate,
        "MB/s of one core",
        "wc -l, which only counts the lines",
        paired(base, ours),
        f"{size_mb:.0f} MB, {facts[0]} facts after throttling; wc {size_mb / cpu(base):,.0f} MB/s;"
        f" peak {peak_mb():.0f} MB",
        ">= 200 MB/s",
        rate >= 200,
    )


def _matching(matcher: Matcher, log: Path, size_mb: float, patterns: Path, *, chatty: bool) -> Figure:
    counted: list[int] = []

    def scan() -> None:
        count, rest = 0, b""
        with log.open("rb", buffering=0) as file:
            while data := file.read(BLOCK):
                block, newline, rest_of = (rest + data).rpartition(b"\n")
                count += len(matcher.scan(block + newline, b"", 60_000))
                rest = rest_of
        counted.append(count)

    greps: list[int] = []

    def grep() -> None:
        greps.append(int(_run("grep", "-cE", "-f", str(patterns), str(log)) or 0))

    ours, base = in_turns(ROUNDS, lambda: timed(scan), lambda: timed(grep))
    ratio = paired(base, ours)
    return Figure(
        f"matching, {log.stem}",
        size_mb / cpu(ours),
        "MB/s of one core",
        "LC_ALL=C grep -cE -f of the same patterns",
        ratio,
        f"grep {size_mb / cpu(base):,.0f} MB/s and counts {greps[0]} lines; ours says which pattern and extracts,"
        f" {counted[0]} lines",
        "ratio >= 0.9" if chatty else "ratio > 1",
        ratio >= 0.9 if chatty else ratio > 1,
    )


def _run(*command: str) -> str:
    """Run a command; grep's exit code of 1 says that it found nothing."""
    done = subprocess.run(command, env=os.environ | {"LC_ALL": "C"}, capture_output=True, text=True, check=False)
    if done.returncode > 1:
        raise RuntimeError(f"{command[0]}: {done.stderr}")
    return done.stdout.split()[0] if done.stdout else ""


def _claim(log: Path) -> Claim:
    attempt = AttemptId("local", "7", T0_MS // 1000, 0)
    view = AttemptView(attempt, T0_MS // 1000, T0_MS, None, AttemptState.RUNNING, ("gpu-a001",), (str(log),))
    job = JobView("", "", "local", "7", 7, "train", Aps(), Mode.OBSERVE, (view,), False, False, T0_MS)
    return claims_of([job])[str(log)]
