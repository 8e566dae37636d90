"""When not to restart: limits, no progress, the user's own error, other people's holds, and a quarantined job."""

from __future__ import annotations

from dataclasses import replace

import pytest

from schemas.decisions import AdviceWithheld, AnomalyDetected, FactParked, JobClosed, QuarantineEnded
from schemas.facts import QuarantineLifted
from schemas.identity import Position
from schemas.policy import DEFAULT_POLICY, Policy
from schemas.vocabulary import AttemptState, CommandKind, DesiredState, FaultClass, Hold, Mode, Refusal, Remedy, Scope
from streams.decide.decide import MissingPolicy, park
from streams.decide.retry import judge
from streams.decide.state import Finding
from tests.decide.story import OPTED_IN, Story


def refusals(story: Story) -> list[Refusal]:
    return [event.reason for event in story.events(AdviceWithheld)]


def test_a_user_error_is_stopped_with_the_reason_and_never_retried() -> None:
    story = Story()
    story.observe(AttemptState.RUNNING)
    story.line(
        "ModuleNotFoundError: No module named 'apex'",
        fault_class=FaultClass.USER_CODE,
        scope=Scope.JOB,
        remedy=Remedy.TERMINATE_NO_RETRY,
    )
    story.observe(AttemptState.FAILED)
    story.wait(2)
    assert story.advised() == [(0, "TERMINATED", ())]
    assert "ModuleNotFoundError" in story.open_advice()[0].explanation


def test_the_lower_of_the_sites_and_the_jobs_limit_stops_the_restarts() -> None:
    story = Story(aps=replace(OPTED_IN, max_requeue_times=1), policy=Policy(max_requeue_times=9))
    story.run_and_fail(0)
    story.wait(2)
    story.held_then_running(1)
    story.line("Xid", 1, node="node1")
    story.observe(AttemptState.FAILED, 1)
    story.wait(2)
    assert [state for _, state, _ in story.advised()] == ["RESTARTED", "TERMINATED"]
    assert refusals(story) == [Refusal.REQUEUE_LIMIT]


def test_failures_without_a_new_checkpoint_stop_after_n() -> None:
    story = Story(
        policy=Policy(max_requeue_times=9, max_failures_without_checkpoint=2),
        aps=replace(OPTED_IN, max_requeue_times=9),
    )
    for index in range(2):
        story.observe(AttemptState.RUNNING, index)
        story.line(f"Xid {index}", index)
        story.observe(AttemptState.FAILED, index)
        story.wait(2)
        if index == 0:
            story.held_then_running(1)
    assert [state for _, state, _ in story.advised()] == ["RESTARTED", "TERMINATED"]
    assert refusals(story) == [Refusal.NO_NEW_CHECKPOINT]


def test_a_new_checkpoint_starts_the_count_anew_and_an_old_one_does_not() -> None:
    story = Story(
        policy=Policy(max_requeue_times=9, max_failures_without_checkpoint=2),
        aps=replace(OPTED_IN, max_requeue_times=9),
    )
    for index, step in enumerate([20, 40, 40, 40]):
        if index:
            story.held_then_running(index)
        else:
            story.observe(AttemptState.RUNNING)
        story.checkpoint(step, index)
        story.line(f"Xid {index}", index, node="node1")
        story.observe(AttemptState.FAILED, index)
        story.wait(2)
    assert [state for _, state, _ in story.advised()] == ["RESTARTED", "RESTARTED", "RESTARTED", "TERMINATED"]


def test_observe_mode_still_gets_advice_but_disabled_gets_none() -> None:
    for mode, expected in [(Mode.OBSERVE, 1), (Mode.DISABLED, 0)]:
        story = Story(mode=mode)
        story.run_and_fail()
        story.wait(12)
        assert len(story.advised()) == expected


def test_a_job_without_a_policy_of_its_own_is_never_advised() -> None:
    story = Story(aps=None, mode=Mode.DISABLED)
    story.run_and_fail()
    story.wait(20)
    assert story.advised() == []


def test_a_job_that_slurm_cannot_requeue_is_told_so() -> None:
    story = Story(requeue=False)
    story.run_and_fail()
    story.wait(2)
    assert story.advised() == []
    assert refusals(story) == [Refusal.NOT_REQUEUEABLE]


