"""Keeps few facts of many lines: progress at the job's interval, the first ones of a repeated fault.

What it remembers is lost with the process: after a restart it may let through what it would have held back, never the
other way round, and facts that are written twice have the same ids.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field

from schemas.facts import REMEMBERED_STEPS
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

    most: int
    whole_ms: int
    """When all of them are allowed again."""
    read_ms: int
    """Since this time of reading it was counted anew so many times."""
    anew: int = 0

    def has(self, at_ms: int, read_ms: int) -> bool:
        """Whether one more is allowed."""
        return self._is_of_another_log(at_ms, read_ms) or self.whole_ms - at_ms <= RENEWED_MS - self._each_ms

    def take(self, at_ms: int, read_ms: int) -> None:
        start_ms = max(self.whole_ms, at_ms)
        if self._is_of_another_log(at_ms, read_ms):
            start_ms = at_ms
            if self._may_renew(read_ms):
                self.read_ms, self.anew = read_ms, 0
            self.anew += 1
        self.whole_ms = start_ms + self._each_ms

    @property
    def _each_ms(self) -> int:
        """How long it takes until one more is allowed."""
        return RENEWED_MS // self.most

    def _is_of_another_log(self, at_ms: int, read_ms: int) -> bool:
        """Whether the time is that of another log, which begins far earlier: it is counted anew.

        Not any number of times while little time passes: the lines of one log may have two clocks.
        """
        return self.whole_ms - at_ms > 2 * RENEWED_MS and (self.anew < self.most or self._may_renew(read_ms))

    def _may_renew(self, read_ms: int) -> bool:
        return read_ms - self.read_ms >= RENEWED_MS


@dataclass
class _Burst:
    all: _Allowance
    of_origin: dict[tuple[str | None, int | None], _Allowance] = field(default_factory=dict)


@dataclass
class _Steps:
    """The steps of an attempt: one an interval is kept, and another one if that is always the same."""

    at_ms: int
    numbers: tuple[int, ...]
    """The last different ones that were kept, as many as the hang detector remembers."""
    anew_ms: int | None = None
    """The time of reading at which the interval was counted anew last, from an earlier time."""
    other_due: bool = False
    """The step of this interval was kept before: a program that counts anew in each epoch may print it each time."""

    def keeps(self, step: int, at_ms: int, read_ms: int, interval_ms: int) -> bool:
        """Whether this step is kept."""
        earlier = at_ms <= self.at_ms - interval_ms
        if at_ms >= self.at_ms + interval_ms or (earlier and self._may_renew(read_ms, interval_ms)):
            self.anew_ms = read_ms if earlier else self.anew_ms
            self.take(step, at_ms)
            return True
        if self.other_due and step not in self.numbers:
            self.take(step, self.at_ms)
            return True
        return False

    def take(self, step: int, at_ms: int) -> None:
        self.at_ms, self.other_due = at_ms, step in self.numbers
        self.numbers = (*(number for number in self.numbers if number != step), step)[-REMEMBERED_STEPS:]

    def _may_renew(self, read_ms: int, interval_ms: int) -> bool:
        return self.anew_ms is None or read_ms - self.anew_ms >= interval_ms


class Throttle:
    """Decides which facts are kept. Times are those of the lines where they carry one, else of reading.

    A backlog is thinned by its own times. That of reading bounds how often these may go back.
    """

    def __init__(self) -> None:
        self._steps: dict[AttemptId, _Steps] = {}
        self._due: dict[AttemptId, int] = {}
        self._bursts: OrderedDict[tuple[Hashable, str], _Burst] = OrderedDict()

    def keeps_progress(self, attempt: AttemptId, step: int, at_ms: int, read_ms: int, interval_ms: int) -> bool:
        """Whether a step at this time is kept: the first of an attempt and after a phase, then one an interval."""
        known, due = self._steps.get(attempt), self._due.pop(attempt, 0)
        if due > 1:
            self._due[attempt] = due - 1
        if known is None:
            self._steps[attempt] = _Steps(at_ms, (step,))
            return True
        if due:
            known.take(step, at_ms)
            return True
        return known.keeps(step, at_ms, read_ms, interval_ms)

    def keeps_phase(self, attempt: AttemptId, phase: Phase, at_ms: int, read_ms: int) -> bool:
        """Whether it is kept that the attempt does something else; then so are the next steps, which take it back."""
        kept = self.keeps_fault(attempt, phase, None, None, at_ms, read_ms)
        if kept:
            self._due[attempt] = STEPS_AFTER_PHASE
        return kept

    def keeps_fault(
        self, of: Hashable, signature: str, node: str | None, rank: int | None, at_ms: int, read_ms: int
    ) -> bool:
        """Whether this line of a signature is kept: the first ones of each origin, then one now and again.

        `of` is whose lines these are: an attempt's, or a node's.
        """
        burst = self._bursts.get((of, signature))
        if burst is None:
            burst = self._bursts[of, signature] = _Burst(_Allowance(MOST_OF_SIGNATURE, at_ms, read_ms))
        self._bursts.move_to_end((of, signature))
        if len(self._bursts) > MOST_BURSTS:
            self._bursts.popitem(last=False)
        origin = burst.of_origin.get((node, rank)) or _Allowance(MOST_OF_ORIGIN, at_ms, read_ms)
        if not (origin.has(at_ms, read_ms) and burst.all.has(at_ms, read_ms)):
            return False
        burst.of_origin[node, rank] = origin
        origin.take(at_ms, read_ms)
        burst.all.take(at_ms, read_ms)
        return True

    def forget(self, kept: set[AttemptId]) -> None:
        """Forget all attempts but these."""
        self._steps = {attempt: steps for attempt, steps in self._steps.items() if attempt in kept}
        self._due = {attempt: due for attempt, due in self._due.items() if attempt in kept}
        self._bursts = OrderedDict((key, burst) for key, burst in self._bursts.items() if key[0] in kept)
