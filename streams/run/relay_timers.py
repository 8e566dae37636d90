"""Pending timers: which are due now, and when to look again. Pure; the caller has the clock.

Nothing of a partition is due before that partition was read to its stable end: a tombstone may still follow. A timer
that is due is due again, later and later, until its re-arm or its tombstone is read.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import count

from schemas.decisions import TimerSet

FIRST_REPEAT_MS = 2_000
LONGEST_REPEAT_MS = 30_000


@dataclass
class _Pending:
    timer: TimerSet
    partition: int
    next_ms: int
    repeat_ms: int = FIRST_REPEAT_MS


class Timers:
    """The timers of the partitions that this relay has."""

    def __init__(self) -> None:
        self._pending: dict[str, _Pending] = {}
        self._complete: dict[int, bool] = {}
        self._heap: list[tuple[int, int, str, _Pending]] = []
        self._ties = count()

    def __len__(self) -> int:
        return len(self._pending)

    @property
    def unread(self) -> int:
        """How many partitions have yet to be read to their stable end."""
        return list(self._complete.values()).count(False)

    def begin(self, partition: int) -> None:
        """The partition is ours and will be read from its beginning."""
        self.drop(partition)
        self._complete[partition] = False

    def drop(self, partition: int) -> None:
        """The partition is no longer ours."""
        self._complete.pop(partition, None)
        self._pending = {key: one for key, one in self._pending.items() if one.partition != partition}

    def read_to_end(self, partition: int) -> None:
        """The partition's stable end was read: from now on its timers fire."""
        if self._complete.get(partition) is not False:
            return
        self._complete[partition] = True
        for key, one in self._pending.items():
            if one.partition == partition:
                self._push(key, one)

    def take(self, partition: int, key: str, timer: TimerSet | None) -> None:
        """A timer was set, re-armed, or (None) withdrawn."""
        self._pending.pop(key, None)
        if timer is None:
            return
        one = self._pending[key] = _Pending(timer, partition, timer.due_ms)
        if self._complete.get(partition):
            self._push(key, one)

    def due(self, now_ms: int) -> list[TimerSet]:
        """Return what is due, and schedule its repetition."""
        fired = []
        while (next_ms := self.next_ms()) is not None and next_ms <= now_ms:
            _, _, key, one = heapq.heappop(self._heap)
            fired.append(one.timer)
            one.next_ms = now_ms + one.repeat_ms
            one.repeat_ms = min(2 * one.repeat_ms, LONGEST_REPEAT_MS)
            self._push(key, one)
        return fired

    def next_ms(self) -> int | None:
        """When something is due next."""
        while self._heap and self._pending.get(self._heap[0][2]) is not self._heap[0][3]:
            heapq.heappop(self._heap)  # it was re-armed or withdrawn since
        return self._heap[0][0] if self._heap else None

    def _push(self, key: str, one: _Pending) -> None:
        heapq.heappush(self._heap, (one.next_ms, next(self._ties), key, one))
