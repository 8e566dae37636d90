"""The shapes of the answers. JSON names are lowerCamelCase; 64-bit integers that the original types so are strings."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

Time = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
Int64 = Annotated[str, Field(json_schema_extra={"format": "int64"})]


class Model(BaseModel):
    """A part of an answer."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True)


class JobStatus(StrEnum):
    """Whether an attempt waits, runs or has ended."""

    UNSPECIFIED = "JOB_STATUS_UNSPECIFIED"
    PENDING = "JOB_STATUS_PENDING"
    RUNNING = "JOB_STATUS_RUNNING"
    STOPPED = "JOB_STATUS_STOPPED"


class Disposition(StrEnum):
    """Where an Advice stands."""

    UNSPECIFIED = "ADVICE_RECONCILIATION_DISPOSITION_UNSPECIFIED"
    PENDING = "ADVICE_RECONCILIATION_DISPOSITION_PENDING"
    CONVERGED = "ADVICE_RECONCILIATION_DISPOSITION_CONVERGED"
    ABANDONED = "ADVICE_RECONCILIATION_DISPOSITION_ABANDONED"


class Reason(StrEnum):
    """Why an Advice came to its end."""

    UNSPECIFIED = "ADVICE_RECONCILIATION_REASON_UNSPECIFIED"
    DESIRED_STATE_OBSERVED = "ADVICE_RECONCILIATION_REASON_DESIRED_STATE_OBSERVED"
    ALREADY_SATISFIED = "ADVICE_RECONCILIATION_REASON_ALREADY_SATISFIED"
    ADVICE_EXPIRED = "ADVICE_RECONCILIATION_REASON_ADVICE_EXPIRED"
    SUPERSEDED = "ADVICE_RECONCILIATION_REASON_SUPERSEDED"
    ATTEMPT_SUPERSEDED = "ADVICE_RECONCILIATION_REASON_ATTEMPT_SUPERSEDED"
    PROGRESS_RESUMED = "ADVICE_RECONCILIATION_REASON_PROGRESS_RESUMED"
    JOB_LEFT_SCHEDULER = "ADVICE_RECONCILIATION_REASON_JOB_LEFT_SCHEDULER"
    ATTEMPT_ENDED = "ADVICE_RECONCILIATION_REASON_ATTEMPT_ENDED"


class NodeConstraints(Model):
    """Where an attempt must not run."""

    excluded_nodes: list[str]


class Job(Model):
    """One attempt: one execution of one scheduler job."""

    workflow_id: str
    heimdall_job_id: Annotated[str, Field(description="UUID of the attempt, stable for ever")]
    job_run_id: Annotated[str, Field(description="Slurm's internal job id, which log lines may carry")]
    job_id: Annotated[str, Field(description="123, 123_4 for an array task, 200+1 for a heterogeneous component")]
    attempt_index: Annotated[int, Field(description="Slurm's restart count; the first attempt is 0")]
    nodes: list[str]
    job_name: str
    state: JobStatus
    jm_state: Annotated[str, Field(description="Slurm's own word for the state")]
    state_detail: str
    held: Annotated[bool, Field(description="pending, and not eligible to run until it is released")]
    user: str
    partition: str
    scheduler_system: str
    scheduler_scope: Annotated[str, Field(description="the cluster")]
    mode: Annotated[str, Field(description="what the scheduler controller may do with the job")]
    mode_reason: str
    submit_time: Time | None
    start_time: Time | None
    end_time: Time | None
    exit_code: int | None
    exit_signal: Annotated[int | None, Field(description="the signal that ended the batch script; 0 for none")]
    node_constraints: NodeConstraints
    log_paths: list[str]
    first_step_time: Annotated[Time | None, Field(description="when this attempt was first seen to train")]
    last_step: int | None
    last_step_time: Time | None
    total_steps: int | None
    last_checkpoint_step: int | None
    last_checkpoint_time: Time | None
    loaded_checkpoint_step: Annotated[int | None, Field(description="the checkpoint that this attempt resumed from")]
    blind: Annotated[list[str], Field(description="what keeps watch from seeing it, now or at its end")]
    closed: Annotated[bool, Field(description="what still comes for this job counts as late")]


class JobAnswer(Model):
    """One attempt."""

    job: Job


class JobList(Model):
    """A page of attempts, by creation time."""

    jobs: list[Job]
    count: Annotated[int, Field(description="items on this page")]
    next_page_token: Annotated[str, Field(description="empty on the last page")]


