"""Facts: what entered from outside. Everything in `recovery.journal` is one of these.

Each is frozen and in the past tense, carries the position in its source (facts may come twice, late or out of order)
and the exact attempt it concerns, except the scheduler's: it carries what Slurm shows, and the decider says which
attempt that is. Times end in `_ms`, are milliseconds since the epoch, and are evidence only: no rule compares them
with a decider's now.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from schemas.aps import Aps
from schemas.identity import AttemptId, JobKey, Position
from schemas.vocabulary import (
    AttemptState,
    BlindKind,
    CommandKind,
    FaultClass,
    Hold,
    LineRole,
    Mode,
    Operation,
    Outcome,
    Phase,
    Refusal,
    Remedy,
    Scope,
    TimerPurpose,
    Witness,
)


@dataclass(frozen=True)
class Evidence:
    """One line, and where it stands."""

    file: Annotated[str, "path of the log as the scheduler names it; empty where no line exists"]
    offset: Annotated[int, "byte offset of the line's start"]
    line_no: Annotated[int, "number of the line in its file since the last truncation, from 1; 0 if unknown"]
    line_ms: Annotated[int | None, "the line's own timestamp"]
    read_ms: Annotated[int, "when watch read it"]
    node: Annotated[str | None, "the allocated node that the line names as its origin"]
    rank: Annotated[int | None, "the rank that the line names as its origin"]
    text: Annotated[str, "the line with secrets masked, at most 1,000 characters"]
    digest: Annotated[str, "sha256 of the masked text, so that it can be redacted without breaking the record"]


@dataclass(frozen=True)
class NodeFault:
    """What a node's log or metric says, and the line or sample that says so."""

    cluster: Annotated[str, "Slurm's ClusterName"]
    node: Annotated[str, "as the scheduler names it"]
    witness: Annotated[Witness, "node_log or node_metric"]
    signature: Annotated[str, "id in the signature pack, or metric:<name of the query>"]
    fault_class: FaultClass
    scope: Scope
    remedy: Annotated[Remedy, "what this fault alone calls for"]
    role: LineRole
    precedence: Annotated[int, "0 to 100: of several causes, the higher explains the lower"]
    detail: str
    evidence: Annotated[Evidence, "the line; of a metric: the series and its value, with no place in a file"]

    @property
    def at_ms(self) -> int:
        """When it happened by the node's own clock, else when it was read."""
        return self.evidence.line_ms if self.evidence.line_ms is not None else self.evidence.read_ms


@dataclass(frozen=True)
class JobObserved:
    """The scheduler controller saw a change of a job, or looked once more for an open Advice."""

    event_id: str
    cause: Annotated[str, "event id of the Advice this look answers; empty for a change"]
    cluster: str
    job_id: Annotated[str, "123, 123_4, 200+1; never a bare array id"]
    position: Annotated[Position, "source slurm:<cluster>, offset the time of the look in ms"]
    restart_count: int
    submit_time: Annotated[int, "seconds since the epoch; Slurm rewrites it at every requeue"]
    start_ms: int | None
    end_ms: int | None
    state: AttemptState
    state_reason: Annotated[str, "Slurm's Reason"]
    state_description: Annotated[str, "the text beside it, such as job requeued in held state"]
    hold: Hold
    exit_code: Annotated[int | None, "raw wait status"]
    in_controller: Annotated[bool, "slurmctld still shows the job; false when only accounting does"]
    nodes: tuple[str, ...]
    excluded_nodes: Annotated[tuple[str, ...], "ExcNodeList, expanded"]
    name: str
    user: str
    partition: str
    requeue: Annotated[bool, "Slurm's Requeue flag: the job may be requeued"]
    batch: Annotated[bool, "a batch job; others can't be requeued"]
    raw_job_id: Annotated[int, "Slurm's internal id, which log lines may carry"]
    log_paths: Annotated[tuple[str, ...], "StdOut and StdErr, expanded"]
    workflow_id: Annotated[str, "APS workflow_id, else workflow_name, else job name, else job id"]
    aps: Aps | None
    aps_error: Annotated[str | None, "why the comment is no APS although it claims to be"]
    mode: Annotated[Mode, "effective mode: what the controller may do with this job"]
    mode_reason: Annotated[str, "in words, why that mode"]
    advice_generation: Annotated[int, "generation of the open Advice in the controller's view at this look; 0 if none"]
    policy: Annotated[str, "digest of the policy in force"]
    logic: Annotated[int, "version of the deciding rules in force"]


