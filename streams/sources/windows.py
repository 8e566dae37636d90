"""Follows a log store that can only be asked for the lines of a time window.

Two looks at each window. The first comes `settle` after its end: soon, and late enough that lines which many
collectors send side by side are there and come in order. The second comes `delay` after it, when nothing more is
expected to arrive: if the window then holds other lines than those that were given, all of it is given again (the same
lines have the same identity). Only then the durable cursor moves past it. So all that arrives within `delay` is given,
and what is remembered of a window is a count and a sum, however many lines it held. Whoever takes the lines has to tell
the late ones from those given again (streams.watch.given).
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Event
from typing import Protocol

from streams.sources.lines import (
    RETRY_S,
    Batch,
    Cursor,
    Labels,
    SourceLine,
    SourceProblem,
    SourceState,
    digest,
    stream_of,
)

NS = 1_000_000
"""Nanoseconds in a millisecond."""
CHECKED_TOGETHER = 6
"""What was given within this part of the delay is looked at a second time together."""
MOST_WINDOWS = 1_000


@dataclass(frozen=True)
class Entry:
    """One record as a store gives it."""

    at_ns: int
    text: bytes
    labels: Labels


@dataclass(frozen=True)
class Page:
    """All records of a window up to `end_ns` (not with it), sorted by time. `lost` where not all could be had."""

    entries: Sequence[Entry]
    end_ns: int
    lost: str = ""


class Store(Protocol):
    """What a window is read from."""

    def page(self, low_ns: int, high_ns: int) -> Page:
        """Return the first records from `low_ns` on, before `high_ns`. Raises SourceProblem."""


@dataclass(frozen=True)
class Waits:
    """How long lines are waited for (see above), and the wait between two looks, in seconds."""

    settle_s: float
    delay_s: float
    poll_s: float


@dataclass
class _Given:
    """What the first look gave of a window."""

    low_ns: int
    high_ns: int
    count: int = 0
    total: int = 0

    def add(self, lines: Sequence[SourceLine]) -> None:
        self.count += len(lines)
        for line in lines:
            self.total ^= int(digest(line.source.encode(), line.identity.encode()), 16)


class Windows:
    """Reads one store window by window. Used by one thread."""

    def __init__(self, name: str, store: Store, waits: Waits) -> None:
        self._name = name
        self._store = store
        self._waits = waits
        self._fast_ns = 0
        self._given: deque[_Given] = deque()

    def follow(self, cursor: Cursor | None, since_ms: int, stop: Event) -> Iterator[Batch]:
        """Give batches until told to stop."""
        self._fast_ns = since_ms * NS if cursor is None else cursor.offset
        self._given.clear()
        tried = 0
        while not stop.is_set():
            try:
                for batch in self._look(time.time_ns()):
                    tried = 0
                    yield batch
                    if batch.caught_up:
                        stop.wait(self._waits.poll_s)
            except SourceProblem as problem:
                yield Batch((), (self._cursor(),), problem.state, str(problem))
                stop.wait(RETRY_S[min(tried, len(RETRY_S) - 1)])
                tried += 1

    def _look(self, now_ns: int) -> Iterator[Batch]:
        """The windows whose second look is due, then the next page of what is new."""
        settled_ns = now_ns - int(self._waits.delay_s * 1000) * NS
        while self._given and self._given[0].high_ns <= settled_ns:
            yield from self._again(self._given[0])
            self._given.popleft()
        high_ns = now_ns - int(self._waits.settle_s * 1000) * NS
        if self._fast_ns >= high_ns or len(self._given) >= MOST_WINDOWS:
            yield Batch((), (self._cursor(),), caught_up=True)
            return
        page = self._store.page(self._fast_ns, high_ns)
        lines = self._lines(page.entries)
        self._note(lines, page.end_ns, settled_ns)
        state = SourceState.BROKEN if page.lost else SourceState.FOLLOWED
        yield Batch(lines, (self._cursor(),), state, page.lost, caught_up=page.end_ns >= high_ns)

    def _note(self, lines: tuple[SourceLine, ...], end_ns: int, settled_ns: int) -> None:
        """Remember what was given up to `end_ns`, unless it is old enough that nothing more will come."""
        low_ns, self._fast_ns = self._fast_ns, end_ns
        if end_ns <= settled_ns and not self._given:
            return
        last = self._given[-1] if self._given else None
        if last is None or last.high_ns - last.low_ns >= self._waits.delay_s * 1000 * NS / CHECKED_TOGETHER:
            last = _Given(low_ns, low_ns)
            self._given.append(last)
        last.high_ns = end_ns
        last.add(lines)

    def _again(self, given: _Given) -> Iterator[Batch]:
        """Look at a window a second time; give all of it where it holds other lines than were given."""
        now = _Given(given.low_ns, given.high_ns)
        for lines in self._pages(given):
            now.add(lines)
        if (now.count, now.total) == (given.count, given.total):
            return
        for lines in self._pages(given):
            yield Batch(lines, (self._cursor(),))

    def _pages(self, given: _Given) -> Iterator[tuple[SourceLine, ...]]:
        low_ns = given.low_ns
        while low_ns < given.high_ns:
            page = self._store.page(low_ns, given.high_ns)
            low_ns = page.end_ns
            yield self._lines(page.entries)

    def _cursor(self) -> Cursor:
        return Cursor(self._name, "", 0, self._given[0].low_ns if self._given else self._fast_ns)

    def _lines(self, entries: Sequence[Entry]) -> tuple[SourceLine, ...]:
        return lines_of(self._name, entries)


def lines_of(name: str, entries: Sequence[Entry]) -> tuple[SourceLine, ...]:
    """Name the records of whole windows: the same records have the same names, in whatever pages they came.

    Places are counted in a stream's own time, because only within a stream lines come in order. Equal records of one
    moment are numbered.
    """
    at_ns = -1
    indices: Counter[str] = Counter()
    copies: Counter[tuple[str, str]] = Counter()
    lines = []
    for entry in entries:
        if entry.at_ns != at_ns:
            at_ns = entry.at_ns
            indices.clear()
            copies.clear()
        stream = stream_of(entry.labels)
        content = digest(entry.text)
        lines.append(
            SourceLine(
                text=entry.text,
                at_ms=at_ns // NS,
                labels=entry.labels,
                source=f"{name}/{stream}",
                epoch=0,
                offset=at_ns,
                index=indices[stream],
                identity=f"{at_ns}:{content}:{copies[stream, content]}",
                cursor=name,
                mark=at_ns,
            )
        )
        indices[stream] += 1
        copies[stream, content] += 1
    return tuple(lines)


def cursor_of(name: str, cursors: Mapping[str, Cursor]) -> Cursor | None:
    """The store's cursor among those that are known."""
    known = cursors.get(name)
    return None if known is None else replace(known, source=name)
