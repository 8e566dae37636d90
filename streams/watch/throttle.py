"""Keeps few facts of many lines: progress at the job's interval, repeated faults in a burst.

What it remembers is lost with the process: after a restart it may let through what it would have held back, never the
other way round, and facts that are written twice have the same ids.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field

from schemas.identity import AttemptId

MOST_OF_ORIGIN = 8
"""Facts of one signature from one node and rank in a burst."""
MOST_OF_SIGNATURE = 64
"""Facts of one signature of an attempt in a burst, from whatever node and rank."""
BURST_MS = 60_000
"""A burst is over after this long without a line of the signature."""
MOST_BURSTS = 20_000
"""Bursts that are remembered: node logs name any number of hosts, and nobody says which of them are over."""


@dataclass
class _Burst:
    last_ms: int
    total: int = 0
    of_origin: dict[tuple[str | None, int | None], int] = field(default_factory=dict)


class Throttle:
    """Decides which facts are kept. Times are those of the lines where they carry one, else of reading."""

    def __init__(self) -> None:
        self._progress_ms: dict[AttemptId, int] = {}
        self._bursts: OrderedDict[tuple[Hashable, str], _Burst] = OrderedDict()

    def keeps_progress(self, attempt: AttemptId, at_ms: int, interval_ms: int) -> bool:
        """Whether a step at this time is kept: the first of an attempt, then one an interval."""
        last_ms = self._progress_ms.get(attempt)
        if last_ms is not None and abs(at_ms - last_ms) < interval_ms:
            return False
        self._progress_ms[attempt] = at_ms
        return True

    def keeps_fault(self, of: Hashable, signature: str, node: str | None, rank: int | None, at_ms: int) -> bool:
        """Whether this line of a signature is kept: the first ones of each origin, and not more than a burst.

        `of` is whose lines these are: an attempt's, or a node's.
        """
        burst = self._bursts.get((of, signature))
        if burst is None or abs(at_ms - burst.last_ms) > BURST_MS:
            burst = self._bursts[of, signature] = _Burst(at_ms)
        burst.last_ms = at_ms
        self._bursts.move_to_end((of, signature))
        if len(self._bursts) > MOST_BURSTS:
            self._bursts.popitem(last=False)
        seen = burst.of_origin.get((node, rank), 0)
        if seen >= MOST_OF_ORIGIN or burst.total >= MOST_OF_SIGNATURE:
            return False
        burst.of_origin[node, rank] = seen + 1
        burst.total += 1
        return True

    def forget(self, kept: set[AttemptId]) -> None:
        """Forget all attempts but these."""
        self._progress_ms = {attempt: at for attempt, at in self._progress_ms.items() if attempt in kept}
        self._bursts = OrderedDict((key, burst) for key, burst in self._bursts.items() if key[0] in kept)
