"""What all benchmarks share: sides that take turns, medians, and figures.

A machine that others use gives every time another speed. So two sides are never timed one after the other but in
turns (A B A B), the medians are compared, and CPU seconds stand beside wall time. The ratio is the figure to trust.
"""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Figure:
    """One line of the table. `ratio` is value over the value of `compared_to`; None where nothing compares.

    `target` is what `value` or `ratio` should be, in words; `met` whether it was here, this time.
    """

    name: str
    value: float
    unit: str
    compared_to: str
    ratio: float | None
    notes: str
    target: str = ""
    met: bool | None = None


@dataclass(frozen=True)
class Run:
    """One side's turn: seconds on the clock, and CPU seconds of this process."""

    wall_s: float
    cpu_s: float


def timed(work: Callable[[], object]) -> Run:
    """Do the work once and say what it took."""
    wall, cpu = time.perf_counter(), cpu_s()
    work()
    return Run(time.perf_counter() - wall, cpu_s() - cpu)


def cpu_s() -> float:
    """CPU seconds of this process so far, its threads and its ended children included."""
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    )


def in_turns(rounds: int, *sides: Callable[[], Run]) -> list[list[Run]]:
    """Give each side its turn, `rounds` times over; return the runs of each side."""
    runs: list[list[Run]] = [[] for _ in sides]
    for _ in range(rounds):
        for side, known in zip(sides, runs, strict=True):
            known.append(side())
    return runs


def paired(base: Sequence[Run], ours: Sequence[Run], of: Callable[[Run], float] = lambda run: run.cpu_s) -> float:
    """How fast we are beside the base (1: as fast), each turn against the one next to it; the median."""
    return statistics.median(of(other) / of(own) for other, own in zip(base, ours, strict=True))


def wall(runs: Sequence[Run]) -> float:
    """Median seconds on the clock."""
    return statistics.median(run.wall_s for run in runs)


def cpu(runs: Sequence[Run]) -> float:
    """Median CPU seconds."""
    return statistics.median(run.cpu_s for run in runs)


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` of the values lie (nearest rank)."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def peak_mb() -> float:
    """The most memory that this process has had resident, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def resident_mb(pid: int) -> tuple[float, float]:
    """Resident memory of a process in MB: RSS, and PSS, which counts shared pages once over all that share them."""
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:])
    return tuple(int(fields[name].split()[0]) / 1024 for name in ("Rss", "Pss"))  # type: ignore[return-value]


def process_cpu_s(pid: int) -> float:
    """CPU seconds of a live process so far, with its ended children."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(word) for word in words[11:15]) / 100
