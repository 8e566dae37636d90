"""Lines from Loki, by `query_range` of its HTTP API.

Asked for the oldest lines first, a page at a time; within a stream Loki keeps the order of lines that share a moment.
More lines than a page in one nanosecond can't be had from it: that is said, once for each such moment.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from threading import Event
from typing import Any

from streams.sources.http import Address, Asking
from streams.sources.lines import Answer, Batch, Cursor, SourceProblem, SourceState, Wanted, newest
from streams.sources.records import LATEST_NS, Fields, as_text, labels_of
from streams.sources.windows import NS, Entry, Page, Waits, Windows, cursor_of, lines_of

QUERY = "/loki/api/v1/query_range"
MOST_LINES = 1_000
MOST_BYTES = 32 << 20
# Loki refuses windows longer than its limit (30 days by default).
LONGEST_NS = 86_400_000 * NS
_LEAST_LINES = 8
_MATCHERS = re.compile(r"\{.+\}", re.DOTALL)


@dataclass(frozen=True)
class LokiFields(Fields):
    """Loki gives text and time by place, not by name."""

    message: str = ""
    timestamp: str = ""


class Loki:
    """Follows and queries one Loki. `selector` is a stream selector that all lines of jobs match, such as
    `{cluster="alps"}`."""

    def __init__(self, name: str, address: Address, selector: str, fields: Fields, waits: Waits) -> None:
        """Raises ValueError for what is no stream selector."""
        if not _MATCHERS.fullmatch(selector.strip()):
            raise ValueError(f'{selector!r} is no stream selector of Loki; expected such as {{cluster="alps"}}')
        self.name = f"loki:{name}"
        self._asking = Asking(address)
        self._selector = selector.strip()
        self._fields = fields
        self._waits = waits
        self._limit = MOST_LINES

    def follow(self, cursors: Mapping[str, Cursor], since_ms: int, stop: Event) -> Iterator[Batch]:
        """Give batches until told to stop; see LogSource."""
        yield from Windows(self.name, self, self._waits).follow(cursor_of(self.name, cursors), since_ms, stop)

    def page(self, low_ns: int, high_ns: int) -> Page:
        """The first records of a window. Raises SourceProblem."""
        high_ns = min(high_ns, low_ns + LONGEST_NS)
        entries = self._read(self._selector, low_ns, high_ns, self._limit, "forward")
        while entries is None:
            if self._limit <= _LEAST_LINES:
                raise SourceProblem(SourceState.BROKEN, f"{self.name}: {self._limit} lines are over {MOST_BYTES} bytes")
            self._limit = max(self._limit // 4, _LEAST_LINES)
            entries = self._read(self._selector, low_ns, high_ns, self._limit, "forward")
        full, self._limit = len(entries) >= self._limit, MOST_LINES
        if not full:
            return Page(entries, high_ns)
        last_ns = entries[-1].at_ns  # of this moment there may be more
        whole = [entry for entry in entries if entry.at_ns < last_ns]
        if whole:
            return Page(whole, last_ns)
        lost = f"{self.name}: more than {len(entries)} lines share the moment {last_ns} ns; the rest is not read"
        return Page(entries, last_ns + 1, lost)

    def query(self, wanted: Wanted, limit: int) -> Answer:
        """Return the newest lines of a job; see LogSource."""
        found: list[Entry] = []
        try:
            for field, values in ((self._fields.job_id, wanted.job_ids), (self._fields.filename, wanted.filenames)):
                if not field or not values:
                    continue
                expression = "|".join(re.escape(value) for value in values)
                selector = f"{self._selector[:-1].rstrip().rstrip(',')}, {field}=~{json.dumps(expression)}}}"
                found += self._read(selector, wanted.start_ms * NS, (wanted.end_ms + 1) * NS, limit, "backward") or []
        except SourceProblem as problem:
            return Answer((), str(problem))
        unique = list(dict.fromkeys(sorted(found, key=_moment)))
        return Answer(newest(lines_of(self.name, unique), limit))

    def sample(self, start_ms: int, end_ms: int, limit: int) -> Answer:
        """Return some of the newest lines; see LogSource."""
        try:
            found = self._read(self._selector, start_ms * NS, (end_ms + 1) * NS, limit, "backward") or []
        except SourceProblem as problem:
            return Answer((), str(problem))
        return Answer(newest(lines_of(self.name, found), limit))

    def close(self) -> None:
        """Let go of connections."""
        self._asking.close()

    def _read(self, selector: str, low_ns: int, high_ns: int, limit: int, direction: str) -> list[Entry] | None:
        """The records of a window sorted by time; None where the answer is too long."""
        parameters = {
            "query": selector,
            "start": str(low_ns),
            "end": str(high_ns),
            "limit": str(limit),
            "direction": direction,
        }
        answer = bytearray()
        with self._asking.answer(QUERY, parameters) as pieces:
            for piece in pieces:
                answer += piece
                if len(answer) > MOST_BYTES:
                    return None
        try:
            entries = [entry for stream in json.loads(answer)["data"]["result"] for entry in self._entries(stream)]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            shown = bytes(answer[:100]).decode("utf-8", "replace")
            raise SourceProblem(
                SourceState.BROKEN, f"{self.name} gives what is no answer of Loki: {shown!r}"
            ) from error
        return sorted(entries, key=_moment)

    def _entries(self, stream: Mapping[str, Any]) -> Iterator[Entry]:
        labels = labels_of(stream["stream"], self._fields)
        for at_ns, text, *_metadata in stream["values"]:
            moment = int(at_ns)
            if not 0 <= moment < LATEST_NS:
                raise ValueError(f"{moment} is no time")
            yield Entry(moment, as_text(text), labels)


def _moment(entry: Entry) -> int:
    return entry.at_ns
