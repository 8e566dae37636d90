"""One modelled job, and any history around it: Advice, looks with every fate of a command, and what others do."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st

from recovery.settings import Settings
from sac.act import commands_for
from sac.ledger import Ledger
from sac.plan import SETTLE_TIMEOUTS, plan
from sac.steps import Intent, Refused
from schemas.decisions import Advice
from schemas.vocabulary import AttemptState, DesiredState, Hold, Operation, Outcome
from tests.sac.model import ACTING, NODES, START_MS, ModelJob, advice, attempt_of, ended, intended, refuse, situation

PASSES = st.tuples(
    st.just("pass"), st.sampled_from(["accepted", "accepted", "accepted", "lost", "late", "died before", "died after"])
)
WAITS = st.tuples(st.just("wait"), st.sampled_from([100, 2_500, 2_500, 40_000]))
DISTURBANCES = st.one_of(
    st.tuples(st.just("advise"), st.sampled_from(DesiredState), st.sampled_from([0, 0, 0, 1, 2]), st.booleans()),
    st.tuples(st.just("end"), st.sampled_from([AttemptState.FAILED, AttemptState.COMPLETED, AttemptState.NODE_FAIL])),
    st.tuples(st.just("requeue"), st.sampled_from([Hold.NONE, Hold.REQUEUE])),
    st.tuples(st.just("hold"), st.sampled_from([Hold.USER, Hold.ADMIN])),
    st.tuples(st.just("start")),
)
# Most of a history is looks and time going by, as in life; hypothesis alone would make most of it disturbances.
ROUNDS = st.tuples(st.one_of(st.none(), DISTURBANCES), st.one_of(st.none(), WAITS), PASSES)
HISTORIES = st.tuples(DISTURBANCES, st.lists(ROUNDS, min_size=4, max_size=16)).map(
    lambda drawn: [drawn[0], *(event for round_ in drawn[1] for event in round_ if event is not None)]
)


@dataclass
class World:
    """One job, its Advice and its ledger, and effects still on their way to Slurm."""

    limits: Settings = ACTING
    job: ModelJob = field(default_factory=ModelJob)
    ledger: Ledger = field(default_factory=Ledger)
    advice: dict[int, Advice] = field(default_factory=dict)
    submitted: dict[int, int] = field(default_factory=dict)
    late: list[tuple[int, Intent]] = field(default_factory=list)
    now_ms: int = START_MS + 5_000
    generation: int = 0
    sent: list[Intent] = field(default_factory=list)

    def advise(self, desired: DesiredState, index: int, exclude: bool) -> None:
        self.generation += 1
        submitted = self.submitted.get(index, START_MS // 1000)
        nodes = ("node1", "gone") if exclude else ()
        self.advice[index] = advice(
            self.job, desired, index=index, submit_time=submitted, generation=self.generation, exclude=nodes
        )

    def run_pass(self, fate: str) -> None:
        """Look, plan, and let one fate befall the command."""
        self.arrive()
        self.submitted.setdefault(self.job.restart_count, self.job.submit_time)
        attempt = attempt_of(self.job, self.job.restart_count)
        steps = plan(
            situation(self.job, self.now_ms, *self.advice.values(), attempt=attempt),
            self.ledger,
            self.limits,
            self.now_ms,
        )
        assert len(steps) <= 1
        for step in steps:
            if isinstance(step, Refused):
                assert not self.ledger.refused(step.action_id, step.reason)
                refuse(self.ledger, step, self.now_ms)
            else:
                self.send(step, fate)

    def send(self, step: Intent, fate: str) -> None:
        self.check(step)
        self.sent.append(step)
        record = intended(step, self.now_ms)
        self.ledger.add(record)
        if fate == "accepted":
            taken = self.job.obey(step, self.now_ms)
            self.ledger.add(ended(record, Outcome.ACCEPTED if taken else Outcome.REFUSED, self.now_ms))
        if fate == "died after":
            self.job.obey(step, self.now_ms)
        if fate == "late":  # its effect arrives any time before it is taken as settled
            self.late.append((self.now_ms + int(SETTLE_TIMEOUTS * 10_000) - 1, step))
        if fate in ("late", "lost"):
            self.ledger.add(ended(record, Outcome.UNKNOWN, self.now_ms))

    def arrive(self) -> None:
        for due, intent in [*self.late]:
            if due <= self.now_ms:
                self.late.remove((due, intent))
                self.job.obey(intent, due)

    def check(self, step: Intent) -> None:
        """A command is only for its Advice's attempt, or for the successor that we hold."""
        seen, index = self.job, step.attempt.index
        own = self.ledger.our_hold(step.attempt)
        assert (seen.restart_count == index) or (seen.restart_count == index + 1 and own is not None)
        if seen.restart_count == index + 1:
            assert seen.state is AttemptState.HELD
            assert seen.hold is Hold.REQUEUE
        assert step.target == self.job.job_id
        assert "7" not in [word for command in commands_for(step) for word in command]
        assert set(step.nodes) <= NODES
        assert step.operation is not Operation.UPDATE_CONSTRAINTS or set(step.nodes) >= set(seen.excluded)
        assert not self.late, "nothing is sent while an effect may still arrive"


def play(world: World, events: list[tuple[object, ...]]) -> None:
    for event in events:
        world.now_ms += 50
        match event:
            case ("advise", DesiredState() as desired, int(index), bool(exclude)):
                world.advise(desired, index, exclude)
            case ("pass", str(fate)):
                world.run_pass(fate)
            case ("end", AttemptState() as state):
                world.job.end(state, world.now_ms)
            case ("requeue", Hold() as hold) if world.job.hold is Hold.NONE:
                if world.job.state is not AttemptState.PENDING:
                    world.job.requeue(world.now_ms, hold)
            case ("hold", Hold() as hold) if world.job.state in (AttemptState.PENDING, AttemptState.HELD):
                world.job.state, world.job.hold = AttemptState.HELD, hold
            case ("start",):
                world.job.start()
            case ("wait", int(wait)):
                world.now_ms += wait
                world.arrive()