@dataclass(frozen=True)
class SignatureMatched:
    """A line of the job's output says that something failed."""

    event_id: str
    cause: str
    attempt: AttemptId
    position: Position
    signature: Annotated[str, "id in the signature pack"]
    fault_class: FaultClass
    scope: Scope
    remedy: Annotated[Remedy, "what the pack advises for this fault alone"]
    role: Annotated[LineRole, "whether this can be a cause or is only a consequence"]
    precedence: Annotated[int, "0 to 100: of several causes, the higher explains the lower"]
    detail: Annotated[str, "what the captures say, such as Xid 79"]
    peer: Annotated[str | None, "node or address that the line blames, as printed; often another than its origin"]
    blamed_rank: Annotated[int | None, "rank that the line blames, such as the launcher's root cause"]
    sequence: Annotated[int | None, "number of the collective: of several that timed out, the lowest came first"]
    evidence: Evidence


@dataclass(frozen=True)
class NodeFaultReported:
    """A node's own log or metric says that something failed where the attempt was; found by the node decider."""

    event_id: str
    cause: Annotated[str, "event id of the NodeFaultTold"]
    attempt: AttemptId
    position: Position
    fault: NodeFault
    distance_ms: Annotated[int, "0 inside the attempt's window; negative before its start, positive after its end"]
    told_ms: int


REMEMBERED_STEPS = 4
"""So many of the last steps the hang detector remembers: ranks that stand still print them in turn. After a rollback
that nobody told of, as many count for nothing. Watch lets another step through where it always keeps the same."""


@dataclass(frozen=True)
class ProgressObserved:
    """The training loop moved; throttled to the job's progress interval."""

    event_id: str
    cause: str
    attempt: AttemptId
    position: Position
    framework: str
    step: int
    total_steps: int | None
    seconds_per_step: float | None
    loss: float | None
    line_ms: int | None
    read_ms: int


@dataclass(frozen=True)
class CheckpointSaved:
    """A save completed and is durable; a started or scheduled save is none."""

    event_id: str
    cause: str
    attempt: AttemptId
    position: Position
    framework: str
    step: int
    path: str | None
    line_ms: int | None
    read_ms: int


@dataclass(frozen=True)
class CheckpointLoaded:
    """The attempt resumed from a checkpoint."""

    event_id: str
    cause: str
    attempt: AttemptId
    position: Position
    framework: str
    step: int
    path: str | None
    line_ms: int | None
    read_ms: int


@dataclass(frozen=True)
class PhaseEntered:
    """The attempt says that it does something else than stepping: silence is normal for a while."""

    event_id: str
    cause: str
    attempt: AttemptId
    position: Position
    phase: Phase
    line_ms: int | None
    read_ms: int


@dataclass(frozen=True)
class OutputChecked:
    """Watch looked at the end of an attempt's output, because a decider asked."""

    event_id: str
    cause: Annotated[str, "event id of the OutputAsked"]
    attempt: AttemptId
    position: Position
    last_output_ms: Annotated[int | None, "when the newest of the attempt's files last grew; None if none was read"]
    delay_ms: Annotated[int, "how late output may reach this source; 0 for files that watch follows itself"]
    error: Annotated[str | None, "why nothing is known: no such path, permission denied, source down"]
    checked_ms: int


