"""Jobs told fact by fact for the mix: what watch, the scheduler controller and the relay would write."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256

from schemas.aps import Aps
from schemas.decisions import Advice, Emitted, TimerCleared, TimerSet, timer_key
from schemas.facts import (
    ActionIntended,
    CheckpointSaved,
    Evidence,
    Fact,
    JobObserved,
    ProgressObserved,
    SignatureMatched,
    TimerFired,
)
from schemas.identity import AttemptId, Position, derived_id
from schemas.policy import DEFAULT_POLICY, LOGIC
from schemas.vocabulary import (
    AttemptState,
    Disposition,
    FaultClass,
    Hold,
    LineRole,
    Mode,
    Operation,
    Remedy,
    Scope,
)
from streams.decide.decide import decide
from streams.decide.state import JobState

START_MS = 1_785_578_400_000
APS = Aps(workflow_id="train", environment="lab", mode=Mode.ACT, auto_resume_mode="requeue", max_requeue_times=3)
POLICIES = {DEFAULT_POLICY.digest(): DEFAULT_POLICY}


@dataclass(frozen=True)
class Printed:
    """A line, and what the packs say about it."""

    text: str
    signature: str
    fault_class: FaultClass
    scope: Scope
    remedy: Remedy
    role: LineRole
    precedence: int


@dataclass
class Told:
    """One job. It is decided along the way, so that timers fire when they would."""

    job: int
    now_ms: int = START_MS
    offset: int = 0
    state: JobState | None = None
    facts: list[tuple[Fact, int]] = field(default_factory=list)
    emitted: list[Emitted] = field(default_factory=list)
    timers: dict[str, TimerSet] = field(default_factory=dict)
    submitted: dict[int, int] = field(default_factory=dict)
    generation: int = 0

    @property
    def log(self) -> str:
        return f"/shared/runs/train/{self.job}.out"

    def attempt(self, index: int) -> AttemptId:
        return AttemptId("local", str(self.job), START_MS // 1000, index)

    def take(self, fact: Fact) -> None:
        self.facts.append((fact, self.now_ms))
        self.state, events = decide(self.state, fact, self.now_ms, POLICIES)
        self.emitted += events
        for event in events:
            if isinstance(event, TimerSet):
                self.timers[timer_key(event.attempt, event.purpose)] = event
            elif isinstance(event, TimerCleared):
                self.timers.pop(timer_key(event.attempt, event.purpose), None)
            elif isinstance(event, Advice):
                self.generation = event.generation if event.disposition is Disposition.PENDING else 0

    def wait(self, seconds: float) -> None:
        """Let time pass; what comes due fires, in order."""
        end = self.now_ms + int(seconds * 1000)
        while timers := [timer for timer in self.timers.values() if timer.due_ms <= end]:
            timer = min(timers, key=lambda one: one.due_ms)
            self.now_ms = max(self.now_ms, timer.due_ms)
            key = timer_key(timer.attempt, timer.purpose)
            self.take(
                TimerFired(
                    event_id=derived_id("fired", timer.event_id),
                    cause=timer.event_id,
                    attempt=timer.attempt,
                    position=Position(f"relay:{key}", 0, timer.generation),
                    purpose=timer.purpose,
                    generation=timer.generation,
                    due_ms=timer.due_ms,
                    fired_ms=self.now_ms,
                )
            )
        self.now_ms = end

    def observe(
        self,
        state: AttemptState,
        nodes: tuple[str, ...],
        index: int = 0,
        *,
        hold: Hold = Hold.NONE,
        excluded: tuple[str, ...] = (),
    ) -> None:
        """The scheduler controller sees a change."""
        self.now_ms += 100
        placed = state not in (AttemptState.PENDING, AttemptState.HELD)
        failed = state is AttemptState.FAILED
        self.take(
            JobObserved(
                event_id=derived_id("slurm:local", self.now_ms, self.job),
                cause="",
                cluster="local",
                job_id=str(self.job),
                position=Position("slurm:local", 0, self.now_ms),
                restart_count=index,
                submit_time=self.submitted.setdefault(index, self.now_ms // 1000),
                start_ms=self.now_ms if placed else None,
                end_ms=self.now_ms if failed else None,
                state=state,
                state_reason="None",
                state_description="",
                hold=hold,
                exit_code=256 if failed else None,
                in_controller=True,
                nodes=nodes if placed else (),
                excluded_nodes=excluded,
                name="train",
                user="ada",
                partition="main",
                requeue=True,
                batch=True,
                raw_job_id=self.job,
                log_paths=(self.log,),
                workflow_id="train",
                aps=APS,
                aps_error=None,
                mode=Mode.ACT,
                mode_reason="asked for by the job",
                advice_generation=self.generation,
                policy=DEFAULT_POLICY.digest(),
                logic=LOGIC,
            )
        )

    def line(self, printed: Printed, node: str | None, rank: int) -> None:
        position = self._next()
        text = printed.text
        digest = sha256(text.encode()).hexdigest()
        at = (position.offset, position.offset // 200, self.now_ms, self.now_ms)
        self.take(
            SignatureMatched(
                event_id=derived_id(position.source, position.offset),
                cause="",
                attempt=self.attempt(0),
                position=position,
                signature=printed.signature,
                fault_class=printed.fault_class,
                scope=printed.scope,
                remedy=printed.remedy,
                role=printed.role,
                precedence=printed.precedence,
                detail=printed.signature,
                peer=None,
                blamed_rank=None,
                sequence=None,
                evidence=Evidence(self.log, *at, node, rank, text, digest),
            )
        )

    def progress(self, step: int, index: int) -> None:
        position = self._next()
        event_id = derived_id(position.source, position.offset)
        self.take(
            ProgressObserved(
                event_id=event_id,
                cause="",
                attempt=self.attempt(index),
                position=position,
                framework="megatron",
                step=step,
                total_steps=500_000,
                seconds_per_step=30.5,
                loss=2.413345,
                line_ms=self.now_ms,
                read_ms=self.now_ms + 80,
            )
        )

    def checkpoint(self, step: int, index: int) -> None:
        position = self._next()
        event_id = derived_id(position.source, position.offset)
        path = "/checkpoints/run1"
        saved = (self.attempt(index), position, "megatron", step, path, self.now_ms, self.now_ms + 80)
        self.take(CheckpointSaved(event_id, "", *saved))

    def intend(self, operation: Operation) -> None:
        position = Position("topic:recovery.actions/0", 0, self.now_ms + self.job)
        event_id = derived_id(position.source, position.offset)
        action = (f"local/{self.job}/0/{operation}", operation, self.generation, f"scontrol {operation} {self.job}", ())
        self.take(ActionIntended(event_id, "", self.attempt(0), position, *action, self.now_ms))

    def _next(self) -> Position:
        self.offset += 200
        return Position(f"file:{self.log}", 0, self.offset)