class Workflow(Model):
    """A group of jobs that a user follows as one."""

    workflow_id: str
    scheduler_workflow_id: Annotated[str, Field(description="empty: Slurm has no workflows of its own")]
    name: str
    start_time: Time | None
    end_time: Annotated[Time | None, Field(description="none while an attempt may still run")]


class WorkflowAnswer(Model):
    """One workflow."""

    workflow: Workflow


class WorkflowList(Model):
    """A page of workflows, by creation time."""

    workflows: list[Workflow]
    count: int
    next_page_token: str


class DetectedIssue(Model):
    """The incident behind an Advice."""

    incident_id: str
    kind: str
    symptom: str
    fault_class: str
    scope: str
    nodes: list[str]
    signature: str
    lines_seen: int | None
    confidence: float | None
    provider: str
    explanation: str
    detected_at: Time | None


class ReconciliationStatus(Model):
    """Whether what was advised came about, by a fresh observation."""

    observed_generation: Annotated[Int64, Field(description="0 until the scheduler controller's looks settled it")]
    disposition: Disposition
    reason: Reason
    detail: str


class Advice(Model):
    """What should happen to one attempt: the newest generation of its Advice."""

    heimdall_job_id: str
    job_id: str
    attempt_index: int
    scheduler_scope: str
    workflow_id: str
    desired_state: str
    node_constraints: NodeConstraints
    detected_issues: list[DetectedIssue]
    generation: Int64
    reconciliation_status: ReconciliationStatus
    reason: str
    explanation: str
    issued_at: Time
    valid_until: Time | None
    resolved_at: Time | None
    policy: Annotated[str, Field(description="digest of the policy that it was decided under")]
    logic: Annotated[int, Field(description="version of the deciding rules")]


class AdviceList(Model):
    """A page of Advice, by time of issue."""

    advice: list[Advice]
    count: int
    next_page_token: str


class AuditEvent(Model):
    """One fact or decision, as it was first recorded."""

    event_id: str
    heimdall_job_id: str | None
    scheduler_scope: str
    job_id: str
    attempt_index: int | None
    event_producer: str
    event_type: str
    event_level: str
    event_produced_at: Annotated[Int64, Field(description="time of the record, Unix microseconds")]
    cause: Annotated[str, Field(description="event id of what caused this; empty where it came from outside")]
    topic: str
    partition: int
    offset: Int64
    payload: Annotated[dict[str, Any], Field(description="the event, by the names of its schema")]


class AuditCursor(Model):
    """The adjacent pages; none where there is nothing more."""

    previous: str | None
    next: str | None


class AuditPage(Model):
    """A page of audit events."""

    items: list[AuditEvent]
    cursor: AuditCursor


class EvidenceLine(Model):
    """A line of output that speaks for a conclusion."""

    file: str
    line_no: int
    offset: Int64
    node: str | None
    rank: int | None
    time: Annotated[Time | None, Field(description="the line's own timestamp")]
    read_at: Time | None
    text: Annotated[str | None, Field(description="none once it was redacted")]
    digest: str


class TimelineEntry(Model):
    """Something that happened to the attempt, or to the successor that its Advice brought about."""

    time: Time
    kind: str
    title: str
    detail: str
    attempt_index: int | None
    event_id: str
    cause: str
    times: Annotated[dict[str, Time | None], Field(description="further times that a latency can be taken from")]
    evidence: list[EvidenceLine]


class Milestone(Model):
    """A step of the recovery, and how long after the fault it came."""

    name: str
    time: Time
    ms_since_fault: int
    ms_since_previous: int


class Timeline(Model):
    """What happened to one attempt until its successor ran again."""

    job: Job
    entries: list[TimelineEntry]
    milestones: list[Milestone]


class WhySentence(Model):
    """One sentence, and what it rests on."""

    about: str
    text: str
    time: Time | None
    event_id: str | None
    evidence: list[EvidenceLine]


class Why(Model):
    """Why an attempt ended, what was done about it, and where things stand, in plain sentences."""

    heimdall_job_id: str
    job_id: str
    attempt_index: int
    summary: str
    sentences: list[WhySentence]
    converged: Annotated[bool | None, Field(description="none where nothing was advised")]
    running_again: bool


class PartitionState(Model):
    """How far the projection is in one partition."""

    topic: str
    partition: int
    next_offset: Int64
    lag: int | None
    last_record_time: Time | None
    looked_at: Time | None


class Readiness(Model):
    """Whether this gateway can answer, and how old what it shows may be."""

    ready: bool
    reason: str
    stale_seconds: Annotated[float | None, Field(description="since the projector last looked; none: it never did")]
    lag: int | None
    partitions: list[PartitionState]