@dataclass(frozen=True)
class BlindReported:
    """Watch can't see what an attempt does, or sees again; once when each kind begins, and once when it ends."""

    event_id: str
    cause: str
    attempt: AttemptId
    position: Annotated[Position, "source blind:<kind>; the epoch counts how often it began, offset 1 is its end"]
    kind: BlindKind
    ended: Annotated[bool, "the attempt is seen again in this respect"]
    detail: Annotated[str, "what was found, with the path or the source"]
    advice: Annotated[str, "what to do about it; empty where it ended"]
    kinds: Annotated[tuple[BlindKind, ...], "all that keep watch from seeing this attempt now"]
    since_ms: Annotated[int, "when watch began to notice it"]
    reported_ms: int


@dataclass(frozen=True)
class TimerFired:
    """A deadline that the decider set is due. The relay repeats it until it reads a re-arm or a tombstone."""

    event_id: str
    cause: Annotated[str, "event id of the TimerSet"]
    attempt: AttemptId
    position: Position
    purpose: TimerPurpose
    generation: int
    due_ms: int
    fired_ms: int


@dataclass(frozen=True)
class AttributionAnswered:
    """An attribution provider answered a request, or could not: then `error` says why and nothing is attributed."""

    event_id: str
    cause: Annotated[str, "event id of the RequestMade"]
    attempt: AttemptId
    position: Position
    provider: str
    incident_id: str
    fault_class: FaultClass | None
    scope: Scope | None
    nodes: tuple[str, ...]
    explanation: str
    error: Annotated[str | None, "timeout, refused, malformed answer...; None for an answer"]
    asked_ms: int
    answered_ms: int


@dataclass(frozen=True)
class ActionIntended:
    """The scheduler controller is about to send one command; committed before the command is sent."""

    event_id: str
    cause: Annotated[str, "event id of the Advice; empty for an early hold"]
    attempt: Annotated[AttemptId, "the attempt whose Advice this serves"]
    position: Position
    action_id: Annotated[str, "the action's identity: at most one effective action for each"]
    operation: Operation
    generation: Annotated[int, "of the Advice; 0 for an early hold"]
    command: Annotated[str, "as sent, for people"]
    nodes: Annotated[tuple[str, ...], "ExcNodeList that the command sets"]
    intended_ms: int


@dataclass(frozen=True)
class ActionEnded:
    """A command came back. Accepted means that Slurm took it, not that its effect was seen."""

    event_id: str
    cause: Annotated[str, "event id of the ActionIntended"]
    attempt: AttemptId
    position: Position
    action_id: str
    operation: Operation
    generation: int
    outcome: Outcome
    detail: Annotated[str, "what Slurm said, at most 1,000 characters"]
    ended_ms: int


@dataclass(frozen=True)
class ActionRefused:
    """The scheduler controller considered an action and did not take it; once for each action and reason."""

    event_id: str
    cause: Annotated[str, "event id of the Advice; empty for an early hold"]
    attempt: AttemptId
    position: Position
    action_id: str
    operation: Operation
    generation: int
    reason: Refusal
    detail: Annotated[str, "in plain words, what would have been done and why it was not"]
    refused_ms: int


@dataclass(frozen=True)
class CommandGiven:
    """A person asked for something to be done to one attempt, with a reason."""

    event_id: str
    cause: str
    attempt: AttemptId
    position: Position
    kind: CommandKind
    by: str
    reason: str
    given_ms: int


@dataclass(frozen=True)
class QuarantineLifted:
    """A person looked at a job's parked records: the job may have new Advice again."""

    event_id: str
    cause: str
    cluster: str
    job_id: str
    position: Position
    by: str
    reason: str
    lifted_ms: int


AttemptFact = (
    SignatureMatched
    | NodeFaultReported
    | ProgressObserved
    | CheckpointSaved
    | CheckpointLoaded
    | PhaseEntered
    | OutputChecked
    | BlindReported
    | TimerFired
    | AttributionAnswered
    | ActionIntended
    | ActionEnded
    | ActionRefused
    | CommandGiven
)
Fact = JobObserved | QuarantineLifted | AttemptFact


def job_of(fact: Fact) -> JobKey:
    """The key under which a fact is recorded."""
    match fact:
        case JobObserved() | QuarantineLifted():
            return JobKey(f"{fact.cluster}/{fact.job_id}")
        case _:
            return fact.attempt.job
