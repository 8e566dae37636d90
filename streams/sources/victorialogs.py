"""Lines from VictoriaLogs, by its query endpoint.

Windows are read without a limit in the query: sorting to a limit there mixes lines of one moment, and these are in
order within their stream. A window that gives too much is left off and tried again shorter.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from threading import Event
from typing import Any

from streams.sources.http import Address, Asking
from streams.sources.lines import Answer, Batch, Cursor, SourceProblem, SourceState, Wanted, newest
from streams.sources.records import Fields, as_ns, as_text, labels_of, lookup
from streams.sources.windows import NS, Entry, Page, Waits, Windows, cursor_of, lines_of

QUERY = "/select/logsql/query"
MOST_LINES = 5_000
MOST_BYTES = 16 << 20
FIRST_SPAN_NS = 60_000 * NS
LONGEST_SPAN_NS = 86_400_000 * NS
_SHORTER = 4
# Windows are made so long that they hold about this part of what they may, and grow at most so fast.
_FILLED, _GROWTH = 2, 4


@dataclass(frozen=True)
class VictoriaLogsFields(Fields):
    """The store's own names for text and time."""

    message: str = "_msg"
    timestamp: str = "_time"


class VictoriaLogs:
    """Follows and queries one VictoriaLogs. `search` is a LogsQL filter that all lines of jobs match."""

    def __init__(self, name: str, address: Address, search: str, fields: Fields, waits: Waits) -> None:
        self.name = f"victorialogs:{name}"
        self._asking = Asking(address)
        self._search = search
        self._fields = fields
        self._waits = waits
        self._span_ns = FIRST_SPAN_NS

    def follow(self, cursors: Mapping[str, Cursor], since_ms: int, stop: Event) -> Iterator[Batch]:
        """Give batches until told to stop; see LogSource."""
        yield from Windows(self.name, self, self._waits).follow(cursor_of(self.name, cursors), since_ms, stop)

    def page(self, low_ns: int, high_ns: int) -> Page:
        """The records of the first part of a window that is not too much. Raises SourceProblem."""
        while True:
            end_ns = min(high_ns, low_ns + self._span_ns)
            entries, whole = self._read(self._search, low_ns, end_ns)
            if whole:
                if end_ns < high_ns:
                    wanted = self._span_ns * MOST_LINES // (_FILLED * max(len(entries), 1))
                    self._span_ns = min(max(wanted, 1), self._span_ns * _GROWTH, LONGEST_SPAN_NS)
                return Page(entries, end_ns)
            if end_ns - low_ns <= 1:
                lost = f"{self.name}: more than {len(entries)} lines share the moment {low_ns} ns; the rest is not read"
                return Page(entries, end_ns, lost)
            self._span_ns = max((end_ns - low_ns) // _SHORTER, 1)

    def query(self, wanted: Wanted, limit: int) -> Answer:
        """Return the newest lines of a job; see LogSource."""
        any_of = [
            f"{_quoted(field)}:in({','.join(map(_quoted, values))})"
            for field, values in ((self._fields.job_id, wanted.job_ids), (self._fields.filename, wanted.filenames))
            if field and values
        ]
        if not any_of:
            return Answer((), f"{self.name}: no job and no file to look for")
        return self._newest(f"({self._search}) ({' or '.join(any_of)})", wanted.start_ms, wanted.end_ms, limit)

    def sample(self, start_ms: int, end_ms: int, limit: int) -> Answer:
        """Return some of the newest lines; see LogSource."""
        return self._newest(self._search, start_ms, end_ms, limit)

    def close(self) -> None:
        """Let go of connections."""
        self._asking.close()

    def _newest(self, search: str, start_ms: int, end_ms: int, limit: int) -> Answer:
        try:
            entries, _whole = self._read(
                f"{search} | sort by (_time desc) limit {limit}", start_ms * NS, (end_ms + 1) * NS
            )
        except SourceProblem as problem:
            return Answer((), str(problem))
        return Answer(newest(lines_of(self.name, entries), limit))

    def _read(self, search: str, low_ns: int, end_ns: int) -> tuple[list[Entry], bool]:
        """The records of a window sorted by time, and whether these are all; lines of one moment in their order."""
        # the end of a window counts as within, in nanoseconds
        parameters = {"query": search, "start": str(low_ns), "end": str(end_ns - 1)}
        entries: list[Entry] = []
        pending, size = b"", 0
        with self._asking.answer(QUERY, parameters, post=True) as pieces:
            for piece in pieces:
                size += len(piece)
                *lines, pending = (pending + piece).split(b"\n")
                entries += [self._entry(line) for line in lines if line]
                if len(entries) > MOST_LINES or size > MOST_BYTES:
                    return sorted(entries[:MOST_LINES], key=_moment), False
        return sorted(entries + ([self._entry(pending)] if pending else []), key=_moment), True

    def _entry(self, line: bytes) -> Entry:
        try:
            document: Any = json.loads(line)
            at_ns = as_ns(lookup(document, self._fields.timestamp))
        except (ValueError, TypeError, RecursionError):
            at_ns = None
        if at_ns is None:
            shown = line[:100].decode("utf-8", "replace")
            raise SourceProblem(SourceState.BROKEN, f"{self.name} gives what is no record of VictoriaLogs: {shown!r}")
        text = lookup(document, self._fields.message)
        return Entry(at_ns, as_text("" if text is None else text), labels_of(document, self._fields))


def _moment(entry: Entry) -> int:
    return entry.at_ns


def _quoted(text: str) -> str:
    """A word of LogsQL."""
    return json.dumps(text)
