"""All projectors together: the rows of one record, and the order in which tables are written."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from projections import advice, attempts, audit, timeline
from projections.merge import Row, Upsert
from projections.records import Record

Projector = Callable[[Record], Iterator[Row]]

PROJECTORS: tuple[Projector, ...] = (attempts.rows_for, advice.rows_for, timeline.rows_for, audit.rows_for)
UPSERTS: tuple[Upsert, ...] = (*attempts.UPSERTS, *advice.UPSERTS, *timeline.UPSERTS, *audit.UPSERTS)


def rows_for(record: Record) -> Iterator[Row]:
    """Every row that one record adds to or changes in the tables."""
    for projector in PROJECTORS:
        yield from projector(record)
