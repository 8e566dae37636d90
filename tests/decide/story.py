"""A job's story told fact by fact, with the relay's part played on the side: timers fire when time reaches them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, TypeVar

from schemas.aps import Aps
from schemas.decisions import (
    Advice,
    AdviceIssued,
    AdviceResolved,
    Emitted,
    OutputAsked,
    TimerCleared,
    TimerSet,
    timer_key,
)
from schemas.facts import (
    ActionIntended,
    AttributionAnswered,
    CheckpointLoaded,
    CheckpointSaved,
    CommandGiven,
    Evidence,
    Fact,
    JobObserved,
    NodeFault,
    NodeFaultReported,
    OutputChecked,
    PhaseEntered,
    ProgressObserved,
    SignatureMatched,
    TimerFired,
)
from schemas.identity import AttemptId, Position, derived_id
from schemas.policy import DEFAULT_POLICY, LOGIC, Policy
from schemas.vocabulary import (
    AttemptState,
    CommandKind,
    Disposition,
    FaultClass,
    Hold,
    LineRole,
    Mode,
    Operation,
    Phase,
    Remedy,
    Scope,
    Witness,
)
from streams.decide.decide import decide
from streams.decide.state import JobState

START_MS = 1_700_000_000_000
SUBMIT = START_MS // 1000
OPTED_IN = Aps(workflow_id="train", environment="lab", mode=Mode.ACT, auto_resume_mode="requeue", max_requeue_times=3)
E = TypeVar("E")


def attempt(index: int = 0, incarnation: int = SUBMIT, job_id: str = "7") -> AttemptId:
    return AttemptId("local", job_id, incarnation, index)


@dataclass
class Story:
    """One job, the decider's state of it, and all that was emitted."""

    policy: Policy = DEFAULT_POLICY
    aps: Aps | None = OPTED_IN
    mode: Mode = Mode.ACT
    requeue: bool = True
    state: JobState | None = None
    now_ms: int = START_MS
    emitted: list[Emitted] = field(default_factory=list)
    facts: list[tuple[Fact, int]] = field(default_factory=list)
    timers: dict[str, TimerSet] = field(default_factory=dict)
    offset: int = 0
    submits: dict[int, int] = field(default_factory=lambda: {0: SUBMIT})

    def take(self, fact: Fact) -> tuple[Emitted, ...]:
        """Record one fact now, and return what the decider concluded from it."""
        self.facts.append((fact, self.now_ms))
        self.state, events = decide(self.state, fact, self.now_ms, {self.policy.digest(): self.policy})
        for event in events:
            if isinstance(event, TimerSet):
                self.timers[timer_key(event.attempt, event.purpose)] = event
            elif isinstance(event, TimerCleared):
                self.timers.pop(timer_key(event.attempt, event.purpose), None)
        self.emitted.extend(events)
        return events

    def wait(self, seconds: float) -> None:
        """Let time pass; what comes due meanwhile fires, in order."""
        end = self.now_ms + int(seconds * 1000)
        while True:
            due = min((timer for timer in self.timers.values()), key=lambda t: t.due_ms, default=None)
            if due is None or due.due_ms > end:
                break
            self.now_ms = max(self.now_ms, due.due_ms)
            self.take(fired(due, self.now_ms))
        self.now_ms = end

    def observe(
        self,
        state: AttemptState,
        index: int = 0,
        *,
        hold: Hold = Hold.NONE,
        excluded: tuple[str, ...] = (),
        nodes: tuple[str, ...] = ("node1", "node2"),
        generation: int | None = None,
        **changes: Any,
    ) -> tuple[Emitted, ...]:
        """The scheduler controller looks; `generation` None: it has the newest open Advice in view."""
        self.now_ms += 100
        self.submits.setdefault(index, self.now_ms // 1000)
        if generation is None:
            generation = max((advice.generation for advice in self.open_advice()), default=0)
        position = Position("slurm:local", 0, self.now_ms)
        seen = JobObserved(
            event_id=derived_id("slurm:local", self.now_ms, "7"),
            cause="",
            cluster="local",
            job_id="7",
            position=position,
            restart_count=index,
            submit_time=self.submits[index],
            start_ms=None if state in (AttemptState.PENDING, AttemptState.HELD) else self.now_ms,
            end_ms=self.now_ms if state is AttemptState.FAILED else None,
            state=state,
            state_reason="None",
            state_description="",
            hold=hold,
            exit_code=256 if state is AttemptState.FAILED else None,
            in_controller=True,
            nodes=() if state in (AttemptState.PENDING, AttemptState.HELD) else nodes,
            excluded_nodes=excluded,
            name="train",
            user="ada",
            partition="main",
            requeue=self.requeue,
            batch=True,
            raw_job_id=7,
            log_paths=("/logs/train.out",),
            workflow_id="train",
            aps=self.aps,
            aps_error=None,
            mode=self.mode,
            mode_reason="asked for by the job",
            advice_generation=generation,
            policy=self.policy.digest(),
            logic=LOGIC,
        )
        return self.take(replace(seen, **changes))

    def line(
        self,
        text: str = "NVRM: Xid 79",
        index: int = 0,
        *,
        node: str | None = "node2",
        fault_class: FaultClass = FaultClass.GPU_HARDWARE,
        scope: Scope = Scope.NODE,
        remedy: Remedy = Remedy.RESTART_EXCLUDING_NODE,
        role: LineRole = LineRole.CAUSE,
        precedence: int = 90,
        peer: str | None = None,
        blamed_rank: int | None = None,
        sequence: int | None = None,
        signature: str = "gpu.xid.79",
        of: AttemptId | None = None,
        stamped: bool = True,
    ) -> tuple[Emitted, ...]:
        """Watch matches a line of the job's output."""
        self.offset += 100
        position = Position("file:/logs/train.out", 0, self.offset)
        evidence = Evidence(
            "/logs/train.out",
            self.offset,
            self.offset // 100,
            self.now_ms if stamped else None,
            self.now_ms,
            node,
            3,
            text,
            sha256(text.encode()).hexdigest(),
        )
        return self.take(
            SignatureMatched(
                derived_id(position.source, position.offset),
                "",
                of or attempt(index),
                position,
                signature,
                fault_class,
                scope,
                remedy,
                role,
                precedence,
                text,
                peer,
                blamed_rank,
                sequence,
                evidence,
            )
        )

    def node_fault(
        self,
        detail: str = "Xid 79: the GPU has fallen off the bus",
        index: int = 0,
        *,
        node: str = "node2",
        distance_ms: int = 0,
        at_ms: int | None = None,
        of: AttemptId | None = None,
        **changes: Any,
    ) -> tuple[Emitted, ...]:
        """The relay brings what the node decider found: a node of the attempt says that it failed."""
        self.offset += 1
        position = Position("topic:recovery.node-decisions/0", 0, self.offset)
        printed_ms = self.now_ms if at_ms is None else at_ms
        path = f"/var/log/nodes/{node}/kern.log"
        evidence = Evidence(path, self.offset, 1, printed_ms, self.now_ms, node, None, detail, "sha256:")
        fault = NodeFault(
            "local",
            node,
            Witness.NODE_LOG,
            "xid-off-the-bus",
            FaultClass.GPU_HARDWARE,
            Scope.NODE,
            Remedy.RESTART_EXCLUDING_NODE,
            LineRole.CAUSE,
            98,
            detail,
            evidence,
        )
        event_id = derived_id(position.source, position.offset)
        return self.take(
            NodeFaultReported(
                event_id, "", of or attempt(index), position, replace(fault, **changes), distance_ms, self.now_ms
            )
        )

    def progress(
        self,
        step: int,
        index: int = 0,
        *,
        seconds: float = 0.2,
        loss: float | None = 1.0,
        line_ms: int | None = 0,
    ) -> tuple[Emitted, ...]:
        """Watch keeps a step; `line_ms` 0: its line says the time of now."""
        self.offset += 100
        self.now_ms += 1
        position = Position("file:/logs/train.out", 0, self.offset)
        event_id = derived_id(position.source, position.offset)
        return self.take(
            ProgressObserved(
                event_id,
                "",
                attempt(index),
                position,
                "megatron",
                step,
                100,
                seconds,
                loss,
                self.now_ms if line_ms == 0 else line_ms,
                self.now_ms,
            )
        )

    def enter(self, phase: Phase, index: int = 0) -> tuple[Emitted, ...]:
        self.offset += 100
        position = Position("file:/logs/train.out", 0, self.offset)
        event_id = derived_id(position.source, position.offset)
        return self.take(PhaseEntered(event_id, "", attempt(index), position, phase, None, self.now_ms))

    def loaded(self, step: int, index: int = 0) -> tuple[Emitted, ...]:
        self.offset += 100
        position = Position("file:/logs/train.out", 0, self.offset)
        event_id = derived_id(position.source, position.offset)
        return self.take(
            CheckpointLoaded(event_id, "", attempt(index), position, "megatron", step, "/ckpt", None, self.now_ms)
        )

    def output_checked(
        self, quiet_s: float, *, error: str | None = None, asked: OutputAsked | None = None
    ) -> tuple[Emitted, ...]:
        """Watch answers the newest question (or `asked`): the output has been quiet for so long."""
        question = asked or self.events(OutputAsked)[-1]
        self.offset += 1
        position = Position("topic:recovery.requests/0", 0, self.offset)
        event_id = derived_id(position.source, position.offset)
        last = None if error else self.now_ms - int(quiet_s * 1000)
        return self.take(
            OutputChecked(event_id, question.event_id, question.attempt, position, last, 0, error, self.now_ms)
        )

    def checkpoint(self, step: int, index: int = 0) -> tuple[Emitted, ...]:
        self.offset += 100
        position = Position("file:/logs/train.out", 0, self.offset)
        event_id = derived_id(position.source, position.offset)
        return self.take(
            CheckpointSaved(event_id, "", attempt(index), position, "megatron", step, "/ckpt", None, self.now_ms)
        )

    def intend(self, operation: Operation, index: int = 0) -> tuple[Emitted, ...]:
        self.offset += 1
        position = Position("topic:recovery.actions/0", 0, self.offset)
        event_id = derived_id(position.source, position.offset)
        return self.take(
            ActionIntended(
                event_id, "", attempt(index), position, f"{operation}", operation, 0, "scontrol ...", (), self.now_ms
            )
        )

    def command(self, kind: CommandKind, index: int = 0) -> tuple[Emitted, ...]:
        self.now_ms += 1
        position = Position("person:ada", 0, self.now_ms)
        event_id = derived_id(position.source, position.offset)
        return self.take(CommandGiven(event_id, "", attempt(index), position, kind, "ada", "maintenance", self.now_ms))

    def answer(self, incident_id: str, *, nodes: tuple[str, ...] = (), error: str | None = None) -> tuple[Emitted, ...]:
        self.offset += 1
        position = Position("ask:attribution", 0, self.offset)
        event_id = derived_id(position.source, position.offset)
        fault_class = None if error else FaultClass.NVLINK
        scope = None if error else Scope.NODE
        return self.take(
            AttributionAnswered(
                event_id,
                "",
                attempt(),
                position,
                "oracle",
                incident_id,
                fault_class,
                scope,
                nodes,
                "a switch tray is bad.",
                error,
                self.now_ms,
                self.now_ms,
            )
        )

    def events(self, kind: type[E]) -> list[E]:
        return [event for event in self.emitted if isinstance(event, kind)]

    def advised(self) -> list[tuple[int, str, tuple[str, ...]]]:
        """(attempt index, desired state, exclusions) of each Advice issued, in order."""
        return [
            (event.attempt.index, event.advice.desired_state.value, event.advice.exclude_nodes)
            for event in self.events(AdviceIssued)
        ]

    def resolved(self) -> list[tuple[int, str, str]]:
        """(attempt index, disposition, resolution) of each ending, in order."""
        return [
            (event.attempt.index, event.disposition.value, event.resolution.value)
            for event in self.events(AdviceResolved)
        ]

    def open_advice(self) -> list[Advice]:
        current: dict[str, Advice] = {}
        for event in self.events(Advice):
            current[event.attempt.key] = event
        return [advice for advice in current.values() if advice.disposition is Disposition.PENDING]

    def run_and_fail(self, index: int = 0) -> None:
        """The attempt runs, logs a GPU fault on node2, and fails."""
        self.observe(AttemptState.RUNNING, index)
        self.line(index=index)
        self.wait(1)
        self.observe(AttemptState.FAILED, index)

    def held_then_running(self, index: int, *, excluded: tuple[str, ...] = ("node2",)) -> None:
        """Our controller brings the attempt `index` about: held, constrained, released."""
        self.observe(AttemptState.HELD, index, hold=Hold.REQUEUE)
        self.observe(AttemptState.HELD, index, hold=Hold.REQUEUE, excluded=excluded)
        self.observe(AttemptState.PENDING, index, excluded=excluded)
        self.observe(AttemptState.RUNNING, index, excluded=excluded, nodes=("node1", "node3"))


def fired(timer: TimerSet, now_ms: int) -> TimerFired:
    """What the relay writes when a timer is due."""
    return TimerFired(
        derived_id("fired", timer.event_id),
        timer.event_id,
        timer.attempt,
        Position(f"relay:{timer_key(timer.attempt, timer.purpose)}", 0, timer.generation),
        timer.purpose,
        timer.generation,
        timer.due_ms,
        now_ms,
    )
