"""Attempts: the list, one by its identity, all of one scheduler job."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Path, Query
from sqlalchemy import Connection, RowMapping, Select, or_, select

from gateway.database import Database
from gateway.errors import BadRequest, NotFound
from gateway.models import Job, JobAnswer, JobList, JobStatus, NodeConstraints
from gateway.paging import cut, decimal_offset, page_offset
from gateway.parameters import AttemptQuery, JobId, JobsQuery, SchedulerIdQuery
from gateway.tables import ATTEMPTS
from gateway.times import rfc3339
from schemas.identity import JOB_ID
from schemas.vocabulary import FINAL_STATES, AttemptState

router = APIRouter(prefix="/v1", tags=["jobs"])

PENDING_STATES = frozenset(
    {AttemptState.PENDING, AttemptState.HELD, AttemptState.CONFIGURING, AttemptState.SPECIAL_EXIT}
)
RUNNING_STATES = frozenset({AttemptState.RUNNING, AttemptState.SUSPENDED, AttemptState.COMPLETING})
# Ends that nobody needs to reconcile: done, succeeded by another attempt, or a person's will.
SETTLED_STATES = frozenset({AttemptState.COMPLETED, AttemptState.REQUEUED, AttemptState.CANCELLED})

_OLDEST_FIRST = (ATTEMPTS.c.opened_ms, ATTEMPTS.c.heimdall_job_id)


@router.get("/jobs")
def list_jobs(database: Database, query: Annotated[JobsQuery, Query()]) -> JobList:
    """List attempts, the oldest first."""
    statement = select(ATTEMPTS)
    if query.workflow_ids:
        statement = statement.where(ATTEMPTS.c.workflow_id.in_(query.workflow_ids))
    if query.job_ids:
        statement = statement.where(ATTEMPTS.c.job_id.in_(query.job_ids))
    if query.jm_state is not None:
        statement = statement.where(or_(ATTEMPTS.c.jm_state == query.jm_state, ATTEMPTS.c.state == query.jm_state))
    if query.reconciliation_eligible_jobs:
        statement = statement.where(ATTEMPTS.c.state.not_in(sorted(SETTLED_STATES)))
    offset = page_offset(query.page_token, query.page_number, query.limit)
    return _page(database, statement, offset, query.limit)


@router.get("/jobs/by-scheduler-id/{schedulerJobId}")
def list_jobs_by_scheduler_id(
    database: Database,
    scheduler_job_id: Annotated[JobId, Path(alias="schedulerJobId")],
    query: Annotated[SchedulerIdQuery, Query()],
) -> JobList:
    """List all attempts of one scheduler job, the oldest first; also of earlier jobs that had the same id."""
    offset = decimal_offset("page", query.page) if query.page else 0
    return _page(database, select(ATTEMPTS).where(ATTEMPTS.c.job_id == scheduler_job_id), offset, query.limit)


@router.get("/jobs/{heimdallJobId}")
def get_job(
    database: Database,
    heimdall_job_id: Annotated[str, Path(alias="heimdallJobId")],
    query: Annotated[AttemptQuery, Query()],
) -> JobAnswer:
    """Get one attempt."""
    return JobAnswer(job=job_of(find_attempt(database, heimdall_job_id, use_heimdall_id=query.use_heimdall_id)))


def find_attempt(database: Connection, text: str, *, use_heimdall_id: bool) -> RowMapping:
    """The attempt that a path names; of several with one job id and index, the newest. Raises the API's errors."""
    statement = select(ATTEMPTS)
    if use_heimdall_id:
        try:
            identity = str(UUID(text))
        except ValueError as error:
            raise BadRequest(
                "heimdallJobId", text, "no UUID; leave useHeimdallId out to name it {jobId}-{attemptIndex}"
            ) from error
        statement = statement.where(ATTEMPTS.c.heimdall_job_id == identity)
    else:
        job_id, index = _job_and_index(text)
        statement = statement.where(ATTEMPTS.c.job_id == job_id, ATTEMPTS.c.attempt_index == index)
    found = database.execute(statement.order_by(*(column.desc() for column in _OLDEST_FIRST)).limit(1)).mappings()
    row = found.first()
    if row is None:
        raise NotFound(
            f"no attempt {text!r} is known; /v1/jobs/by-scheduler-id/{{schedulerJobId}} lists a job's attempts"
        )
    return row


def job_of(row: RowMapping) -> Job:
    """An attempt's row as the interface shows it."""
    exit_code, signal = _exit(row["exit_code"])
    return Job(
        workflow_id=row["workflow_id"],
        heimdall_job_id=row["heimdall_job_id"],
        job_run_id="" if row["raw_job_id"] is None else str(row["raw_job_id"]),
        job_id=row["job_id"],
        attempt_index=row["attempt_index"],
        nodes=row["nodes"],
        job_name=row["name"],
        state=job_status(row["state"]),
        jm_state=row["jm_state"],
        state_detail=row["state_detail"] or "",
        held=row["state"] == AttemptState.HELD,
        user=row["user_name"],
        partition=row["partition"],
        scheduler_system="slurm",
        scheduler_scope=row["cluster"],
        mode=row["mode"],
        mode_reason=row["aps_error"] or row["mode_reason"],
        submit_time=rfc3339(row["submit_time"] * 1000),
        start_time=rfc3339(row["start_ms"]),
        end_time=rfc3339(row["end_ms"]),
        exit_code=exit_code,
        exit_signal=signal,
        node_constraints=NodeConstraints(excluded_nodes=row["excluded_nodes"]),
        log_paths=row["log_paths"],
        **_training(row),
    )


def _training(row: RowMapping) -> dict[str, Any]:
    return {
        "first_step_time": rfc3339(row["first_step_ms"]),
        "last_step": row["last_step"],
        "last_step_time": rfc3339(row["last_step_ms"]),
        "total_steps": row["total_steps"],
        "last_checkpoint_step": row["last_checkpoint_step"],
        "last_checkpoint_time": rfc3339(row["last_checkpoint_ms"]),
        "loaded_checkpoint_step": row["loaded_checkpoint_step"],
        "blind": row["blind"],
        "closed": row["closed_ms"] is not None,
    }


def job_status(state: str) -> JobStatus:
    """The interface's three states for Slurm's many."""
    if state in FINAL_STATES:
        return JobStatus.STOPPED
    if state in RUNNING_STATES:
        return JobStatus.RUNNING
    return JobStatus.PENDING if state in PENDING_STATES else JobStatus.UNSPECIFIED


def _exit(status: int | None) -> tuple[int | None, int | None]:
    """Exit code and signal of a raw wait status."""
    return (None, None) if status is None else ((status >> 8) & 0xFF, status & 0x7F)


def _job_and_index(text: str) -> tuple[str, int]:
    job_id, dash, index = text.rpartition("-")
    well_formed = dash and JOB_ID.fullmatch(job_id) and index.isascii() and index.isdigit() and len(index) < 10
    if not well_formed:
        raise BadRequest(
            "heimdallJobId", text, "expected {jobId}-{attemptIndex}, such as 42-0; for a UUID add useHeimdallId=true"
        )
    return job_id, int(index)


def _page(database: Connection, statement: Select[Any], offset: int, limit: int) -> JobList:
    statement = statement.order_by(*_OLDEST_FIRST).offset(offset).limit(limit + 1)
    rows, next_token = cut(database.execute(statement).mappings().all(), offset, limit)
    return JobList(jobs=[job_of(row) for row in rows], count=len(rows), next_page_token=next_token)
