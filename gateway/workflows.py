"""Workflows: the list, and one by its opaque id."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from sqlalchemy import RowMapping, select

from gateway.database import Database
from gateway.errors import NotFound
from gateway.models import Workflow, WorkflowAnswer, WorkflowList
from gateway.paging import cut, page_offset
from gateway.parameters import Page, WorkflowQuery
from gateway.tables import WORKFLOWS
from gateway.times import rfc3339

router = APIRouter(prefix="/v1", tags=["workflows"])


@router.get("/workflows")
def list_workflows(database: Database, query: Annotated[Page, Query()]) -> WorkflowList:
    """List workflows, the oldest first."""
    offset = page_offset(query.page_token, query.page_number, query.limit)
    statement = select(WORKFLOWS).order_by(WORKFLOWS.c.opened_ms, WORKFLOWS.c.workflow_id)
    found = database.execute(statement.offset(offset).limit(query.limit + 1)).mappings().all()
    rows, next_token = cut(found, offset, query.limit)
    return WorkflowList(
        workflows=[_workflow(row) for row in rows],
        count=len(rows),
        next_page_token=next_token,
    )


@router.get("/workflows:lookup")
def get_workflow(database: Database, query: Annotated[WorkflowQuery, Query()]) -> WorkflowAnswer:
    """Get one workflow. Its id is opaque, so it stands in the query, URL-encoded."""
    statement = select(WORKFLOWS).where(WORKFLOWS.c.workflow_id == query.workflow_id)
    row = database.execute(statement).mappings().first()
    if row is None:
        raise NotFound(f"no workflow {query.workflow_id!r} is known; /v1/workflows lists them")
    return WorkflowAnswer(workflow=_workflow(row))


def _workflow(row: RowMapping) -> Workflow:
    return Workflow(
        workflow_id=row["workflow_id"],
        scheduler_workflow_id="",
        name=row["name"],
        start_time=rfc3339(row["start_ms"]),
        end_time=rfc3339(row["end_ms"]),
    )
