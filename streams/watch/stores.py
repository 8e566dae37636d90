"""All log sources beside files: each followed in a thread of its own, told in the loop of watch."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import structlog

from recovery.metrics import counter, gauge
from schemas.bookkeeping import RecordParked, SourceRead
from schemas.decisions import JobView, OutputAsked
from schemas.identity import AttemptId, Position
from schemas.vocabulary import FINAL_STATES, AttemptState
from streams.sources.configured import Configured
from streams.sources.feed import Feed
from streams.sources.lines import Cursor, SourceState
from streams.watch.answers import StoreSaid
from streams.watch.events import LineFact
from streams.watch.store import StoreReader
from streams.watch.store_answers import Followed, StoreAnswers
from streams.watch.telling import Reading
from streams.watch.whose.labelled import Directory

log = structlog.get_logger(__name__)

# What ended just before watch started is still of interest.
BEFORE_MS = 60_000
# However long the oldest attempt has been running, no source is read from before this at first.
LONGEST_MS = 7 * 86_400_000

STORES = gauge("watch_stores", "Log sources beside files, by name and state.", "source", "state")
RECORDS = counter("watch_store_records", "Records read from log sources beside files.", "source")
STORE_WAITING = gauge("watch_store_waiting", "Lines of a log source that wait for news of their job.", "source")
UNLABELLED = counter("watch_store_unlabelled", "Looks at records with neither a job id nor a file.", "source")
STORE_NOT_PARKED = counter("watch_store_lines_not_parked", "Lines of nobody past the first ones of a job.", "source")


class Stores:
    """Give everything that `turn` gives to Kafka, and have it delivered, before `moved` is asked for."""

    def __init__(
        self,
        sources: Sequence[Configured],
        reading: Reading,
        positions: Mapping[str, SourceRead],
        views: Collection[JobView],
        now_ms: int,
    ) -> None:
        cursors = {name: Cursor(name, read.identity, read.epoch, read.offset) for name, read in positions.items()}
        since_ms = _since_ms(views, now_ms)
        self.sources = tuple(sources)
        self.readers = tuple(
            StoreReader(Feed(one.source, cursors, since_ms), one.cluster, reading) for one in self.sources
        )
        clusters = {one.cluster for one in self.sources}
        self._directories = {cluster: Directory.of(cluster, views) for cluster in clusters}
        self._running = _running(views)
        self._answers = StoreAnswers(self.sources, reading.skew_ms)
        self._version = -1
        self._told: dict[str, tuple[int, int]] = {name: (read.epoch, read.offset) for name, read in positions.items()}
        self._said: dict[str, str] = {}
        for one in self.sources:
            log.info("following a log source", source=one.source.name, cluster=one.cluster)

    @property
    def more(self) -> bool:
        """Whether there is more to read at once."""
        return any(reader.more for reader in self.readers)

    def turn(
        self, views: Collection[JobView], version: int, is_followed: Callable[[str], bool]
    ) -> Iterator[LineFact | RecordParked]:
        """Give what is new, without waiting. `version` tells whether the views are others than before."""
        if version != self._version:
            self._version = version
            self._directories = {cluster: Directory.of(cluster, views) for cluster in self._directories}
            self._running = _running(views)
            known = {attempt.attempt for view in views for attempt in view.attempts}
            for reader in self.readers:
                reader.forget(known)
        for reader in self.readers:
            yield from reader.turn(_now_ms, self._directories[reader.cluster], is_followed)
            self._say(reader)
            _count(reader)

    def moved(self, now_ms: int) -> list[SourceRead]:
        """How far sources were read, where that was not told yet."""
        read = [position for reader in self.readers for position in reader.positions(now_ms)]
        moved = [one for one in read if self._told.get(one.source) != (one.epoch, one.offset)]
        self._told |= {one.source: (one.epoch, one.offset) for one in moved}
        return moved

    def ask(self, asked: OutputAsked, position: Position, now_ms: int) -> bool:
        """Put a question to the stores; False where none can have an answer."""
        return self._answers.ask(asked, position, self._directories, now_ms)

    def answered(self, now_ms: int) -> Iterator[tuple[OutputAsked, Position, list[StoreSaid]]]:
        """The questions that the stores have answered, without waiting."""
        readers = {reader.name: reader for reader in self.readers}
        followed = {
            name: Followed(
                reader.heard_ms,
                {attempt: seen.at_ms for attempt, seen in reader.seen.items()},
                [attempt for attempt in self._running if attempt.cluster == reader.cluster],
            )
            for name, reader in readers.items()
        }
        for asked, position, said in self._answers.ready(self._directories, followed, now_ms):
            for one in said:
                if one.dead:
                    readers[one.source].dead[asked.attempt] = one.problem
            yield asked, position, said

    def close(self) -> None:
        """Stop asking and reading."""
        self._answers.close()
        for reader in self.readers:
            reader.close()

    def _say(self, reader: StoreReader) -> None:
        if reader.problem == self._said.get(reader.name, ""):
            return
        self._said[reader.name] = reader.problem
        if reader.problem:
            log.warning(
                "log source can't be read",
                source=reader.name,
                state=reader.state,
                problem=reader.problem,
                next="try again, with back-off",
            )
        else:
            log.info("log source is read", source=reader.name)


def _count(reader: StoreReader) -> None:
    for state in SourceState:
        STORES.labels(reader.name, state).set(reader.state is state)
    STORE_WAITING.labels(reader.name).set(reader.waiting)
    RECORDS.labels(reader.name).inc(reader.records_read)
    UNLABELLED.labels(reader.name).inc(reader.unlabelled)
    STORE_NOT_PARKED.labels(reader.name).inc(reader.not_parked)
    reader.records_read = reader.not_parked = reader.unlabelled = 0


def _running(views: Collection[JobView]) -> tuple[AttemptId, ...]:
    return tuple(
        attempt.attempt for view in views for attempt in view.attempts if attempt.state is AttemptState.RUNNING
    )


def _since_ms(views: Collection[JobView], now_ms: int) -> int:
    """Where to begin in a source that was never read: when the oldest attempt that still runs began."""
    starts = [
        attempt.start_ms
        for view in views
        for attempt in view.attempts
        if attempt.start_ms is not None and attempt.state not in FINAL_STATES
    ]
    return max(min(starts, default=now_ms) - BEFORE_MS, now_ms - LONGEST_MS)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
