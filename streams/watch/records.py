"""Finds what the records of a batch say: those of one stream are looked at together, as they stand in the file."""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from streams.sources.lines import Batch, Labels, SourceLine
from streams.watch.events import Line
from streams.watch.given import Given
from streams.watch.matching.candidates import Own
from streams.watch.matching.matcher import Found
from streams.watch.matching.surroundings import tail_of
from streams.watch.telling import Reading
from streams.watch.whose.stamps import names_zone, stamp_ms

MOST_STREAMS = 512
"""Streams whose last lines are remembered, for signatures that look at the lines before."""
MOST_IN_RECORD = 4_096
"""Lines of interest in one record, which a collector may have joined of many."""


OwnSearches = Callable[[Labels], Sequence[Own]]
"""What finds lines of the own format of whoever may have written under these labels."""


@dataclass(frozen=True)
class _Tail:
    """The last lines of a stream, and the record that they end with."""

    text: bytes
    cursor: str
    mark: int

    def is_before(self, record: SourceLine) -> bool:
        """Whether the record comes after these lines; else it is one of a window that is looked at again."""
        return record.cursor != self.cursor or record.mark > self.mark


@dataclass(frozen=True)
class Said:
    """A line of interest, and the record that it stands in."""

    record: SourceLine
    line: Line
    written_ms: int
    """When the line was written, as far as it tells whose it is."""


class Records:
    """Reads batches of one source, in their order."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._tails: OrderedDict[Labels, _Tail] = OrderedDict()
        self._given = Given()

    def said(self, batch: Batch, now_ms: int, own: OwnSearches = lambda _labels: ()) -> list[Said]:
        """The lines of interest that were not given before, in the order of the records."""
        said = [
            replace(one, line=line)
            for one in self._said(batch.lines, now_ms, own)
            if (line := self._given.new(one.record, one.line)) is not None
        ]
        self._given.forget(batch.cursors)
        return said

    def _said(self, records: Sequence[SourceLine], now_ms: int, own: OwnSearches) -> list[Said]:
        streams: dict[Labels, list[int]] = {}
        for number, record in enumerate(records):
            streams.setdefault(record.labels, []).append(number)
        found = [one for labels, numbers in streams.items() for one in self._of_stream(labels, numbers, records, own)]
        found.sort(key=lambda one: one[:2])
        counts: dict[int, int] = {}
        said = []
        for number, _start, what in found:
            count = counts[number] = counts.get(number, -1) + 1
            if count < MOST_IN_RECORD:
                line = self._line(records[number], what, count, now_ms)
                said.append(Said(records[number], line, self._written_ms(records[number], line)))
        return said

    def _of_stream(
        self, labels: Labels, numbers: Sequence[int], records: Sequence[SourceLine], own: OwnSearches
    ) -> list[tuple[int, int, Found]]:
        """Number of the record, place in the text and what was found, of one stream."""
        starts, position = [], 0
        for number in numbers:
            starts.append(position)
            position += len(records[number].text) + 1
        text = b"".join(records[number].text + b"\n" for number in numbers)
        found = self._reading.matcher.scan(text, self._before(labels, records[numbers[0]]), own=own(labels))
        self._remember(labels, text, records[numbers[-1]])
        return [(numbers[bisect_right(starts, one.start) - 1], one.start, one) for one in found]

    def _before(self, labels: Labels, first: SourceLine) -> bytes | None:
        """The stream's lines before this record; None where they are not known any more."""
        tail = self._tails.get(labels)
        if tail is None:
            return b""
        return tail.text if tail.is_before(first) else None

    def _remember(self, labels: Labels, text: bytes, last: SourceLine) -> None:
        tail = self._tails.get(labels)
        if tail is None or tail.is_before(last):
            self._tails[labels] = _Tail(tail_of(text), last.cursor, last.mark)
        self._tails.move_to_end(labels)
        if len(self._tails) > MOST_STREAMS:
            self._tails.popitem(last=False)

    def _line(self, record: SourceLine, found: Found, count: int, now_ms: int) -> Line:
        own_ms = stamp_ms(found.line, zone=self._reading.zone, near_ms=now_ms)
        return Line(
            path=record.labels.filename or record.source,
            epoch=record.epoch,
            offset=record.offset,
            line_no=0,
            line_ms=record.at_ms if own_ms is None or own_ms > record.at_ms + self._reading.skew_ms else own_ms,
            read_ms=now_ms,
            found=found,
            source=record.source,
            index=record.index * MOST_IN_RECORD + count,
            identity=f"{record.identity}:{count}",
        )

    def _written_ms(self, record: SourceLine, line: Line) -> int:
        """By the line itself where it can be believed, else by its record.

        A collector may ship late, and then the line knows better, if it names its zone. Without one it may be hours
        off: it counts only where both say the same but for the clocks.
        """
        own_ms = record.at_ms if line.line_ms is None else line.line_ms
        same = record.at_ms - own_ms <= self._reading.skew_ms
        return own_ms if same or names_zone(line.found.line) else record.at_ms
