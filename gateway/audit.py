"""The audit trail: every fact and every decision, by filters, in pages both ways."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from sqlalchemy import ColumnElement, RowMapping, and_, literal, or_, select, tuple_

from gateway.database import Database
from gateway.errors import BadRequest
from gateway.evidence import lines_in, texts_of, with_texts
from gateway.models import AuditCursor, AuditEvent, AuditPage
from gateway.paging import Cursor, fingerprint, read_token, write_token
from gateway.parameters import AuditQuery
from gateway.tables import ATTEMPTS, AUDIT

router = APIRouter(prefix="/v1/audit", tags=["audit"])

_ORDER = (AUDIT.c.produced_us, AUDIT.c.stage, AUDIT.c.partition, AUDIT.c.offset)


@router.get("/events")
def list_events(database: Database, query: Annotated[AuditQuery, Query()]) -> AuditPage:
    """List audit events by the time of their record; a fact comes before what was decided on it."""
    _check(query)
    mark = fingerprint("audit", query.model_dump(exclude={"cursor", "limit"}))
    place = read_token("cursor", query.cursor, mark, (int, int, int, int)) if query.cursor else None
    backward = place is not None and place.backward
    ascending = query.sort_by.endswith(":asc") != backward
    statement = select(AUDIT).where(*_filters(query))
    if place is not None:
        here = tuple_(*(literal(part) for part in place.key))
        statement = statement.where(tuple_(*_ORDER) > here if ascending else tuple_(*_ORDER) < here)
    order = _ORDER if ascending else tuple(column.desc() for column in _ORDER)
    found = database.execute(statement.order_by(*order).limit(query.limit + 1)).mappings().all()
    rows = list(found[: query.limit])
    if backward:
        rows.reverse()
    texts = texts_of(database, [line for row in rows for line in lines_in(row["payload"])])
    cursor = _cursor(rows, mark, place, more=len(found) > query.limit)
    return AuditPage(items=[_event(row, texts) for row in rows], cursor=cursor)


def _check(query: AuditQuery) -> None:
    if query.heimdall_job_id is not None and query.job_id is not None:
        raise BadRequest("jobId", query.job_id, "heimdallJobId is given, too, and names an attempt by itself")
    if query.attempt_index is not None and query.job_id is None:
        raise BadRequest("attemptIndex", query.attempt_index, "it needs jobId; or name the attempt by heimdallJobId")


def _filters(query: AuditQuery) -> list[ColumnElement[bool]]:
    exact = {
        "job_id": query.job_id,
        "attempt_index": query.attempt_index,
        "type": query.event_type,
        "level": query.event_level,
        "producer": query.event_producer,
    }
    filters = [AUDIT.c[name] == value for name, value in exact.items() if value is not None]
    if query.heimdall_job_id is not None:
        filters.append(_of_attempt(query.heimdall_job_id))
    if query.min_event_produced_at is not None:
        filters.append(AUDIT.c.produced_us >= query.min_event_produced_at)
    if query.max_event_produced_at is not None:
        filters.append(AUDIT.c.produced_us <= query.max_event_produced_at)
    return filters


def _of_attempt(heimdall_job_id: str) -> ColumnElement[bool]:
    """Events that name the attempt, and the scheduler's looks at it, which the view resolves (only of its job)."""
    job_ids = select(ATTEMPTS.c.job_id).where(ATTEMPTS.c.heimdall_job_id == heimdall_job_id)
    look = and_(
        AUDIT.c.heimdall_job_id.is_(None),
        AUDIT.c.job_id == job_ids.scalar_subquery(),
        AUDIT.c.attempt_id == heimdall_job_id,
    )
    return or_(AUDIT.c.heimdall_job_id == heimdall_job_id, look)


def _cursor(rows: list[RowMapping], mark: str, place: Cursor | None, *, more: bool) -> AuditCursor:
    """The adjacent pages: there is one where we came from, and one ahead if more was found there."""
    if not rows:
        return AuditCursor(previous=None, next=None)
    backward = place is not None and place.backward
    before, after = (more, True) if backward else (place is not None, more)
    return AuditCursor(
        previous=write_token(Cursor(_key(rows[0]), backward=True), mark) if before else None,
        next=write_token(Cursor(_key(rows[-1])), mark) if after else None,
    )


def _key(row: RowMapping) -> tuple[int, ...]:
    return tuple(row[column.name] for column in _ORDER)


def _event(row: RowMapping, texts: dict[str, str]) -> AuditEvent:
    payload: dict[str, Any] = with_texts(row["payload"], texts)
    return AuditEvent(
        event_id=row["event_id"],
        heimdall_job_id=row["attempt_id"],
        scheduler_scope=row["cluster"],
        job_id=row["job_id"],
        attempt_index=row["attempt_index"],
        event_producer=row["producer"],
        event_type=row["type"],
        event_level=row["level"],
        event_produced_at=str(row["produced_us"]),
        cause=row["cause"],
        topic=row["topic"],
        partition=row["partition"],
        offset=str(row["offset"]),
        payload=payload,
    )
