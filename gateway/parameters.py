"""Query parameters. An unknown one is refused: a filter that is misspelt must not answer with everything."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from gateway.paging import DEFAULT_LIMIT, LARGEST_AUDIT_LIMIT, LARGEST_LIMIT
from schemas.identity import JOB_ID
from schemas.vocabulary import AttemptState


def _job_id(value: str) -> str:
    if not JOB_ID.fullmatch(value):
        raise ValueError("must be 123, 123_4 (array task) or 200+1 (heterogeneous; write the + as %2B in a query)")
    return value


def _state(value: str) -> str:
    words = sorted(AttemptState)
    if value not in words:
        raise ValueError(f"must be one of {', '.join(words)}")
    return value


def _readable(value: str) -> str:
    if "\x00" in value:
        raise ValueError("must not hold a NUL character")
    return value


JobId = Annotated[str, AfterValidator(_job_id)]
Word = Annotated[str, AfterValidator(_readable)]
Limit = Annotated[int, Field(ge=1, le=LARGEST_LIMIT)]
AuditLimit = Annotated[int, Field(ge=1, le=LARGEST_AUDIT_LIMIT)]
Micros = Annotated[int, Field(ge=0, lt=2**63, json_schema_extra={"type": "string", "format": "int64"})]


class Parameters(BaseModel):
    """The query of one operation."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True)


class Page(Parameters):
    """A page by offset: `pageToken` from the page before, or `pageNumber` from 1; not both."""

    page_token: Annotated[str | None, Field(description="offset, from nextPageToken of the page before")] = None
    page_number: Annotated[int | None, Field(ge=1, le=10**9, description="one-based; page N starts at (N-1)*limit")] = (
        None
    )
    limit: Limit = DEFAULT_LIMIT


class JobsQuery(Page):
    """Which attempts to list."""

    workflow_ids: list[Word] = []
    job_ids: list[JobId] = []
    jm_state: Annotated[
        str | None, AfterValidator(_state), Field(description="Slurm's own word for the state, such as RUNNING")
    ] = None
    reconciliation_eligible_jobs: Annotated[
        bool, Field(description="only attempts that are not final, or ended in what looks like a failure")
    ] = False


class AttemptQuery(Parameters):
    """How the path names an attempt."""

    use_heimdall_id: Annotated[
        bool, Field(description="true: the path holds the attempt's UUID; false: {jobId}-{attemptIndex}")
    ] = False


class SchedulerIdQuery(Parameters):
    """A page of one scheduler job's attempts."""

    page: Annotated[str | None, Field(description="offset, from nextPageToken of the page before")] = None
    limit: Limit = DEFAULT_LIMIT


class WorkflowQuery(Parameters):
    """Which workflow."""

    workflow_id: Annotated[Word, Field(min_length=1, max_length=256)]


class AdviceQuery(Parameters):
    """A page of Advice."""

    page: Annotated[str | None, Field(description="opaque; from nextPageToken of the page before")] = None
    limit: Limit = DEFAULT_LIMIT
    only_active: Annotated[bool, Field(description="only Advice that can still need reconciliation")] = False


class AuditQuery(Parameters):
    """Which audit events, and in which order."""

    heimdall_job_id: Annotated[Word | None, Field(description="one attempt; not together with jobId")] = None
    job_id: JobId | None = None
    attempt_index: Annotated[int | None, Field(ge=0, lt=2**63, description="needs jobId")] = None
    event_type: Word | None = None
    event_level: Word | None = None
    event_producer: Word | None = None
    min_event_produced_at: Annotated[Micros | None, Field(description="Unix microseconds, inclusive")] = None
    max_event_produced_at: Annotated[Micros | None, Field(description="Unix microseconds, inclusive")] = None
    sort_by: Annotated[str, Field(pattern="^event_produced_at:(asc|desc)$")] = "event_produced_at:asc"
    cursor: Annotated[str | None, Field(description="opaque; from the page before, with the same query")] = None
    limit: AuditLimit = LARGEST_AUDIT_LIMIT
