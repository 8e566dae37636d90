"""Tells a store's lines that came late from those that are only given again.

A window of a store is looked at twice (streams.sources.windows), and of one stream the decider takes only what is above
its mark. So a line that the second look alone shows counts behind what its stream gave before, and one that was given
is left out. Only what the durable cursor has not passed can be given again, and no more is remembered: after a restart
a line that came late is therefore known from one that was told only by its place, and it counts as told.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from streams.sources.lines import Cursor, SourceLine
from streams.watch.events import Line

MOST_LINES = 200_000
"""Lines that are remembered of one cursor; an older one that comes late keeps its place, and counts as told."""


@dataclass
class _Open:
    """What one cursor's lines were, from the mark `low` on."""

    low: int = 0
    marks: OrderedDict[tuple[str, str], int] = field(default_factory=OrderedDict)
    """Of each line by stream and identity."""
    newest: OrderedDict[str, tuple[int, Line]] = field(default_factory=OrderedDict)
    """The last line of each stream, with its mark."""

    def forget(self, low: int) -> None:
        """Nothing before this mark is given again."""
        self.low = max(self.low, low)
        while self.marks and next(iter(self.marks.values())) < self.low:
            self.marks.popitem(last=False)
        while self.newest and next(iter(self.newest.values()))[0] < self.low:
            self.newest.popitem(last=False)


class Given:
    """The lines of interest of one reader."""

    def __init__(self) -> None:
        self._open: dict[str, _Open] = {}

    def new(self, record: SourceLine, line: Line) -> Line | None:
        """The line, at the place at which it counts; None if it was given before."""
        known = self._open.setdefault(record.cursor, _Open())
        if record.mark < known.low:
            return line
        name = (line.source, line.identity)
        if name in known.marks:
            return None
        known.marks[name] = record.mark
        if len(known.marks) > MOST_LINES:
            known.forget(next(iter(known.marks.values())) + 1)
        mark, newest = known.newest.pop(line.source, (record.mark, None))
        if newest is not None and _place(line) <= _place(newest):
            line = replace(line, offset=newest.offset, index=newest.index + 1)
        known.newest[line.source] = max(mark, record.mark), line
        return line

    def forget(self, cursors: Sequence[Cursor]) -> None:
        """What is before these cursors is not given again."""
        for cursor in cursors:
            if cursor.source in self._open:
                self._open[cursor.source].forget(cursor.offset)


def _place(line: Line) -> tuple[int, int, int]:
    return line.epoch, line.offset, line.index
