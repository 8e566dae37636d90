"""Advice: the newest generation of each attempt, with the incident behind it and whether it came about."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from sqlalchemy import RowMapping, literal, select, tuple_

from gateway.database import Database
from gateway.models import Advice, AdviceList, DetectedIssue, Disposition, NodeConstraints, Reason, ReconciliationStatus
from gateway.paging import Cursor, fingerprint, read_token, write_token
from gateway.parameters import AdviceQuery
from gateway.tables import ADVICE
from gateway.times import clock, rfc3339

router = APIRouter(prefix="/v1", tags=["advice"])

_ORDER = (ADVICE.c.issued_ms, ADVICE.c.heimdall_job_id)


@router.get("/advice")
def list_advice(database: Database, query: Annotated[AdviceQuery, Query()]) -> AdviceList:
    """List Advice by time of issue. A generation issued meanwhile comes later in the list, never not at all."""
    mark = fingerprint("advice", query.only_active)
    statement = select(ADVICE).where(ADVICE.c.current)
    if query.only_active:
        statement = statement.where(ADVICE.c.disposition == "PENDING")
    if query.page:
        issued_ms, identity = read_token("page", query.page, mark, (int, str)).key
        statement = statement.where(tuple_(*_ORDER) > tuple_(literal(issued_ms), literal(identity)))
    rows = database.execute(statement.order_by(*_ORDER).limit(query.limit + 1)).mappings().all()
    page = rows[: query.limit]
    more = len(rows) > query.limit
    token = write_token(Cursor((page[-1]["issued_ms"], page[-1]["heimdall_job_id"])), mark) if more else ""
    return AdviceList(advice=[advice_of(row) for row in page], count=len(page), next_page_token=token)


def advice_of(row: RowMapping) -> Advice:
    """An Advice's row as the interface shows it."""
    settled = row["disposition"] != "PENDING"
    return Advice(
        heimdall_job_id=row["heimdall_job_id"],
        job_id=row["job_id"],
        attempt_index=row["attempt_index"],
        scheduler_scope=row["cluster"],
        workflow_id=row["workflow_id"],
        desired_state=row["desired_state"],
        node_constraints=NodeConstraints(excluded_nodes=row["exclude_nodes"]),
        detected_issues=_issues(row),
        generation=str(row["generation"]),
        reconciliation_status=ReconciliationStatus(
            observed_generation=str(row["generation"]) if settled else "0",
            disposition=Disposition(f"ADVICE_RECONCILIATION_DISPOSITION_{row['disposition']}"),
            reason=Reason(f"ADVICE_RECONCILIATION_REASON_{row['resolution']}"),
            detail=row["resolution_detail"],
        ),
        reason=row["reason"],
        explanation=row["explanation"],
        issued_at=clock(row["issued_ms"]),
        valid_until=rfc3339(row["valid_until_ms"]),
        resolved_at=rfc3339(row["resolved_ms"]),
        policy=row["policy"],
        logic=row["logic"],
    )


def _issues(row: RowMapping) -> list[DetectedIssue]:
    if row["kind"] is None and row["fault_class"] is None:
        return []
    return [
        DetectedIssue(
            incident_id=row["incident_id"],
            kind=row["kind"] or "",
            symptom=row["symptom"] or "",
            fault_class=row["fault_class"] or row["symptom_class"] or "",
            scope=row["scope"] or "",
            nodes=row["fault_nodes"] or [],
            signature=row["signature"] or "",
            lines_seen=row["lines_seen"],
            confidence=row["confidence"],
            provider=row["provider"] or "",
            explanation=row["cause"] or "",
            detected_at=rfc3339(row["detected_ms"]),
        )
    ]
