"""What the processes' metrics say together: how fast recovery is, what is left undone. Pure; from Prometheus' text."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from prometheus_client.parser import text_string_to_metric_families

from recovery.metrics import FACTS_DECIDED_NAME, HIDDEN_NAME, INTENTS_NAME, LAG_NAME, PARKED_NAME, SINCE_LINE_NAME

MILESTONES = ("anomaly", "advice", "action", "convergence")


@dataclass(frozen=True)
class Lag:
    """How many records of a topic a consumer group has yet to read."""

    topic: str
    group: str
    records: int


@dataclass(frozen=True)
class Figures:
    """What one process, or several together, have measured. `buckets`: a milestone's counts by how long at most.

    `intents` and `hidden` (topics with records that nobody can read, and how many) are None where nobody knows.
    """

    lag: tuple[Lag, ...] = ()
    parked: int = 0
    intents: int | None = None
    decided: int = 0
    buckets: dict[str, dict[float, float]] = field(default_factory=dict)
    hidden: dict[str, int] | None = None

    def milestone(self, name: str) -> Milestone | None:
        """How long it took until this milestone; None where it never happened since the processes started."""
        buckets = sorted(self.buckets.get(name, {}).items())
        count = buckets[-1][1] if buckets else 0
        if not count:
            return None
        return Milestone(int(count), _bound(buckets, 0.5 * count), _bound(buckets, 0.99 * count))


@dataclass(frozen=True)
class Milestone:
    """How often, and within how many seconds half and 99 % of them came (the histogram's bounds, so at most)."""

    count: int
    median_s: float
    p99_s: float


def figures(text: str) -> Figures:
    """Read one process's metrics."""
    lag: list[Lag] = []
    parked = decided = 0
    intents: int | None = None
    buckets: dict[str, dict[float, float]] = {}
    hidden: dict[str, int] | None = None
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name == LAG_NAME:
                lag.append(Lag(sample.labels["topic"], sample.labels["group"], int(sample.value)))
            elif sample.name == PARKED_NAME:
                parked += int(sample.value)
            elif sample.name == FACTS_DECIDED_NAME:
                decided += int(sample.value)
            elif sample.name == INTENTS_NAME:
                intents = int(sample.value)
            elif sample.name == HIDDEN_NAME:
                hidden = (hidden or {}) | ({sample.labels["topic"]: int(sample.value)} if sample.value else {})
            elif sample.name == f"{SINCE_LINE_NAME}_bucket":
                bounds = buckets.setdefault(sample.labels["milestone"], {})
                bounds[float(sample.labels["le"])] = sample.value
    return Figures(tuple(lag), parked, intents, decided, buckets, hidden)


def together(several: Iterable[Figures]) -> Figures:
    """The sum of what several processes say."""
    lag: list[Lag] = []
    parked = decided = 0
    intents: int | None = None
    buckets: dict[str, Counter[float]] = {}
    hidden: dict[str, int] | None = None
    for one in several:
        lag += one.lag
        parked += one.parked
        decided += one.decided
        if one.intents is not None:
            intents = (intents or 0) + one.intents
        if one.hidden is not None:
            hidden = (hidden or {}) | one.hidden  # each that looks sees the same
        for name, bounds in one.buckets.items():
            buckets.setdefault(name, Counter()).update(bounds)
    distributions: dict[str, dict[float, float]] = {name: dict(bounds) for name, bounds in buckets.items()}
    return Figures(tuple(lag), parked, intents, decided, distributions, hidden)


def _bound(buckets: list[tuple[float, float]], rank: float) -> float:
    return next((bound for bound, count in buckets if count >= rank), math.inf)
