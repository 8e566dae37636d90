"""What the decider remembers of one job. Frozen, versioned, and small: it is written at every fact."""

from __future__ import annotations

from dataclasses import dataclass

from schemas.aps import Aps
from schemas.decisions import Advice
from schemas.facts import Evidence
from schemas.frozen import replace
from schemas.identity import AttemptId, Position
from schemas.vocabulary import (
    FINAL_STATES,
    AnomalyKind,
    AttemptState,
    FaultClass,
    Hold,
    LineRole,
    Mode,
    Phase,
    Refusal,
    Remedy,
    Scope,
    TimerPurpose,
    Witness,
)

STATE_VERSION = 2
KEPT_ATTEMPTS = 4
KEPT_LINES = 64
"""Lines of an incident that are kept: enough to see which one of many nodes is silent."""


@dataclass(frozen=True)
class Line:
    """A matched line of an incident."""

    signature: str
    fault_class: FaultClass
    scope: Scope
    remedy: Remedy
    role: LineRole
    precedence: int
    detail: str
    peer: str | None
    blamed_rank: int | None
    sequence: int | None
    evidence: Evidence
    witness: Witness = Witness.OUTPUT

    @property
    def told_by(self) -> str:
        """Who says so, in words to follow what is said; nothing where it is the job's own output."""
        if self.witness is Witness.OUTPUT:
            return ""
        return f", as {'the log' if self.witness is Witness.NODE_LOG else 'a metric'} of the node says"


@dataclass(frozen=True)
class Heard:
    """What a node of a running attempt said, kept in case the attempt fails: alone it is no reason to act."""

    line: Line
    heard_ms: int


@dataclass(frozen=True)
class Answer:
    """An attribution provider's answer that names something."""

    provider: str
    fault_class: FaultClass
    scope: Scope
    nodes: tuple[str, ...]
    explanation: str


@dataclass(frozen=True)
class Finding:
    """The outcome of an incident's one attribution, as far as the decision still needs it."""

    fault_class: FaultClass
    scope: Scope
    remedy: Remedy
    nodes: tuple[str, ...]
    explanation: str


@dataclass(frozen=True)
class Incident:
    """One symptom from its first line to the decision about it."""

    incident_id: str
    kind: AnomalyKind
    opened_ms: int
    last_line_ms: int
    lines_seen: int
    lines: tuple[Line, ...]
    asked: bool
    answer: Answer | None
    finding: Finding | None
    settled: bool


@dataclass(frozen=True)
class Stall:
    """What the hang detector knows of an attempt; there is none before the first sign of progress."""

    in_loop: bool
    moved_ms: int
    gap_ms: int
    gaps: int
    phase: Phase | None
    asked: str
    said: Refusal | None
    stepped_ms: int | None = None
    """When the last step was recorded; None where the time to the next one would tell nothing."""
    line_ms: int | None = None
    """The same by the line's own time."""
    stepped: bool = False
    """A step was recorded since a phase was entered last."""
    recent: tuple[int, ...] = ()
    """The last different steps of the count that the attempt is in; empty where any step is one more."""
    tells_loss: bool = False
    """Some step of the attempt told its loss."""


@dataclass(frozen=True)
class Pace:
    """What the straggler detector knows of an attempt: its own normal step time, in seconds."""

    first: tuple[float, ...]
    baseline: float | None
    slow: int
    normal: int
    reported: bool


NO_PACE = Pace((), None, 0, 0, False)


@dataclass(frozen=True)
class Timer:
    """A pending deadline; only a firing of this generation counts."""

    purpose: TimerPurpose
    generation: int
    due_ms: int
    set_by: str


