"""Decisions: what the attempt decider concluded, and the current views that it keeps for others.

Each decision has an id derived from the fact that caused it and its ordinal, so deciding again gives the same bytes.
`decided_ms` is the decider's only clock: the running maximum of the record timestamps of that job.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from schemas.aps import Aps
from schemas.facts import Evidence
from schemas.identity import AttemptId, JobKey
from schemas.nodes import NodeAllocated, NodeFreed
from schemas.vocabulary import (
    AnomalyKind,
    AttemptState,
    DesiredState,
    Disposition,
    FaultClass,
    Mode,
    Refusal,
    Remedy,
    Resolution,
    Scope,
    TimerPurpose,
)


@dataclass(frozen=True)
class AttemptOpened:
    """An attempt was seen for the first time and has an identity from now on."""

    event_id: str
    cause: str
    attempt: AttemptId
    decided_ms: int
    submit_time: int
    name: str
    user: str
    partition: str
    workflow_id: str
    mode: Mode
    mode_reason: str


@dataclass(frozen=True)
class AttemptMoved:
    """An attempt's state changed."""

    event_id: str
    cause: str
    attempt: AttemptId
    decided_ms: int
    before: AttemptState
    after: AttemptState
    nodes: tuple[str, ...]
    detail: Annotated[str, "Slurm's reason, and the exit code where it ended"]
    observed_ms: Annotated[int, "when the scheduler controller looked"]


@dataclass(frozen=True)
class AnomalyDetected:
    """An incident opened: the attempt shows a symptom."""

    event_id: str
    cause: str
    attempt: AttemptId
    decided_ms: int
    incident_id: str
    kind: AnomalyKind
    fault_class: FaultClass
    detail: str
    evidence: Evidence | None


@dataclass(frozen=True)
class AttributionMade:
    """The incident's one attribution: what failed, where, and which lines say so."""

    event_id: str
    cause: str
    attempt: AttemptId
    decided_ms: int
    incident_id: str
    fault_class: FaultClass
    scope: Scope
    remedy: Remedy
    nodes: tuple[str, ...]
    signature: Annotated[str, "of the root line; empty where only the scheduler's state speaks"]
    root: Evidence | None
    secondary: tuple[Evidence, ...]
    lines_seen: Annotated[int, "matched lines in the incident, also those not kept"]
    confidence: Annotated[float, "0 to 1"]
    provider: Annotated[str, "rules, or the attribution provider whose answer was adopted"]
    explanation: Annotated[str, "one or two plain sentences"]


@dataclass(frozen=True)
class Advice:
    """The current Advice of one attempt, complete enough to act on alone. The value of `recovery.advice`."""

    event_id: Annotated[str, "of the AdviceIssued that made this generation"]
    attempt: AttemptId
    submit_time: Annotated[int, "the source attempt's SubmitTime, seconds: SAC acts on no other"]
    generation: int
    desired_state: DesiredState
    exclude_nodes: tuple[str, ...]
    disposition: Disposition
    resolution: Resolution
    reason: Annotated[str, "a stable word: fault class, requeue_limit, no_new_checkpoint, command"]
    explanation: Annotated[str, "plain sentences for the job's owner"]
    incident_id: Annotated[str, "empty where a person commanded it"]
    workflow_id: str
    issued_ms: int
    resolved_ms: int | None
    valid_until_ms: Annotated[int | None, "of Advice against a running attempt; None: holds until resolved"]
    policy: str
    logic: int


@dataclass(frozen=True)
class AdviceIssued:
    """A new generation of Advice."""

    event_id: str
    cause: str
    attempt: AttemptId
    decided_ms: int
    advice: Advice


@dataclass(frozen=True)
class AdviceResolved:
    """A generation came to its end: converged by a fresh observation, or abandoned."""

    event_id: str
    cause: str
    attempt: AttemptId
    decided_ms: int
    generation: int
    disposition: Disposition
    resolution: Resolution
    detail: str


@dataclass(frozen=True)
class AdviceWithheld:
    """Something was considered and not advised, or only in part; with its reason."""

    event_id: str
    cause: str
    attempt: AttemptId
    decided_ms: int
    incident_id: str
    reason: Refusal
    detail: str


