"""How long recovery takes, as the events themselves tell: from an incident's first line to each milestone.

Measured here because nobody else reads both the journal and the decisions. History that is read again, after a restart
or a rebuild, counts for nothing: only what was recorded moments ago.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import TypeVar

from projections import metrics
from projections.records import Record
from schemas.decisions import AdviceIssued, AdviceResolved, AnomalyDetected
from schemas.facts import ActionIntended
from schemas.vocabulary import Disposition

FRESH_MS = 120_000
MOST_OPEN = 5_000
"""Incidents and Advice that are remembered; the oldest are forgotten."""

Key = TypeVar("Key")
Observe = Callable[[str, float], None]


def observe(milestone: str, seconds: float) -> None:
    """Count a milestone in the metrics of this process."""
    metrics.SINCE_LINE.labels(milestone).observe(seconds)


class Latencies:
    """Follows incidents. Each milestone of one counts once, in the order in which this process read the events."""

    def __init__(self, say: Observe = observe) -> None:
        self._say = say
        self._incidents: OrderedDict[str, int] = OrderedDict()
        self._advice: OrderedDict[tuple[str, int], int] = OrderedDict()
        self._acted: OrderedDict[tuple[str, int], int] = OrderedDict()
        self._converged: OrderedDict[tuple[str, int], int] = OrderedDict()

    def take(self, records: Iterable[Record], now_ms: int) -> None:
        """Take in what was applied to the tables."""
        for record in records:
            if now_ms - record.timestamp_ms <= FRESH_MS:
                self._take(record)

    def _take(self, record: Record) -> None:
        event = record.event
        if isinstance(event, AnomalyDetected):
            line_ms = None if event.evidence is None else event.evidence.line_ms
            if _first(self._incidents, event.incident_id, event.decided_ms if line_ms is None else line_ms):
                self._milestone("anomaly", event.decided_ms, line_ms)
        elif isinstance(event, AdviceIssued):
            key = (event.attempt.key, event.advice.generation)
            began_ms = self._incidents.get(event.advice.incident_id)
            if began_ms is not None and _first(self._advice, key, began_ms):
                self._milestone("advice", event.decided_ms, began_ms)
        elif isinstance(event, ActionIntended):
            key = (event.attempt.key, event.generation)
            if key in self._advice and _first(self._acted, key, event.intended_ms):
                self._milestone("action", event.intended_ms, self._advice[key])
        elif isinstance(event, AdviceResolved) and event.disposition is Disposition.CONVERGED:
            key = (event.attempt.key, event.generation)
            if key in self._advice and _first(self._converged, key, event.decided_ms):
                self._milestone("convergence", event.decided_ms, self._advice[key])

    def _milestone(self, name: str, at_ms: int, began_ms: int | None) -> None:
        """Clocks of nodes may be ahead of ours: less than nothing counts as nothing."""
        if began_ms is not None:
            self._say(name, max(0, at_ms - began_ms) / 1000)


def _first(known: OrderedDict[Key, int], key: Key, value: int) -> bool:
    """Remember `value` unless the key is known; whether it was new."""
    if key in known:
        return False
    known[key] = value
    if len(known) > MOST_OPEN:
        known.popitem(last=False)
    return True
