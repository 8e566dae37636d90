"""An attempt's story as rows: what is known of it, what happened to it, what was advised, and who came after it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, RowMapping, and_, or_, select

from gateway.evidence import lines_in
from gateway.tables import ADVICE, ATTEMPTS, TIMELINE

LONGEST = 5000
"""Entries read of one attempt; a story longer than this shows its beginning."""

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Entry:
    """One entry of a timeline, as its row has it."""

    event_id: str
    attempt_index: int | None
    at_ms: int
    kind: str
    title: str
    detail: str
    cause: str
    times: Mapping[str, int | None]
    payload: Row

    @property
    def evidence(self) -> tuple[Row, ...]:
        """The lines that the event names, without their texts."""
        return tuple(lines_in(self.payload))


@dataclass(frozen=True)
class Story:
    """An attempt, its entries in the order of time, its Advice by generation, and the attempts after it."""

    attempt: Row
    entries: tuple[Entry, ...]
    advice: tuple[Row, ...]
    successor: Row | None
    successor_entries: tuple[Entry, ...]
    newest: Row


def load_story(database: Connection, attempt: RowMapping) -> Story:
    """Read the story of an attempt."""
    later = _later(database, attempt)
    successor = next((row for row in later if row["attempt_index"] == attempt["attempt_index"] + 1), None)
    own = ADVICE.c.heimdall_job_id == attempt["heimdall_job_id"]
    advice = database.execute(select(ADVICE).where(own).order_by(ADVICE.c.generation)).mappings().all()
    return Story(
        attempt=dict(attempt),
        entries=_entries(database, attempt, with_job=True),
        advice=tuple(dict(row) for row in advice),
        successor=None if successor is None else dict(successor),
        successor_entries=() if successor is None else _entries(database, successor, with_job=False),
        newest=dict(later[-1] if later else attempt),
    )


def _later(database: Connection, attempt: RowMapping) -> list[RowMapping]:
    same_job = and_(*(ATTEMPTS.c[name] == attempt[name] for name in ("cluster", "job_id", "incarnation")))
    statement = select(ATTEMPTS).where(same_job, ATTEMPTS.c.attempt_index > attempt["attempt_index"])
    return list(database.execute(statement.order_by(ATTEMPTS.c.attempt_index)).mappings())


def _entries(database: Connection, attempt: RowMapping, *, with_job: bool) -> tuple[Entry, ...]:
    """Entries of the attempt, and those of its job that name no attempt."""
    of_attempt = TIMELINE.c.heimdall_job_id == attempt["heimdall_job_id"]
    of_job = and_(
        TIMELINE.c.heimdall_job_id.is_(None),
        TIMELINE.c.cluster == attempt["cluster"],
        TIMELINE.c.job_id == attempt["job_id"],
    )
    statement = select(TIMELINE).where(or_(of_attempt, of_job) if with_job else of_attempt)
    order = (TIMELINE.c.at_ms, TIMELINE.c.stage, TIMELINE.c.partition, TIMELINE.c.offset)
    rows = database.execute(statement.order_by(*order).limit(LONGEST)).mappings()
    return tuple(
        Entry(
            event_id=row["event_id"],
            attempt_index=row["attempt_index"],
            at_ms=row["at_ms"],
            kind=row["kind"],
            title=row["title"],
            detail=row["detail"],
            cause=row["cause"],
            times=row["times"],
            payload=row["payload"],
        )
        for row in rows
    )