@dataclass(frozen=True)
class RequestMade:
    """A question for the attribution provider; copied to `recovery.requests` by the relay."""

    event_id: str
    cause: str
    attempt: AttemptId
    decided_ms: int
    incident_id: str
    workflow_id: str
    nodes: tuple[str, ...]
    fault_class: FaultClass
    start_ms: int | None
    end_ms: int | None
    anomaly_ms: int
    deadline_ms: Annotated[int, "milliseconds allowed for the answer"]


@dataclass(frozen=True)
class OutputAsked:
    """A question for watch: does this silent attempt still print? Copied to `recovery.requests` by the relay."""

    event_id: str
    cause: str
    attempt: AttemptId
    decided_ms: int
    log_paths: tuple[str, ...]
    start_ms: int | None
    last_progress_ms: Annotated[int | None, "when a step was last recorded"]
    budget_ms: Annotated[int, "how long the attempt may be silent"]


@dataclass(frozen=True)
class FactSetAside:
    """A fact that could not count: too late, or of an attempt that nobody knows. Recorded, never acted on."""

    event_id: str
    cause: str
    cluster: str
    job_id: str
    decided_ms: int
    reason: Refusal
    detail: str


@dataclass(frozen=True)
class FactParked:
    """A record that could not be handled: it waits in `recovery.parked`, and its job gets no new Advice."""

    event_id: str
    cause: Annotated[str, "the record's own event id, or its topic, partition and offset"]
    key: Annotated[str, "record key: cluster/job_id"]
    decided_ms: int
    topic: str
    partition: int
    offset: int
    reason: str


@dataclass(frozen=True)
class QuarantineEnded:
    """The job may have new Advice again."""

    event_id: str
    cause: str
    cluster: str
    job_id: str
    decided_ms: int
    by: str
    reason: str


@dataclass(frozen=True)
class JobClosed:
    """The job is final and its state was put away; later facts are recorded as late."""

    event_id: str
    cause: str
    attempt: Annotated[AttemptId, "its last attempt"]
    decided_ms: int


@dataclass(frozen=True)
class TimerSet:
    """A deadline. The value of `recovery.timers`; a tombstone withdraws it."""

    event_id: str
    cause: str
    attempt: AttemptId
    purpose: TimerPurpose
    generation: int
    due_ms: int


@dataclass(frozen=True)
class TimerCleared:
    """Withdraws a timer: written as a tombstone, never as bytes."""

    attempt: AttemptId
    purpose: TimerPurpose


@dataclass(frozen=True)
class AttemptView:
    """What watch and the scheduler controller need to know of one attempt."""

    attempt: AttemptId
    submit_time: int
    start_ms: int | None
    end_ms: int | None
    state: AttemptState
    nodes: tuple[str, ...]
    log_paths: tuple[str, ...]


@dataclass(frozen=True)
class JobView:
    """The current view of a job. The value of `recovery.jobs`."""

    event_id: str
    cause: str
    cluster: str
    job_id: str
    raw_job_id: int
    workflow_id: str
    aps: Aps | None
    mode: Mode
    attempts: Annotated[tuple[AttemptView, ...], "the most recent, oldest first"]
    quarantined: bool
    closed: bool
    viewed_ms: int


Decision = (
    AttemptOpened
    | AttemptMoved
    | AnomalyDetected
    | AttributionMade
    | AdviceIssued
    | AdviceResolved
    | AdviceWithheld
    | RequestMade
    | OutputAsked
    | FactSetAside
    | FactParked
    | QuarantineEnded
    | JobClosed
)
Emitted = Decision | Advice | JobView | TimerSet | TimerCleared | NodeAllocated | NodeFreed


def timer_key(attempt: AttemptId, purpose: TimerPurpose) -> str:
    """The record key of a timer."""
    return f"{attempt.key}/{purpose}"


def job_of_decision(decision: Decision) -> JobKey:
    """The key under which a decision is recorded."""
    match decision:
        case FactParked():
            return JobKey(decision.key)
        case FactSetAside() | QuarantineEnded():
            return JobKey(f"{decision.cluster}/{decision.job_id}")
        case _:
            return decision.attempt.job
