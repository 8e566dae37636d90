"""Which rank stopped printing before the others did, where all ranks print into one file.

Lines are looked at in samples, the end of each block: enough to know within a block when a rank was last heard, and
cheap on files of any size.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from streams.watch.whose.neighbours import last_stamp

SAMPLE_BYTES, LAST_BYTES = 8_192, 262_144
MOST_RANKS = 65_536
LEAST_RANKS = 3
LEAST_SILENCE_MS = 60_000
"""One rank must have been silent for so long while all others printed; their own last lines lie closer together."""

# As PyTorch, srun -l and mpirun put it before a line. What torchrun puts there (`[default3]:`), each node has.
_RANKS = re.compile(
    rb"(?m)^(?:(?:\s{0,4}\d{1,6}: )?(?:\[default\d{1,6}\]: ?)?\[rank(\d{1,6})\]"
    rb"|\s{0,4}(\d{1,6}): (?!\[default\d)|\[\d{1,6},(\d{1,6})\]<std)"
)


@dataclass
class Voices:
    """When each rank was last heard before the first of them complained."""

    heard_ms: dict[int, int] = field(default_factory=dict)
    _closed: bool = False

    def listen(self, data: bytes, stamp: Callable[[bytes], int | None], complained_at: int | None) -> None:
        """Take a sample of the next block; `complained_at`: where in it the first rank said that it waited in vain."""
        if self._closed:
            return
        self._closed = complained_at is not None
        if complained_at is None:
            sample = data[-SAMPLE_BYTES:]
            self._hear(sample[sample.find(b"\n") + 1 :], stamp)
            return
        for line in data[max(0, complained_at - LAST_BYTES) : complained_at].splitlines()[1:]:
            self._hear(line, stamp)

    def _hear(self, piece: bytes, stamp: Callable[[bytes], int | None]) -> None:
        ranks = {int(next(filter(None, groups))) for groups in _RANKS.findall(piece)}
        now_ms = last_stamp(piece, stamp) if ranks else None
        if now_ms is not None and len(self.heard_ms) < MOST_RANKS:
            self.heard_ms.update(dict.fromkeys(ranks, now_ms))

    def silent(self, complaining: Collection[int]) -> int | None:
        """The only rank that stopped long before all others, unless it complained itself."""
        if len(self.heard_ms) < LEAST_RANKS or not self._closed:
            return None
        (first_ms, rank), (next_ms, _), *rest = sorted((ms, rank) for rank, ms in self.heard_ms.items())
        gap_ms = next_ms - first_ms
        close = rest[-1][0] - next_ms <= gap_ms // 2
        return rank if gap_ms >= LEAST_SILENCE_MS and close and rank not in complaining else None