@dataclass(frozen=True)
class Attempt:
    """One execution of the job."""

    id: AttemptId
    submit_time: int
    state: AttemptState
    hold: Hold
    start_ms: int | None
    end_ms: int | None
    exit_code: int | None
    nodes: tuple[str, ...]
    log_paths: tuple[str, ...]
    marks: tuple[Position, ...]
    step: int | None
    progress_ms: int | None
    checkpoint_step: int | None
    stall: Stall | None
    pace: Pace
    failure_counted: bool
    acted: bool
    incidents: int
    heard: tuple[Heard, ...]
    timers: tuple[Timer, ...]
    timer_generation: int
    incident: Incident | None
    advice: Advice | None
    blind: bool = False
    """Watch can't see what the attempt does."""

    @property
    def final(self) -> bool:
        return self.state in FINAL_STATES

    def timer(self, purpose: TimerPurpose) -> Timer | None:
        for timer in self.timers:
            if timer.purpose is purpose:
                return timer
        return None


@dataclass(frozen=True)
class JobState:
    """Everything the decider knows of one job."""

    cluster: str
    job_id: str
    now_ms: int
    incarnation: int
    raw_job_id: int
    name: str
    user: str
    partition: str
    workflow_id: str
    mode: Mode
    mode_reason: str
    requeueable: bool
    policy: str
    logic: int
    marks: tuple[Position, ...]
    advice_count: int
    excluded: tuple[str, ...]
    best_checkpoint: int | None
    failures_without_checkpoint: int
    quarantined: bool
    closed: bool
    highest_index: int
    latest_submit_time: int
    aps: Aps | None
    attempts: tuple[Attempt, ...]

    @property
    def latest(self) -> Attempt | None:
        return self.attempts[-1] if self.attempts else None

    def attempt(self, attempt_id: AttemptId) -> Attempt | None:
        for attempt in reversed(self.attempts):  # it is mostly the last
            if _is(attempt.id, attempt_id):
                return attempt
        return None

    def current(self, attempt: Attempt) -> Attempt:
        """The same attempt as it is in this state now. Raises LookupError."""
        found = self.attempt(attempt.id)
        if found is None:
            raise LookupError(f"{attempt.id} is not in the state of {self.cluster}/{self.job_id}")
        return found

    def successor_of(self, attempt: Attempt) -> Attempt | None:
        return next((later for later in self.attempts if later.id.index > attempt.id.index), None)

    def with_attempt(self, attempt: Attempt) -> JobState:
        """Replace the attempt with this id."""
        known = self.attempts
        return self if known and known[-1] is attempt else replace(self, attempts=self.attempts_with(attempt))

    def attempts_with(self, attempt: Attempt) -> tuple[Attempt, ...]:
        """The attempts with this one, mostly the last, in the place of the one with its id."""
        known = self.attempts
        if known and known[-1].id is attempt.id:
            return (*known[:-1], attempt)
        return tuple(attempt if _is(one.id, attempt.id) else one for one in known)


def _is(one: AttemptId, other: AttemptId) -> bool:
    """Whether both name one attempt; asked several times a fact, so the index, which tells most apart, comes first."""
    return one is other or (
        one.index == other.index
        and one.incarnation == other.incarnation
        and one.job_id == other.job_id
        and one.cluster == other.cluster
    )


def advance(marks: tuple[Position, ...], position: Position) -> tuple[Position, ...] | None:
    """Return the high-water marks moved to `position`, or None where the source was already read beyond it."""
    for i, mark in enumerate(marks):
        if mark.source == position.source:
            if (position.epoch, position.offset, position.ordinal) <= (mark.epoch, mark.offset, mark.ordinal):
                return None
            return (position,) if len(marks) == 1 else (*marks[:i], position, *marks[i + 1 :])
    return (*marks, position)


def empty(cluster: str, job_id: str) -> JobState:
    """A job of which nothing is known yet."""
    return JobState(
        cluster=cluster,
        job_id=job_id,
        now_ms=0,
        incarnation=0,
        raw_job_id=0,
        name="",
        user="",
        partition="",
        workflow_id="",
        aps=None,
        mode=Mode.DISABLED,
        mode_reason="nothing observed yet",
        requeueable=False,
        policy="",
        logic=0,
        attempts=(),
        marks=(),
        advice_count=0,
        excluded=(),
        best_checkpoint=None,
        failures_without_checkpoint=0,
        quarantined=False,
        closed=False,
        highest_index=-1,
        latest_submit_time=0,
    )
