"""Sends hostile input through watch and diagnose: nothing may raise, stall, or make memory grow."""

from __future__ import annotations

import faulthandler
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random

from bench.harness import cpu_s
from tests.fuzz.lines import Lines
from tests.fuzz.paths import Paths

MEGABYTE = 1 << 20
FLOOD_BYTES = MEGABYTE // 4
LINES_A_ROUND = 250
LEAST_S, S_PER_BYTE = 1.0, 20e-6
"""CPU seconds that one way may take for one file, and for each of its bytes."""
STALLED_S = 300
"""Wall-clock seconds of one round after which the run ends, and shows where it stands."""
MOST_GROWTH_MB = 320
"""How much memory may grow from the first tenth of the rounds to the end: RE2 keeps up to 8 MB a pattern."""
LONG_LINE_GROWTH_MB = 384
"""How much memory one line may take, however long it is: hyperscan tells of every place at which a match may end."""


@dataclass
class Outcome:
    """What a run found; `violations` name the round, which can be played again."""

    lines: int = 0
    size: int = 0
    events: Counter[str] = field(default_factory=Counter)
    slowest: dict[str, float] = field(default_factory=dict)
    """For each way the most CPU microseconds per byte, of files that are not tiny."""
    violations: list[str] = field(default_factory=list)
    growth_mb: float = 0


def run(
    lines: int, seed: int, report: Callable[[str], None], *, only: int | None = None, long_line_mb: int = 0
) -> Outcome:
    """Play rounds until there were so many lines; `only` this one.

    A line of `long_line_mb` comes first, and one for each piece of text that may be repeated; 0: neither.
    """
    outcome = Outcome()
    rounds = range(-(-lines // LINES_A_ROUND)) if only is None else range(only, only + 1)
    with tempfile.TemporaryDirectory(prefix="recovery-fuzz-") as name:
        paths = Paths(Path(name))
        _play(paths, outcome, "warm-up", Lines(f"{seed}/warm-up").file(min(LINES_A_ROUND, lines)), Random(seed))
        if long_line_mb:
            _long_line(paths, outcome, long_line_mb, seed)
            _floods(paths, outcome, seed)
        settled_mb, told_s = resident_mb(), time.monotonic()
        for number in rounds:
            made = Lines(f"{seed}/{number}")
            data = made.file(min(LINES_A_ROUND, lines))
            outcome.lines += min(LINES_A_ROUND, lines)
            _play(paths, outcome, f"round {number}", data, made.chance)
            if number == len(rounds) // 10:
                settled_mb = resident_mb()
            if time.monotonic() - told_s > 10:
                told_s = time.monotonic()
                report(f"{outcome.lines:,} lines, {outcome.size / 1e6:,.0f} MB, {resident_mb():.0f} MB resident")
        outcome.growth_mb = resident_mb() - settled_mb
        if outcome.growth_mb > MOST_GROWTH_MB:
            outcome.violations.append(f"memory grew by {outcome.growth_mb:.0f} MB after the first tenth")
    return outcome


def _play(paths: Paths, outcome: Outcome, name: str, data: bytes, chance: Random) -> None:
    outcome.size += len(data)
    for way, take in paths.each().items():
        _one(outcome, name, way, len(data), partial(take, data, chance))


def _one(outcome: Outcome, name: str, way: str, size: int, take: Callable[[], int]) -> None:
    faulthandler.dump_traceback_later(STALLED_S, exit=True)
    began = cpu_s()
    try:
        outcome.events[way] += take()
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
        outcome.violations.append(f"{name}, {way}: {type(error).__name__}: {str(error)[:300]}")
    finally:
        faulthandler.cancel_dump_traceback_later()
    took = cpu_s() - began
    if took > LEAST_S + S_PER_BYTE * size:
        outcome.violations.append(f"{name}, {way}: {took:.1f} CPU s for {size} bytes")
    if size > 20_000:
        outcome.slowest[way] = max(outcome.slowest.get(way, 0), took / size * 1e6)


def _long_line(paths: Paths, outcome: Outcome, megabytes: int, seed: int) -> None:
    """One line without an end, of many that packs know."""
    made = Lines(f"{seed}/long")
    piece = b" ".join(made.line() for _ in range(2_000)).replace(b"\n", b" ").replace(b"\r", b" ")[:MEGABYTE]
    size = paths.write_long(piece, megabytes * MEGABYTE // len(piece))
    del piece
    outcome.size += size
    before_mb = peak_mb()
    for way, take in paths.each_of_long().items():
        _one(outcome, "long line", way, size, take)
    grown_mb = peak_mb() - before_mb
    if grown_mb > LONG_LINE_GROWTH_MB:
        outcome.violations.append(f"a line of {megabytes} MB took {grown_mb:.0f} MB")


def _floods(paths: Paths, outcome: Outcome, seed: int) -> None:
    for number, line in enumerate(Lines(f"{seed}/floods").floods(FLOOD_BYTES)):
        outcome.size += paths.write_long(line, 1)
        for way, take in paths.each_of_long().items():
            _one(outcome, f"flood {number}", way, len(line), take)


def resident_mb() -> float:
    return _status("VmRSS")


def peak_mb() -> float:
    return _status("VmHWM")


def _status(name: str) -> float:
    """A figure of this process, in MB."""
    status = Path("/proc/self/status").read_text()
    return int(status.split(f"{name}:", 1)[1].split()[0]) / 1024
