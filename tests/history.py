"""Builds a job's history event by event: what the journal and the decisions hold, from the event classes alone."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any

from schemas.aps import Aps
from schemas.decisions import (
    Advice,
    AdviceIssued,
    AdviceResolved,
    AnomalyDetected,
    AttemptMoved,
    AttemptOpened,
    AttributionMade,
    Decision,
)
from schemas.facts import (
    ActionEnded,
    ActionIntended,
    ActionRefused,
    CheckpointLoaded,
    CheckpointSaved,
    Evidence,
    Fact,
    JobObserved,
    ProgressObserved,
    SignatureMatched,
)
from schemas.identity import AttemptId, Position, derived_id
from schemas.policy import DEFAULT_POLICY, LOGIC
from schemas.vocabulary import (
    AnomalyKind,
    AttemptState,
    DesiredState,
    Disposition,
    FaultClass,
    Hold,
    LineRole,
    Mode,
    Operation,
    Outcome,
    Refusal,
    Remedy,
    Resolution,
    Scope,
)

START_MS = 1_770_000_000_000


@dataclass(frozen=True)
class Recorded:
    """An event, the time of its record, and the CloudEvents source that wrote it."""

    event: Fact | Decision
    timestamp_ms: int
    producer: str


@dataclass
class History:
    """One job's records, written in order; `tick` moves the clock and each call records at its present time."""

    job_id: str = "42"
    cluster: str = "local"
    workflow_id: str = "training-run"
    mode: Mode = Mode.ACT
    now_ms: int = START_MS
    records: list[Recorded] = field(default_factory=list)
    attempt: AttemptId = field(init=False)
    submit_time: int = field(init=False)
    cause: str = ""
    _offset: int = 0
    _state: dict[int, AttemptState] = field(default_factory=dict)
    _nodes: dict[int, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.submit_time = self.now_ms // 1000
        self.attempt = AttemptId(self.cluster, self.job_id, self.submit_time, 0)

    def tick(self, ms: int) -> None:
        self.now_ms += ms

    def fact(self, event: Fact, producer: str) -> str:
        self.records.append(Recorded(event, self.now_ms, producer))
        self.cause = event.event_id
        return event.event_id

    def decision(self, event: Decision) -> str:
        self.records.append(Recorded(event, self.now_ms, "decide"))
        return event.event_id

    def next_id(self, *what: str | int) -> str:
        return derived_id("history", self.cluster, self.job_id, self.submit_time, len(self.records), *what)

    def position(self, source: str) -> Position:
        self._offset += 100
        return Position(source, 0, self.now_ms if source.startswith("slurm") else self._offset)

    def next_attempt(self) -> None:
        """Slurm requeued the job: what follows concerns its next attempt."""
        self.attempt = self.attempt.successor()
        self.submit_time = self.now_ms // 1000

    def observed(self, state: AttemptState, nodes: tuple[str, ...] = (), **changes: Any) -> None:
        """The controller looks, and the decider opens and moves the attempt accordingly."""
        seen = JobObserved(
            event_id=self.next_id("look"),
            cause="",
            cluster=self.cluster,
            job_id=self.job_id,
            position=self.position(f"slurm:{self.cluster}"),
            restart_count=self.attempt.index,
            submit_time=self.submit_time,
            start_ms=self.now_ms if nodes else None,
            end_ms=None,
            state=state,
            state_reason="None",
            state_description="",
            hold=Hold.NONE,
            exit_code=None,
            in_controller=True,
            nodes=nodes,
            excluded_nodes=(),
            name="train",
            user="ada",
            partition="gpu",
            requeue=True,
            batch=True,
            raw_job_id=42,
            log_paths=(f"/logs/{self.job_id}.out",),
            workflow_id=self.workflow_id,
            aps=Aps(workflow_id=self.workflow_id, workflow_name="Nightly training", mode=self.mode),
            aps_error=None,
            mode=self.mode,
            mode_reason="asked for by the job's APS",
            advice_generation=0,
            policy=DEFAULT_POLICY.digest(),
            logic=LOGIC,
        )
        self.fact(replace(seen, **changes), "sac")
        self._open(seen)
        self._move(state, nodes)

    def _open(self, seen: JobObserved) -> None:
        if self.attempt.index in self._state:
            return
        before = self.attempt.index - 1
        if self._state.get(before, AttemptState.FAILED) not in (AttemptState.FAILED, AttemptState.REQUEUED):
            self._moved(before, AttemptState.REQUEUED, ())
        self._state[self.attempt.index] = AttemptState.UNKNOWN
        self.decision(
            AttemptOpened(
                self.next_id("opened"),
                self.cause,
                self.attempt,
                self.now_ms,
                seen.submit_time,
                seen.name,
                seen.user,
                seen.partition,
                seen.workflow_id,
                seen.mode,
                seen.mode_reason,
            )
        )

    def _move(self, state: AttemptState, nodes: tuple[str, ...]) -> None:
        if self._state[self.attempt.index] is not state:
            self._moved(self.attempt.index, state, nodes)

    def _moved(self, index: int, state: AttemptState, nodes: tuple[str, ...]) -> None:
        attempt = replace(self.attempt, index=index)
        before = self._state[index]
        self._state[index] = state
        self.decision(
            AttemptMoved(
                self.next_id("moved"),
                self.cause,
                attempt,
                self.now_ms,
                before,
                state,
                nodes,
                f"Slurm says {state}",
                self.now_ms,
            )
        )

    def progress(self, step: int, loss: float = 1.5) -> None:
        at = self.now_ms
        position = self.position(f"file:/logs/{self.job_id}.out")
        event_id = self.next_id("progress")
        self.fact(
            ProgressObserved(event_id, "", self.attempt, position, "megatron", step, 1000, 0.2, loss, at, at), "watch"
        )

    def saved(self, step: int) -> None:
        at = self.now_ms
        position = self.position(f"file:/logs/{self.job_id}.out")
        event_id = self.next_id("saved")
        self.fact(CheckpointSaved(event_id, "", self.attempt, position, "megatron", step, "/ckpt", at, at), "watch")

    def loaded(self, step: int) -> None:
        at = self.now_ms
        position = self.position(f"file:/logs/{self.job_id}.out")
        event_id = self.next_id("loaded")
        self.fact(CheckpointLoaded(event_id, "", self.attempt, position, "megatron", step, "/ckpt", at, at), "watch")

    def line(self, text: str, node: str, role: LineRole = LineRole.CAUSE) -> Evidence:
        """Watch reads a fault line 50 ms after it was written."""
        self._offset += len(text) + 1
        digest = sha256(text.encode()).hexdigest()
        path = f"/logs/{self.job_id}.out"
        at = self.now_ms
        evidence = Evidence(path, self._offset, self._offset // 10, at - 50, at, node, 3, text, digest)
        cause = role is LineRole.CAUSE
        self.fact(
            SignatureMatched(
                self.next_id("line"),
                "",
                self.attempt,
                self.position(f"file:{path}"),
                "gpu.xid.79" if cause else "nccl.peer_closed",
                FaultClass.GPU_HARDWARE if cause else FaultClass.NCCL_TIMEOUT,
                Scope.NODE if cause else Scope.JOB,
                Remedy.RESTART_EXCLUDING_NODE if cause else Remedy.RESTART,
                role,
                90 if cause else 20,
                "Xid 79" if cause else "peer closed the connection",
                None,
                None,
                None,
                evidence,
            ),
            "watch",
        )
        return evidence

    @property
    def incident_id(self) -> str:
        return derived_id("incident", self.attempt.key, 0)

    def anomaly(self, line: Evidence | None) -> None:
        kind = AnomalyKind.CRASH_STATE if line is None else AnomalyKind.CRASH_LOG
        fault, detail = (
            (FaultClass.UNKNOWN, "Slurm reports FAILED") if line is None else (FaultClass.GPU_HARDWARE, "Xid 79")
        )
        self.decision(
            AnomalyDetected(
                self.next_id("anomaly"),
                self.cause,
                self.attempt,
                self.now_ms,
                self.incident_id,
                kind,
                fault,
                detail,
                line,
            )
        )

    def attribution(self, root: Evidence, *secondary: Evidence) -> None:
        self.decision(
            AttributionMade(
                self.next_id("attribution"),
                self.cause,
                self.attempt,
                self.now_ms,
                self.incident_id,
                FaultClass.GPU_HARDWARE,
                Scope.NODE,
                Remedy.RESTART_EXCLUDING_NODE,
                ("node2",),
                "gpu.xid.79",
                root,
                secondary,
                1 + len(secondary),
                0.95,
                "rules",
                "Xid 79 on node2: a GPU fell off the bus; the other lines are its consequences.",
            )
        )

    def advice(self, generation: int = 1, valid_until_ms: int | None = None) -> Advice:
        event_id = self.next_id("advice")
        advice = Advice(
            event_id,
            self.attempt,
            self.submit_time,
            generation,
            DesiredState.RESTARTED,
            ("node2",),
            Disposition.PENDING,
            Resolution.UNSPECIFIED,
            "gpu_hardware",
            "Restart from the last checkpoint without node2, whose GPU fell off the bus.",
            self.incident_id,
            self.workflow_id,
            self.now_ms,
            None,
            valid_until_ms,
            DEFAULT_POLICY.digest(),
            LOGIC,
        )
        self.decision(AdviceIssued(event_id, self.cause, self.attempt, self.now_ms, advice))
        return advice

    def acted(self, advice: Advice, operation: Operation, outcome: Outcome = Outcome.ACCEPTED) -> None:
        """The controller sends a command and hears of it 20 ms later."""
        action = derived_id("action", advice.attempt.key, operation, advice.generation)
        nodes = advice.exclude_nodes if operation is Operation.UPDATE_CONSTRAINTS else ()
        command = f"scontrol {operation} {self.job_id}"
        for ending in (False, True):
            position = self.position("topic:recovery.actions/0")
            event_id = self.next_id(action)
            if not ending:
                event: Fact = ActionIntended(
                    event_id,
                    advice.event_id,
                    advice.attempt,
                    position,
                    action,
                    operation,
                    advice.generation,
                    command,
                    nodes,
                    self.now_ms,
                )
            else:
                event = ActionEnded(
                    event_id,
                    self.cause,
                    advice.attempt,
                    position,
                    action,
                    operation,
                    advice.generation,
                    outcome,
                    "",
                    self.now_ms,
                )
            self.fact(event, "sac")
            self.tick(20)

    def refused(self, advice: Advice, operation: Operation, reason: Refusal, detail: str) -> None:
        action = derived_id("action", advice.attempt.key, operation, advice.generation)
        position = self.position("topic:recovery.actions/0")
        event_id = self.next_id("refused")
        self.fact(
            ActionRefused(
                event_id,
                advice.event_id,
                advice.attempt,
                position,
                action,
                operation,
                advice.generation,
                reason,
                detail,
                self.now_ms,
            ),
            "sac",
        )

    def resolved(self, advice: Advice, disposition: Disposition, resolution: Resolution, detail: str) -> None:
        self.decision(
            AdviceResolved(
                self.next_id("resolved"),
                self.cause,
                advice.attempt,
                self.now_ms,
                advice.generation,
                disposition,
                resolution,
                detail,
            )
        )
