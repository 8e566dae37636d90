"""A small model of one Slurm job, faithful to what was observed on 22.05, and situations around it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from recovery.settings import SacSettings, Settings, SlurmSettings
from sac.ledger import Ledger
from sac.steps import Intent, Refused, Situation
from schemas.aps import Aps
from schemas.decisions import Advice
from schemas.facts import ActionEnded, ActionIntended, ActionRefused, JobObserved
from schemas.identity import AttemptId, Position
from schemas.policy import DEFAULT_POLICY
from schemas.vocabulary import (
    FAILURE_STATES,
    FINAL_STATES,
    AttemptState,
    DesiredState,
    Disposition,
    Hold,
    Mode,
    Operation,
    Outcome,
    Resolution,
)

NODES = frozenset({"node1", "node2", "node3", "node4"})
START_MS = 1_700_000_000_000
ACTING = Settings(
    slurm=SlurmSettings(cluster="c", command_timeout_s=10),
    sac=SacSettings(mode="act", acknowledge_scheduler_actions=True, environment="e", partitions=("main",)),
)
REQUEUE = Aps(environment="e", mode=Mode.ACT, auto_resume_mode="requeue")


@dataclass
class ModelJob:
    """What slurmctld would show, and what its commands do."""

    job_id: str = "7_3"
    restart_count: int = 0
    submit_time: int = START_MS // 1000
    state: AttemptState = AttemptState.RUNNING
    hold: Hold = Hold.NONE
    excluded: tuple[str, ...] = ()
    end_ms: int | None = None
    aps: Aps = REQUEUE
    mode: Mode = Mode.ACT
    requeued_by_command: list[int] = field(default_factory=list)  # the attempts that a requeuehold of ours ended

    def look(self, now_ms: int, generation: int = 0) -> JobObserved:
        return JobObserved(
            event_id=f"look-{now_ms}",
            cause="",
            cluster="c",
            job_id=self.job_id,
            position=Position("slurm:c", 0, now_ms),
            restart_count=self.restart_count,
            submit_time=self.submit_time,
            start_ms=None,
            end_ms=self.end_ms,
            state=self.state,
            state_reason="",
            state_description="",
            hold=self.hold,
            exit_code=None,
            in_controller=True,
            nodes=("node1",) if self.state is AttemptState.RUNNING else (),
            excluded_nodes=self.excluded,
            name="train",
            user="user",
            partition="main",
            requeue=True,
            batch=True,
            raw_job_id=9,
            log_paths=(),
            workflow_id="w",
            aps=self.aps,
            aps_error=None,
            mode=self.mode,
            mode_reason="",
            advice_generation=generation,
            policy=DEFAULT_POLICY.digest(),
            logic=1,
        )

    def requeue(self, now_ms: int, hold: Hold) -> None:
        self.restart_count += 1
        self.submit_time = now_ms // 1000
        self.end_ms = None
        self.hold = hold
        self.state = AttemptState.PENDING if hold is Hold.NONE else AttemptState.HELD

    def end(self, state: AttemptState, now_ms: int) -> None:
        if self.state is AttemptState.RUNNING:
            self.state, self.end_ms = state, now_ms

    def start(self) -> None:
        if self.state is AttemptState.PENDING:
            self.state = AttemptState.RUNNING

    def obey(self, intent: Intent, now_ms: int) -> bool:
        """Do what the command does, whatever the job is by now; returns whether Slurm takes it."""
        match intent.operation:
            case Operation.REQUEUE_HOLD:
                only_incomplete = intent.state is AttemptState.RUNNING
                if self.state in (AttemptState.PENDING, AttemptState.HELD):
                    return False
                if only_incomplete and self.state in FINAL_STATES:
                    return False
                self.requeued_by_command.append(self.restart_count)
                self.requeue(now_ms, Hold.REQUEUE)
            case Operation.UPDATE_CONSTRAINTS:
                if self.state not in (AttemptState.PENDING, AttemptState.HELD) or not set(intent.nodes) <= NODES:
                    return False
                self.excluded = intent.nodes
            case Operation.RELEASE:
                if self.state is AttemptState.HELD:
                    self.state, self.hold = AttemptState.PENDING, Hold.NONE
            case Operation.CANCEL:
                if self.state not in FINAL_STATES:
                    self.state, self.hold, self.end_ms = AttemptState.CANCELLED, Hold.NONE, now_ms
        return True

    @property
    def failed(self) -> bool:
        return self.state in FAILURE_STATES


def attempt_of(job: ModelJob, index: int) -> AttemptId:
    return AttemptId("c", job.job_id, START_MS // 1000, index)


def advice(
    job: ModelJob,
    desired: DesiredState,
    *,
    index: int,
    submit_time: int,
    generation: int,
    exclude: tuple[str, ...] = (),
) -> Advice:
    return Advice(
        event_id=f"advice-{index}-{generation}",
        attempt=attempt_of(job, index),
        submit_time=submit_time,
        generation=generation,
        desired_state=desired,
        exclude_nodes=exclude,
        disposition=Disposition.PENDING,
        resolution=Resolution.UNSPECIFIED,
        reason="",
        explanation="",
        incident_id="",
        workflow_id="w",
        issued_ms=0,
        resolved_ms=None,
        valid_until_ms=None,
        policy=DEFAULT_POLICY.digest(),
        logic=1,
    )


def situation(job: ModelJob, now_ms: int, *known: Advice, attempt: AttemptId | None = None) -> Situation:
    return Situation(job.look(now_ms), attempt, known, False, DEFAULT_POLICY, NODES)


def intended(intent: Intent, now_ms: int) -> ActionIntended:
    return ActionIntended(
        event_id=f"intent-{intent.action_id}-{now_ms}",
        cause=intent.cause,
        attempt=intent.attempt,
        position=Position("sac:c", 0, now_ms),
        action_id=intent.action_id,
        operation=intent.operation,
        generation=intent.generation,
        command="",
        nodes=intent.nodes,
        intended_ms=now_ms,
    )


def ended(intent: ActionIntended, outcome: Outcome, now_ms: int) -> ActionEnded:
    return ActionEnded(
        event_id=f"ended-{intent.event_id}",
        cause=intent.event_id,
        attempt=intent.attempt,
        position=Position("sac:c", 0, now_ms),
        action_id=intent.action_id,
        operation=intent.operation,
        generation=intent.generation,
        outcome=outcome,
        detail="",
        ended_ms=now_ms,
    )


def refuse(ledger: Ledger, refused: Refused, now_ms: int) -> None:
    ledger.add(
        ActionRefused(
            event_id=f"refused-{refused.action_id}-{refused.reason}",
            cause=refused.cause,
            attempt=refused.attempt,
            position=Position("sac:c", 0, now_ms),
            action_id=refused.action_id,
            operation=refused.operation,
            generation=refused.generation,
            reason=refused.reason,
            detail=refused.detail,
            refused_ms=now_ms,
        )
    )


def carry_out(ledger: Ledger, job: ModelJob, intent: Intent, now_ms: int) -> None:
    """The undisturbed way: intent, command, outcome."""
    record = intended(intent, now_ms)
    ledger.add(record)
    ledger.add(ended(record, Outcome.ACCEPTED if job.obey(intent, now_ms) else Outcome.REFUSED, now_ms))


def observing(settings: Settings) -> Settings:
    return settings.model_copy(update={"sac": settings.sac.model_copy(update={"acknowledge_scheduler_actions": False})})


def held_successor(job: ModelJob) -> ModelJob:
    return replace(job, restart_count=1, state=AttemptState.HELD, hold=Hold.REQUEUE)
