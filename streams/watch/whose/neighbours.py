"""The timestamps around lines that carry none: when a line was written at the earliest and at the latest.

Computed for a whole block at once, and only when somebody asks: each part of the block is looked at once, however
many of its lines are of interest, and only a little way around each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

# How far to look before and after a line.
NEAR_BYTES, NEAR_LINES = 16_384, 50

Stamp = Callable[[bytes], int | None]


@dataclass(frozen=True)
class Neighbours:
    """The lines of interest of one block: `starts` ascending, `own` the time that each carries."""

    data: bytes
    starts: Sequence[int]
    own: Sequence[int | None]
    carried_ms: int | None
    """The last timestamp before the block, in the same epoch of the file."""
    stamp: Stamp

    @cached_property
    def after_ms(self) -> Sequence[int | None]:
        """For each line the last timestamp before it."""
        known: list[int | None] = []
        low, last = 0, self.carried_ms
        for start, own in zip(self.starts, self.own, strict=True):
            between = last_stamp(self.data[low:start], self.stamp)
            last = last if between is None else between
            known.append(last)
            low, last = start, last if own is None else own
        return known

    @cached_property
    def before_ms(self) -> Sequence[int | None]:
        """For each line the first timestamp after it."""
        known: list[int | None] = []
        high: int = len(self.data)
        following: int | None = None
        for start, own in zip(reversed(self.starts), reversed(self.own), strict=True):
            between = first_stamp(self.data[start:high], self.stamp)
            following = following if between is None else between
            known.append(following)
            high, following = start, following if own is None else own
        return known[::-1]

    @property
    def has_none(self) -> bool:
        """Whether no timestamp is near any of the lines, nor was before."""
        return self.after_ms[-1] is None and self.before_ms[0] is None


class Carried:
    """The last timestamp up to a place, looked for in the lines before it only when somebody asks: few do.

    A look at which the last lines were not there yet is as good as a timestamp; it is what there is after a restart of
    lines that carry none.
    """

    __slots__ = ("_absent_ms", "_before_ms", "_lines", "_stamp")

    def __init__(
        self, before_ms: int | None, lines: bytes = b"", stamp: Stamp | None = None, absent_ms: int | None = None
    ) -> None:
        self._before_ms, self._lines, self._stamp, self._absent_ms = before_ms, lines, stamp, absent_ms

    def after(self, data: bytes, stamp: Stamp, absent_ms: int | None = None) -> Carried:
        """What is carried past more lines."""
        lines = data if len(data) >= NEAR_BYTES else self._lines + data  # a block of a megabyte is not copied
        return Carried(self._before_ms, lines[-NEAR_BYTES:], stamp, absent_ms)

    @property
    def ms(self) -> int | None:
        """The timestamp; None where there was none yet."""
        if self._stamp is not None:
            found = last_stamp(self._lines, self._stamp)
            self._before_ms = _later(self._before_ms if found is None else found, self._absent_ms)
            self._lines, self._stamp = b"", None
        return self._before_ms


def _later(one: int | None, other: int | None) -> int | None:
    return max((moment for moment in (one, other) if moment is not None), default=None)


def last_stamp(data: bytes, stamp: Stamp) -> int | None:
    """The last timestamp in the last few lines."""
    lines = data[-NEAR_BYTES:].splitlines()[-NEAR_LINES:]
    return next((ms for line in reversed(lines) if (ms := stamp(line)) is not None), None)


def first_stamp(data: bytes, stamp: Stamp) -> int | None:
    """The first timestamp in the few lines after the first."""
    lines = data[:NEAR_BYTES].splitlines()[1:NEAR_LINES]
    return next((ms for line in lines if (ms := stamp(line)) is not None), None)