@pytest.mark.parametrize("state", [AttemptState.COMPLETED, AttemptState.CANCELLED, AttemptState.TIMEOUT])
def test_an_attempt_that_ended_otherwise_is_not_restarted(state: AttemptState) -> None:
    story = Story()
    story.observe(AttemptState.RUNNING)
    story.line()
    story.observe(state)
    story.wait(60)
    assert story.advised() == []
    assert refusals(story) == [Refusal.ENDED_WELL]


def test_exclusions_have_a_limit_and_never_only_grow() -> None:
    story = Story(policy=Policy(max_excluded_nodes=1), aps=replace(OPTED_IN, max_requeue_times=9))
    story.run_and_fail(0)
    story.wait(2)
    story.held_then_running(1)
    story.line("Xid", 1, node="node1")
    story.observe(AttemptState.FAILED, 1, nodes=("node1", "node3"))
    story.wait(2)
    assert story.advised() == [(0, "RESTARTED", ("node2",)), (1, "RESTARTED", ())]
    assert refusals(story) == [Refusal.EXCLUSION_LIMIT]


def test_an_attempt_that_still_runs_is_left_alone_where_progress_was_never_seen() -> None:
    story = Story()
    story.observe(AttemptState.RUNNING)
    story.line()
    story.wait(3600)
    assert story.advised() == []
    assert refusals(story) == [Refusal.UNKNOWN_STATE]


def test_an_attempt_that_stands_still_after_a_fault_gets_advice_that_ages_and_is_renewed() -> None:
    story = Story()
    story.observe(AttemptState.RUNNING)
    story.progress(10)
    story.line()
    story.wait(200)
    assert story.advised() == [(0, "RESTARTED", ("node2",))]
    first = story.open_advice()[0]
    assert first.valid_until_ms is not None
    story.wait(DEFAULT_POLICY.advice_valid_s)
    renewed = story.open_advice()[0]
    assert renewed.generation > first.generation
    assert renewed.valid_until_ms is not None
    assert renewed.valid_until_ms > first.valid_until_ms


def test_progress_after_the_fault_dismisses_the_incident() -> None:
    story = Story()
    story.observe(AttemptState.RUNNING)
    story.progress(10)
    story.line()
    story.wait(60)
    story.progress(80)
    story.wait(600)
    assert story.advised() == []
    assert refusals(story) == [Refusal.PROGRESS_RESUMED]


def test_progress_withdraws_advice_against_a_running_attempt() -> None:
    story = Story()
    story.observe(AttemptState.RUNNING)
    story.progress(10)
    story.line()
    story.wait(200)
    story.progress(80)
    assert story.resolved() == [(0, "ABANDONED", "PROGRESS_RESUMED")]


def test_advice_for_an_older_attempt_is_abandoned_when_a_later_one_appears() -> None:
    story = Story()
    story.run_and_fail()
    story.wait(2)
    story.observe(AttemptState.RUNNING, 2)
    assert story.resolved() == [(0, "ABANDONED", "ATTEMPT_SUPERSEDED")]


def test_a_job_id_used_again_inherits_nothing() -> None:
    story = Story()
    story.run_and_fail()
    story.wait(2)
    story.submits[0] = story.now_ms // 1000 + 50
    story.observe(AttemptState.RUNNING, 0)
    assert story.resolved() == [(0, "ABANDONED", "ATTEMPT_SUPERSEDED")]
    assert story.state is not None
    assert [a.id.incarnation for a in story.state.attempts] == [story.submits[0]]
    assert story.state.excluded == ()


def test_a_restart_count_seen_before_its_submit_time_is_no_new_incarnation() -> None:
    story = Story()
    story.observe(AttemptState.RUNNING)
    story.observe(AttemptState.PENDING, 1, submit_time=story.submits[0])
    story.submits[1] = story.now_ms // 1000 + 3
    story.observe(AttemptState.PENDING, 1)
    assert story.state is not None
    assert {a.id.incarnation for a in story.state.attempts} == {story.submits[0]}


def test_a_person_may_release_a_held_attempt_and_the_release_converges() -> None:
    story = Story()
    story.observe(AttemptState.HELD, hold=Hold.USER)
    story.command(CommandKind.RELEASE)
    assert story.advised() == [(0, "RELEASED", ())]
    story.observe(AttemptState.PENDING)
    assert story.resolved() == [(0, "CONVERGED", "ALREADY_SATISFIED")]


def test_a_command_for_an_older_attempt_is_refused() -> None:
    story = Story()
    story.observe(AttemptState.RUNNING)
    story.observe(AttemptState.RUNNING, 1)
    story.command(CommandKind.TERMINATE, 0)
    assert story.advised() == []
    assert refusals(story) == [Refusal.OTHER_ATTEMPT]


