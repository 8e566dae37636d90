"""A straggler is slow for good, against its own past; recorded by default, restarted only where that is enabled."""

from __future__ import annotations

import pytest

from schemas.decisions import AdviceWithheld, AnomalyDetected
from schemas.policy import DEFAULT_POLICY, Policy
from schemas.vocabulary import AnomalyKind, AttemptState, FaultClass, LineRole, Phase, Refusal, Remedy, Scope, Witness
from tests.decide.story import Story

N = DEFAULT_POLICY.straggler_samples


def trained(policy: Policy = DEFAULT_POLICY, steps: int = 10) -> Story:
    story = Story(policy=policy)
    story.observe(AttemptState.RUNNING)
    for step in range(steps):
        story.progress(step)
        story.wait(60)
    return story


def go_on(story: Story, seconds: float, steps: int) -> None:
    start = 1000 + len(story.facts)
    for step in range(start, start + steps):
        story.progress(step, seconds=seconds)
        story.wait(60)


def slow_node(every_s: int) -> Story:
    """A metric of node2 tells that its clock fell; then each step that is kept is slow, as many as it takes."""
    story = trained(Policy(straggler_recovery=1))
    story.node_fault(
        "clocks at 300 MHz",
        witness=Witness.NODE_METRIC,
        fault_class=FaultClass.STRAGGLER,
        role=LineRole.CONSEQUENCE,
    )
    for step in range(100, 100 + N):
        story.wait(every_s)
        story.progress(step, seconds=0.9)
    return story


def kinds(story: Story) -> list[AnomalyKind]:
    return [event.kind for event in story.events(AnomalyDetected)]


def test_sustained_slowness_is_recorded_once_and_not_acted_on() -> None:
    story = trained()
    go_on(story, 0.8, 3 * N)
    assert kinds(story) == [AnomalyKind.STRAGGLER]
    assert [event.reason for event in story.events(AdviceWithheld)] == [Refusal.RECORDED_ONLY]
    assert story.advised() == []


def test_a_few_slow_steps_are_nothing() -> None:
    story = trained()
    for _ in range(5):
        go_on(story, 0.8, N - 1)
        go_on(story, 0.2, 1)
    assert kinds(story) == []


def test_slow_drift_moves_the_baseline() -> None:
    story = trained()
    seconds = 0.2
    for _ in range(100):
        go_on(story, seconds, 1)
        seconds *= 1.01
    assert kinds(story) == []


def test_steps_that_include_a_save_or_an_evaluation_do_not_count() -> None:
    story = trained()
    for _ in range(3 * N):
        story.enter(Phase.EVALUATION)
        go_on(story, 5.0, 1)
    assert kinds(story) == []


def test_steps_that_follow_a_completed_save_do_not_count() -> None:
    story = trained()
    for number in range(3 * N):
        story.enter(Phase.CHECKPOINT)
        story.checkpoint(number)
        go_on(story, 5.0, 1)
    assert kinds(story) == []


def test_a_slow_first_step_is_no_baseline() -> None:
    story = Story()
    story.observe(AttemptState.RUNNING)
    story.progress(0, seconds=90.0)
    go_on(story, 0.2, 10)
    go_on(story, 0.5, N)
    assert kinds(story) == [AnomalyKind.STRAGGLER]


def test_where_enabled_it_is_restarted_without_blaming_a_node() -> None:
    story = trained(Policy(straggler_recovery=1))
    go_on(story, 0.8, N)
    assert story.advised() == [(0, "RESTARTED", ())]


@pytest.mark.parametrize("every_s", [60, 120, 300])
def test_a_node_that_said_that_it_is_slow_when_the_slowdown_began_is_named(every_s: int) -> None:
    story = slow_node(every_s)
    assert story.advised() == [(0, "RESTARTED", ("node2",))]


def test_a_node_that_said_so_long_before_is_not_named() -> None:
    story = slow_node(600)
    assert story.advised()[0] == (0, "RESTARTED", ())


def test_what_is_found_while_something_else_is_decided_is_taken_up_afterwards() -> None:
    story = trained(Policy(straggler_recovery=1))
    story.line("caught", fault_class=FaultClass.USER_CODE, remedy=Remedy.RESTART, scope=Scope.JOB)
    for step in range(100, 100 + 2 * N):
        story.progress(step, seconds=0.8)
    assert kinds(story) == [AnomalyKind.CRASH_LOG]
    go_on(story, 0.8, 3)
    assert kinds(story) == [AnomalyKind.CRASH_LOG, AnomalyKind.STRAGGLER]
    assert Refusal.RECORDED_ONLY not in {event.reason for event in story.events(AdviceWithheld)}
    assert story.advised()[-1] == (0, "RESTARTED", ())


def test_what_is_found_while_something_else_is_decided_is_forgotten_where_the_pace_recovers() -> None:
    story = trained(Policy(straggler_recovery=1))
    story.line("caught", fault_class=FaultClass.USER_CODE, remedy=Remedy.RESTART, scope=Scope.JOB)
    for step in range(100, 100 + 2 * N):
        story.progress(step, seconds=0.8)
    go_on(story, 0.2, N)
    assert kinds(story) == [AnomalyKind.CRASH_LOG]


def test_advice_that_was_withdrawn_before_does_not_keep_a_straggler() -> None:
    story = trained(Policy(straggler_recovery=1))
    go_on(story, 0.8, N)
    go_on(story, 0.2, N)
    assert story.open_advice() == []
    go_on(story, 0.8, N)
    assert len(story.open_advice()) == 1


def test_advice_is_withdrawn_when_the_pace_is_normal_again() -> None:
    story = trained(Policy(straggler_recovery=1))
    go_on(story, 0.8, N)
    go_on(story, 0.2, N)
    assert story.resolved()[-1] == (0, "ABANDONED", "PROGRESS_RESUMED")


def test_a_second_slowdown_after_recovery_is_recorded_again() -> None:
    story = trained()
    go_on(story, 0.8, N)
    go_on(story, 0.2, N)
    go_on(story, 0.8, N)
    assert kinds(story) == [AnomalyKind.STRAGGLER, AnomalyKind.STRAGGLER]


def test_a_crash_after_a_recorded_straggler_is_handled_as_any_crash() -> None:
    story = trained()
    go_on(story, 0.8, N)
    story.line()
    story.observe(AttemptState.FAILED)
    story.wait(3)
    assert story.advised() == [(0, "RESTARTED", ("node2",))]
