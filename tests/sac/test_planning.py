"""Planning is pure: whatever happens around it, no attempt but the right one, and nothing twice."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from sac.act import commands_for
from sac.ledger import Ledger
from sac.plan import plan
from sac.steps import Intent, Refused
from schemas.decisions import Advice
from schemas.vocabulary import AttemptState, DesiredState, Disposition, Hold, Mode, Operation, Outcome, Refusal
from tests.sac.model import (
    ACTING,
    NODES,
    START_MS,
    ModelJob,
    advice,
    attempt_of,
    carry_out,
    ended,
    held_successor,
    intended,
    observing,
    situation,
)
from tests.sac.world import HISTORIES, World, play


@settings(max_examples=250)
@given(HISTORIES)
def test_no_history_makes_it_act_on_another_attempt_or_hold_one_twice(events: list[tuple[object, ...]]) -> None:
    world = World()
    play(world, events)
    ended_by_us = world.job.requeued_by_command
    assert len(ended_by_us) == len(set(ended_by_us)), "an attempt was requeued twice"


@given(HISTORIES, st.sampled_from([Mode.OBSERVE, Mode.DISABLED]), st.booleans())
def test_nothing_is_ever_sent_in_observe_or_disabled(
    events: list[tuple[object, ...]], mode: Mode, acknowledged: bool
) -> None:
    world = World(limits=ACTING if acknowledged else observing(ACTING))
    world.job.mode = mode if acknowledged else Mode.ACT
    play(world, events)
    assert world.sent == []


@given(
    st.sampled_from([AttemptState.RUNNING, AttemptState.FAILED, AttemptState.OUT_OF_MEMORY]),
    st.sets(st.sampled_from(sorted(NODES)), max_size=3),
    st.sets(st.sampled_from([*sorted(NODES), "gone"]), max_size=3),
)
def test_a_restart_converges_and_asking_again_gives_nothing(
    state: AttemptState, already: set[str], wanted: set[str]
) -> None:
    job = ModelJob(state=state, excluded=tuple(sorted(already)), end_ms=START_MS + 4_000)
    ledger, now_ms = Ledger(), START_MS + 5_000
    order = advice(
        job,
        DesiredState.RESTARTED,
        index=0,
        submit_time=job.submit_time,
        generation=1,
        exclude=tuple(sorted(wanted)),
    )
    operations = []
    for _ in range(20):
        now_ms += 500
        for step in plan(situation(job, now_ms, order), ledger, ACTING, now_ms):
            assert isinstance(step, Intent)
            operations.append(step.operation)
            carry_out(ledger, job, step, now_ms)
    job.start()
    assert job.state is AttemptState.RUNNING
    assert job.restart_count == 1
    assert set(job.excluded) == already | (wanted & NODES)
    updates = [Operation.UPDATE_CONSTRAINTS] if (wanted & NODES) - already else []
    assert operations == [Operation.REQUEUE_HOLD, *updates, Operation.RELEASE]
    assert plan(situation(job, now_ms, order), ledger, ACTING, now_ms) == []


def only(steps: list[Intent | Refused]) -> Intent | Refused:
    assert len(steps) == 1
    return steps[0]


@given(st.sampled_from(DesiredState), st.integers(2, 9), st.sampled_from(AttemptState))
def test_delayed_advice_for_attempt_0_does_nothing_to_attempt_2(
    desired: DesiredState, count: int, state: AttemptState
) -> None:
    job = ModelJob(restart_count=count, submit_time=START_MS // 1000 + 60, state=state)
    ledger = Ledger()
    order = advice(job, desired, index=0, submit_time=START_MS // 1000, generation=1)
    steps = plan(situation(job, START_MS, order), ledger, ACTING, START_MS)
    assert all(isinstance(step, Refused) and step.reason is Refusal.OTHER_ATTEMPT for step in steps)


def test_the_same_restart_count_with_another_submit_time_is_another_job() -> None:
    job = ModelJob(submit_time=START_MS // 1000 + 86_400)
    order = advice(job, DesiredState.TERMINATED, index=0, submit_time=START_MS // 1000, generation=1)
    step = only(plan(situation(job, START_MS, order), Ledger(), ACTING, START_MS))
    assert isinstance(step, Refused)
    assert step.reason is Refusal.OTHER_ATTEMPT


def test_a_successor_that_somebody_else_held_is_not_ours() -> None:
    job = held_successor(ModelJob())
    for desired in (DesiredState.RESTARTED, DesiredState.TERMINATED):
        order = advice(job, desired, index=0, submit_time=START_MS // 1000, generation=1)
        step = only(plan(situation(job, START_MS, order), Ledger(), ACTING, START_MS))
        assert isinstance(step, Refused)
        assert step.reason is Refusal.OTHER_ATTEMPT


def with_our_hold(job: ModelJob, order: Advice, outcome: Outcome | None, now_ms: int) -> Ledger:
    """A ledger with the first command for this Advice, and how it ended."""
    ledger = Ledger()
    step = only(plan(situation(job, now_ms, order), ledger, ACTING, now_ms))
    assert isinstance(step, Intent)
    record = intended(step, now_ms)
    ledger.add(record)
    if outcome is not None:
        ledger.add(ended(record, outcome, now_ms))
    return ledger


def test_after_an_unknown_outcome_the_job_stays_held_until_its_effect_can_no_longer_arrive() -> None:
    job = ModelJob()
    order = advice(job, DesiredState.RESTARTED, index=0, submit_time=job.submit_time, generation=1)
    for outcome in (Outcome.UNKNOWN, None):  # None: the controller died before it could say
        ledger = with_our_hold(job, order, outcome, START_MS)
        successor = held_successor(job)
        just_before = START_MS + 30_000 - 1
        assert plan(situation(successor, just_before, order), ledger, ACTING, just_before) == []
        after = START_MS + 30_000
        step = only(plan(situation(successor, after, order), ledger, ACTING, after))
        assert isinstance(step, Intent)
        assert step.operation is Operation.RELEASE


def test_a_command_that_may_still_arrive_stays_the_next_attempt_too() -> None:
    """Somebody else requeued the job meanwhile; the lost requeuehold of attempt 0 would hit attempt 1."""
    job = ModelJob()
    first = advice(job, DesiredState.RESTARTED, index=0, submit_time=job.submit_time, generation=1)
    ledger = with_our_hold(job, first, Outcome.UNKNOWN, START_MS)
    job.requeue(START_MS + 1_000, Hold.NONE)
    job.start()
    second = advice(job, DesiredState.TERMINATED, index=1, submit_time=job.submit_time, generation=2)
    assert plan(situation(job, START_MS + 2_000, second), ledger, ACTING, START_MS + 2_000) == []
    assert len(plan(situation(job, START_MS + 30_000, second), ledger, ACTING, START_MS + 30_000)) == 1


def test_a_hold_of_unknown_outcome_is_asked_again_once_it_can_no_longer_arrive() -> None:
    job = ModelJob()
    order = advice(job, DesiredState.RESTARTED, index=0, submit_time=job.submit_time, generation=1)
    ledger = with_our_hold(job, order, Outcome.UNKNOWN, START_MS)
    assert plan(situation(job, START_MS + 29_999, order), ledger, ACTING, START_MS + 29_999) == []
    again = only(plan(situation(job, START_MS + 30_000, order), ledger, ACTING, START_MS + 30_000))
    assert isinstance(again, Intent)
    ledger.add(intended(again, START_MS + 30_000))
    assert plan(situation(job, START_MS + 59_999, order), ledger, ACTING, START_MS + 59_999) == []


def test_a_hold_that_slurm_accepted_is_never_asked_again() -> None:
    job = ModelJob()
    order = advice(job, DesiredState.RESTARTED, index=0, submit_time=job.submit_time, generation=1)
    ledger = with_our_hold(job, order, Outcome.ACCEPTED, START_MS)
    later = START_MS + 600_000
    step = only(plan(situation(job, later, order), ledger, ACTING, later))
    assert isinstance(step, Refused)
    assert step.reason is Refusal.UNKNOWN_STATE


def test_a_hold_that_slurm_refused_is_asked_again_at_once_and_then_ever_more_rarely() -> None:
    job = ModelJob()
    order = advice(job, DesiredState.RESTARTED, index=0, submit_time=job.submit_time, generation=1)
    ledger = with_our_hold(job, order, Outcome.REFUSED, START_MS)
    failed = replace(job, state=AttemptState.FAILED)
    second = only(plan(situation(failed, START_MS + 100, order), ledger, ACTING, START_MS + 100))
    assert isinstance(second, Intent)
    record = intended(second, START_MS + 100)
    ledger.add(record)
    ledger.add(ended(record, Outcome.REFUSED, START_MS + 100))
    third = only(plan(situation(failed, START_MS + 200, order), ledger, ACTING, START_MS + 200))
    assert isinstance(third, Refused)
    assert third.reason is Refusal.SCHEDULER_REFUSED
    last = START_MS + 100 + 20_000
    fourth = only(plan(situation(failed, last, order), ledger, ACTING, last))
    assert isinstance(fourth, Intent)
    assert fourth.action_id == second.action_id


def test_a_hold_by_somebody_else_on_our_successor_is_respected() -> None:
    job = ModelJob()
    for hold in (Hold.USER, Hold.ADMIN):
        for desired in (DesiredState.RESTARTED, DesiredState.TERMINATED):
            order = advice(job, desired, index=0, submit_time=job.submit_time, generation=1, exclude=("node1",))
            restart = replace(order, desired_state=DesiredState.RESTARTED)
            ledger = with_our_hold(job, restart, Outcome.ACCEPTED, START_MS)
            successor = replace(held_successor(job), hold=hold)
            step = only(plan(situation(successor, START_MS + 9_000, order), ledger, ACTING, START_MS + 9_000))
            assert isinstance(step, Refused)
            assert step.reason is Refusal.FOREIGN_HOLD


def test_what_slurm_accepted_is_not_asked_again_though_it_does_not_show() -> None:
    job = ModelJob(state=AttemptState.HELD, hold=Hold.USER)
    order = advice(job, DesiredState.RELEASED, index=0, submit_time=job.submit_time, generation=1)
    ledger = with_our_hold(job, order, Outcome.ACCEPTED, START_MS)
    step = only(plan(situation(job, START_MS + 60_000, order), ledger, ACTING, START_MS + 60_000))
    assert isinstance(step, Refused)
    assert step.reason is Refusal.UNKNOWN_STATE


def test_a_job_is_not_released_within_the_second_in_which_it_was_requeued() -> None:
    job = ModelJob()
    order = advice(job, DesiredState.RESTARTED, index=0, submit_time=job.submit_time, generation=1)
    ledger = with_our_hold(job, order, Outcome.ACCEPTED, START_MS)
    successor = held_successor(job)
    assert plan(situation(successor, START_MS + 1_999, order), ledger, ACTING, START_MS + 1_999) == []
    release = only(plan(situation(successor, START_MS + 2_000, order), ledger, ACTING, START_MS + 2_000))
    assert isinstance(release, Intent)
    assert commands_for(release) == (
        ("scontrol", "update", "JobId=7_3", "StartTime=now"),
        ("scontrol", "release", "7_3"),
    )


def test_what_runs_is_requeued_only_while_it_is_incomplete() -> None:
    """Plain requeuehold restarts a job that has completed in the meantime."""
    for state, words in ((AttemptState.RUNNING, ("Incomplete", "7_3")), (AttemptState.FAILED, ("7_3",))):
        job = ModelJob(state=state)
        order = advice(job, DesiredState.RESTARTED, index=0, submit_time=job.submit_time, generation=1)
        step = only(plan(situation(job, START_MS, order), Ledger(), ACTING, START_MS))
        assert isinstance(step, Intent)
        assert commands_for(step) == (("scontrol", "requeuehold", *words),)


def test_expired_advice_is_stale_but_a_restart_that_was_begun_is_finished() -> None:
    job = ModelJob()
    order = replace(
        advice(job, DesiredState.RESTARTED, index=0, submit_time=job.submit_time, generation=1),
        valid_until_ms=START_MS + 1_000,
    )
    ledger = with_our_hold(job, order, Outcome.ACCEPTED, START_MS)
    later = START_MS + 60_000
    stale = only(plan(situation(job, later, order), Ledger(), ACTING, later))
    assert isinstance(stale, Refused)
    assert stale.reason is Refusal.STALE
    release = only(plan(situation(held_successor(job), later, order), ledger, ACTING, later))
    assert isinstance(release, Intent)
    assert release.operation is Operation.RELEASE


def test_an_early_hold_needs_a_fresh_failure_a_budget_and_no_advice_yet() -> None:
    failed = ModelJob(state=AttemptState.FAILED, end_ms=START_MS)
    attempt = attempt_of(failed, 0)

    def steps(job: ModelJob, now_ms: int = START_MS + 500, *known: Advice) -> list[Intent | Refused]:
        return plan(situation(job, now_ms, *known, attempt=attempt), Ledger(), ACTING, now_ms)

    hold = only(steps(failed))
    assert isinstance(hold, Intent)
    assert (hold.operation, hold.generation, hold.cause) == (Operation.REQUEUE_HOLD, 0, "")
    given_up = replace(
        advice(failed, DesiredState.TERMINATED, index=0, submit_time=failed.submit_time, generation=1),
        disposition=Disposition.CONVERGED,
    )
    assert steps(failed, START_MS + 500, given_up) == []
    assert steps(failed, START_MS + 120_000) == []
    assert steps(replace(failed, state=AttemptState.CANCELLED)) == []
    assert steps(replace(failed, state=AttemptState.COMPLETED)) == []
    assert steps(replace(failed, restart_count=3)) == []
    assert steps(replace(failed, aps=replace(failed.aps, max_requeue_times=0))) == []
    assert steps(replace(failed, aps=replace(failed.aps, auto_resume_mode=None))) == []
    assert plan(situation(failed, START_MS, attempt=None), Ledger(), ACTING, START_MS) == []


def test_a_heterogeneous_job_is_addressed_by_its_leaders_raw_id_and_every_component_excludes() -> None:
    leader = ModelJob(job_id="9+0")
    order = advice(
        leader, DesiredState.RESTARTED, index=0, submit_time=leader.submit_time, generation=1, exclude=("node2",)
    )
    ledger = with_our_hold(leader, order, Outcome.ACCEPTED, START_MS)
    first, second = held_successor(leader), replace(held_successor(leader), job_id="9+1")
    targets, now_ms = [], START_MS + 5_000
    for _ in range(4):
        parts = (first.look(now_ms), replace(second.look(now_ms), raw_job_id=10))
        whole = replace(situation(first, now_ms, order), components=parts)
        for step in plan(whole, ledger, ACTING, now_ms):
            assert isinstance(step, Intent)
            targets.append((step.operation, step.target))
            carry_out(ledger, first if step.target == "9" else second, step, now_ms)
    assert targets == [
        (Operation.UPDATE_CONSTRAINTS, "9"),
        (Operation.UPDATE_CONSTRAINTS, "10"),
        (Operation.RELEASE, "9"),
    ]
    component = advice(second, DesiredState.TERMINATED, index=1, submit_time=second.submit_time, generation=1)
    step = only(plan(situation(second, now_ms, component), Ledger(), ACTING, now_ms))
    assert isinstance(step, Refused)
    assert step.reason is Refusal.NOT_REQUEUEABLE
