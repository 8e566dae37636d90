"""Rows and offsets in one transaction: a batch counts if, and only if, nobody moved its partitions meanwhile."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import structlog
from sqlalchemy import Connection, Engine, Update, create_engine, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import DataError

from projections import metrics
from projections.merge import Documents, documents_of, write_documents
from projections.projectors import UPSERTS, rows_for
from projections.records import Record
from projections.tables import OFFSETS, PROBLEMS

PROJECTION = "main"
"""The name under which this set of tables keeps its offsets."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, order=True)
class Source:
    """One partition of one topic."""

    topic: str
    partition: int


@dataclass(frozen=True)
class Problem:
    """A record that can't be projected, and why."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: str
    reason: str


@dataclass(frozen=True)
class Batch:
    """What was read of one partition from `start` on. `next_offset` is one past its last record."""

    source: Source
    start: int
    records: tuple[Record | Problem, ...]

    @property
    def next_offset(self) -> int:
        return self.records[-1].offset + 1


@dataclass(frozen=True)
class Prepared:
    """Batches with what to write of them, ready for PostgreSQL: all that needs no database is done."""

    batches: tuple[Batch, ...]
    documents: Documents
    problems: tuple[Problem, ...]

    @property
    def records(self) -> Iterator[Record]:
        return (item for batch in self.batches for item in batch.records if isinstance(item, Record))


def prepare(batches: Iterable[Batch]) -> Prepared:
    """Make the rows of some batches. Runners take partitions in one order, so that none waits for another."""
    ordered = tuple(sorted(batches, key=lambda batch: batch.source))
    items = [item for batch in ordered for item in batch.records]
    rows = rows_for(*(item for item in items if isinstance(item, Record)))
    return Prepared(ordered, documents_of(rows, UPSERTS), tuple(item for item in items if isinstance(item, Problem)))


class Conflict(Exception):
    """Another runner moved this partition: its rows are in the tables already."""

    def __init__(self, source: Source) -> None:
        super().__init__(f"{source.topic}/{source.partition}")
        self.source = source


def engine_of(url: str) -> Engine:
    """An engine whose waits are bounded: 5 s to connect, 30 s for a statement.

    A commit does not wait for the disk: rows and offsets are lost together or not at all, and are then read again.
    """
    settings = "-c statement_timeout=30000 -c lock_timeout=20000 -c synchronous_commit=off"
    options = {"connect_timeout": 5, "options": settings}
    return create_engine(url, pool_size=2, max_overflow=0, pool_pre_ping=True, connect_args=options)


class Store:
    """The tables of one projection. Raises sqlalchemy's OperationalError while PostgreSQL is out of reach."""

    def __init__(self, engine: Engine, projection: str = PROJECTION) -> None:
        self._engine = engine
        self._projection = projection

    def offsets(self, beginnings: Mapping[Source, int]) -> dict[Source, int]:
        """The next offset of each partition; one that was never read starts at its given beginning."""
        with self._engine.begin() as connection:
            for source, beginning in sorted(beginnings.items()):
                row = {"topic": source.topic, "partition": source.partition, "next_offset": beginning}
                connection.execute(insert(OFFSETS).values(projection=self._projection, **row).on_conflict_do_nothing())
            query = select(OFFSETS.c.topic, OFFSETS.c.partition, OFFSETS.c.next_offset)
            rows = connection.execute(query.where(OFFSETS.c.projection == self._projection)).all()
        known = {Source(topic, partition): next_offset for topic, partition, next_offset in rows}
        return {source: known[source] for source in beginnings}

    def apply(self, prepared: Prepared) -> None:
        """Write all rows and move the offsets of their batches, or do neither. Raises Conflict."""
        with metrics.BATCH.time():
            self._apply(prepared)
        for batch in prepared.batches:
            metrics.APPLIED.labels(batch.source.topic).inc(len(batch.records))

    def note(self, places: Mapping[Source, int], lags: Mapping[Source, int]) -> None:
        """Write down that the runner lives, and how many records it has yet to read. Raises Conflict, as after a
        rebuild, where a partition no longer stands at the given place.
        """
        now = time.time_ns() // 1_000_000
        with self._engine.begin() as connection:
            for source, place in sorted(places.items()):
                change = self._row(source).where(OFFSETS.c.next_offset == place)
                if connection.execute(change.values(lag=lags[source], looked_ms=now)).rowcount != 1:
                    raise Conflict(source)

    def _apply(self, prepared: Prepared) -> None:
        try:
            with self._engine.begin() as connection:
                for batch in prepared.batches:
                    self._move(connection, batch)
                write_documents(connection, prepared.documents)
                for problem in prepared.problems:
                    _set_aside(connection, problem)
        except DataError as error:
            for smaller in _halves(prepared.batches, error):
                self._apply(prepare(smaller))

    def _move(self, connection: Connection, batch: Batch) -> None:
        change = self._row(batch.source).where(OFFSETS.c.next_offset == batch.start)
        values = {"next_offset": batch.next_offset, "record_ms": batch.records[-1].timestamp_ms}
        if connection.execute(change.values(**values)).rowcount != 1:
            raise Conflict(batch.source)

    def _row(self, source: Source) -> Update:
        return update(OFFSETS).where(
            OFFSETS.c.projection == self._projection,
            OFFSETS.c.topic == source.topic,
            OFFSETS.c.partition == source.partition,
        )


def _halves(batches: Sequence[Batch], error: DataError) -> Sequence[Sequence[Batch]]:
    """Cut down to the one record that PostgreSQL refuses, so that it stops nobody else; that one becomes a problem."""
    if len(batches) > 1:
        middle = len(batches) // 2
        return batches[:middle], batches[middle:]
    [batch] = batches
    if len(batch.records) > 1:
        middle = len(batch.records) // 2
        first = Batch(batch.source, batch.start, batch.records[:middle])
        return [first], [Batch(batch.source, first.next_offset, batch.records[middle:])]
    [record] = batch.records
    if isinstance(record, Problem):
        raise error
    problem = Problem(
        record.topic, record.partition, record.offset, record.timestamp_ms, record.event.event_id, str(error.orig)
    )
    return [[Batch(batch.source, batch.start, (problem,))]]


def _set_aside(connection: Connection, problem: Problem) -> None:
    log.error(
        "record set aside",
        topic=problem.topic,
        partition=problem.partition,
        offset=problem.offset,
        reason=problem.reason,
        next="the tables lack it until a rebuild with a reader that understands it",
    )
    metrics.PROBLEMS.labels(problem.topic).inc()
    values = {
        "topic": problem.topic,
        "partition": problem.partition,
        "offset": problem.offset,
        "record_ms": problem.timestamp_ms,
        "key": problem.key.replace("\x00", "\ufffd"),
        "reason": problem.reason.replace("\x00", "\ufffd"),
        "next": "the tables lack it until a rebuild with a reader that understands it",
    }
    connection.execute(insert(PROBLEMS).values(**values).on_conflict_do_nothing())