def test_termination_converges_on_the_cancelled_successor_that_was_held() -> None:
    story = Story(aps=replace(OPTED_IN, max_requeue_times=0))
    story.run_and_fail()
    story.observe(AttemptState.HELD, 1, hold=Hold.REQUEUE)
    story.wait(3)
    assert story.advised() == [(0, "TERMINATED", ())]
    story.observe(AttemptState.CANCELLED, 1)
    assert story.resolved() == [(0, "CONVERGED", "ALREADY_SATISFIED")]


def test_a_parked_record_quarantines_the_job_until_a_person_lifts_it() -> None:
    story = Story()
    story.observe(AttemptState.RUNNING)
    story.state, events = park(story.state, "local/7", ("recovery.journal", 0, 5), "unreadable", story.now_ms)
    assert any(isinstance(event, FactParked) for event in events)
    story.line()
    story.observe(AttemptState.FAILED)
    story.wait(3)
    assert story.advised() == []
    assert refusals(story) == [Refusal.QUARANTINED]
    story.take(
        QuarantineLifted("lift", "", "local", "7", Position("person:ada", 0, 1), "ada", "looked at it", story.now_ms)
    )
    assert len(story.events(QuarantineEnded)) == 1
    assert story.state is not None
    assert not story.state.quarantined


def test_a_final_job_closes_after_a_day_and_later_facts_are_late() -> None:
    story = Story()
    story.observe(AttemptState.RUNNING)
    story.observe(AttemptState.COMPLETED)
    story.wait(DEFAULT_POLICY.job_close_s + 1)
    assert len(story.events(JobClosed)) == 1
    assert story.state is not None
    assert story.state.attempts == ()
    story.line()
    story.observe(AttemptState.RUNNING)
    assert story.events(AnomalyDetected) == []
    assert story.state.attempts == ()


def test_a_closed_jobs_id_may_be_used_again() -> None:
    story = Story()
    story.observe(AttemptState.COMPLETED)
    story.wait(DEFAULT_POLICY.job_close_s + 1)
    story.submits[0] = story.now_ms // 1000
    story.observe(AttemptState.RUNNING)
    assert story.state is not None
    assert [a.id.incarnation for a in story.state.attempts] == [story.submits[0]]


def test_a_fact_under_an_unknown_policy_stops_the_worker_instead_of_guessing() -> None:
    story = Story()
    with pytest.raises(MissingPolicy, match="sha256:none"):
        story.observe(AttemptState.RUNNING, policy="sha256:none")
    with pytest.raises(MissingPolicy, match="logic 99"):
        story.observe(AttemptState.RUNNING, logic=99)


def test_the_attribution_providers_answer_is_adopted_within_its_deadline() -> None:
    story = Story(policy=Policy(attribution_deadline_s=20))
    story.observe(AttemptState.RUNNING)
    story.line(node=None)
    story.observe(AttemptState.FAILED)
    story.wait(5)
    assert story.advised() == []
    story.answer(story.events(AnomalyDetected)[0].incident_id, nodes=("node1", "elsewhere"))
    assert story.advised() == [(0, "RESTARTED", ("node1",))]


@pytest.mark.parametrize("error", ["timeout", None])
def test_without_an_answer_the_decision_is_made_all_the_same(error: str | None) -> None:
    story = Story(policy=Policy(attribution_deadline_s=20))
    story.observe(AttemptState.RUNNING)
    story.line()
    story.observe(AttemptState.FAILED)
    story.wait(5)
    if error is not None:
        story.answer(story.events(AnomalyDetected)[0].incident_id, error=error)
    else:
        story.wait(20)
    assert story.advised() == [(0, "RESTARTED", ("node2",))]


@pytest.mark.parametrize("remedy", [Remedy.IGNORE, Remedy.WAIT])
def test_a_failed_attempt_is_never_left_held_because_its_lines_look_harmless(remedy: Remedy) -> None:
    story = Story()
    story.observe(AttemptState.RUNNING)
    story.observe(AttemptState.FAILED)
    assert story.state is not None
    finding = Finding(FaultClass.BENIGN_NOISE, Scope.UNKNOWN, remedy, (), "A warning.")
    verdict = judge(story.state, story.state.attempts[0], finding, story.policy)
    assert verdict.desired is DesiredState.RESTARTED
