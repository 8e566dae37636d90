"""Keeps few facts of many lines: progress at the job's interval, the first ones of a repeated fault.

What it remembers is lost with the process: after a restart it may let through what it would have held back, never the
other way round, and facts that are written twice have the same ids.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field

from schemas.identity import AttemptId
from schemas.vocabulary import Phase

MOST_OF_ORIGIN = 8
"""Facts of one signature from one node and rank at once."""
MOST_OF_SIGNATURE = 64
"""Facts of one signature of an attempt at once, from whatever node and rank."""
RENEWED_MS = 240_000
"""In this long as many facts again are kept, evenly spread: a fault that lasts is told every half minute, so that an
attempt that begins meanwhile hears of it."""
STEPS_AFTER_PHASE = 2
"""Steps that are kept at once after a phase was told: one may be printed late, by another rank; two show that the
attempt steps again."""
MOST_BURSTS = 20_000
"""Bursts that are remembered: node logs name any number of hosts, and nobody says which of them are over."""


@dataclass
class _Allowance:
    """Some facts at once, then as many again in each RENEWED_MS. A line that is not kept costs nothing."""

    each_ms: int
    """How long it takes until one more is allowed."""
    whole_ms: int
    """When all of them are allowed again."""

    def has(self, at_ms: int) -> bool:
        """Whether one more is allowed."""
        return self._is_long_before(at_ms) or self.whole_ms - at_ms <= RENEWED_MS - self.each_ms

    def take(self, at_ms: int) -> None:
        start_ms = at_ms if self._is_long_before(at_ms) else max(self.whole_ms, at_ms)
        self.whole_ms = start_ms + self.each_ms

    def _is_long_before(self, at_ms: int) -> bool:
        """Whether the time is that of another log, which begins far earlier: it is counted anew."""
        return self.whole_ms - at_ms > 2 * RENEWED_MS


def _allowed(most: int, at_ms: int) -> _Allowance:
    return _Allowance(RENEWED_MS // most, at_ms)


@dataclass
class _Burst:
    all: _Allowance
    of_origin: dict[tuple[str | None, int | None], _Allowance] = field(default_factory=dict)


class Throttle:
    """Decides which facts are kept. Times are those of the lines where they carry one, else of reading."""

    def __init__(self) -> None:
        self._progress_ms: dict[AttemptId, int] = {}
        self._due: dict[AttemptId, int] = {}
        self._bursts: OrderedDict[tuple[Hashable, str], _Burst] = OrderedDict()

    def keeps_progress(self, attempt: AttemptId, at_ms: int, interval_ms: int) -> bool:
        """Whether a step at this time is kept: the first of an attempt and after a phase, then one an interval."""
        last_ms, due = self._progress_ms.get(attempt), self._due.pop(attempt, 0)
        if due > 1:
            self._due[attempt] = due - 1
        if due == 0 and last_ms is not None and abs(at_ms - last_ms) < interval_ms:
            return False
        self._progress_ms[attempt] = at_ms
        return True

    def keeps_phase(self, attempt: AttemptId, phase: Phase, at_ms: int) -> bool:
        """Whether it is kept that the attempt does something else; then so are the next steps, which take it back."""
        kept = self.keeps_fault(attempt, phase, None, None, at_ms)
        if kept:
            self._due[attempt] = STEPS_AFTER_PHASE
        return kept

    def keeps_fault(self, of: Hashable, signature: str, node: str | None, rank: int | None, at_ms: int) -> bool:
        """Whether this line of a signature is kept: the first ones of each origin, then one now and again.

        `of` is whose lines these are: an attempt's, or a node's.
        """
        burst = self._bursts.get((of, signature))
        if burst is None:
            burst = self._bursts[of, signature] = _Burst(_allowed(MOST_OF_SIGNATURE, at_ms))
        self._bursts.move_to_end((of, signature))
        if len(self._bursts) > MOST_BURSTS:
            self._bursts.popitem(last=False)
        origin = burst.of_origin.get((node, rank)) or _allowed(MOST_OF_ORIGIN, at_ms)
        if not (origin.has(at_ms) and burst.all.has(at_ms)):
            return False
        burst.of_origin[node, rank] = origin
        origin.take(at_ms)
        burst.all.take(at_ms)
        return True

    def forget(self, kept: set[AttemptId]) -> None:
        """Forget all attempts but these."""
        self._progress_ms = {attempt: at for attempt, at in self._progress_ms.items() if attempt in kept}
        self._due = {attempt: due for attempt, due in self._due.items() if attempt in kept}
        self._bursts = OrderedDict((key, burst) for key, burst in self._bursts.items() if key[0] in kept)
