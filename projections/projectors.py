"""All projectors together: the rows of records, and the order in which tables are written."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from projections import advice, attempts, audit, timeline
from projections.merge import Row, Upsert
from projections.records import Record

Projector = Callable[[Record], Iterator[Row]]

PROJECTORS: tuple[Projector, ...] = (attempts.rows_for, advice.rows_for, timeline.rows_for, audit.rows_for)
UPSERTS: tuple[Upsert, ...] = (*attempts.UPSERTS, *advice.UPSERTS, *timeline.UPSERTS, *audit.UPSERTS)


def rows_for(*records: Record) -> Iterator[Row]:
    """Every row that the records add to or change in the tables; of one table in the records' order.

    One projector after the other: to take turns at each record costs a third more.
    """
    for projector in PROJECTORS:
        for record in records:
            yield from projector(record)
