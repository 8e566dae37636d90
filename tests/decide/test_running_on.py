"""An attempt that runs on after a fault: how long it may take to show it, and what is forgotten then."""

from __future__ import annotations

import pytest

from schemas.decisions import AdviceWithheld, AnomalyDetected, AttributionMade, OutputAsked
from schemas.vocabulary import (
    AnomalyKind,
    AttemptState,
    CommandKind,
    FaultClass,
    Hold,
    LineRole,
    Operation,
    Phase,
    Refusal,
    Remedy,
    Scope,
)
from streams.decide.lines import IN_ORDER_MS
from tests.decide.story import START_MS, Story

ELSEWHERE = (0, "RESTARTED", ("node2",))
SAME_NODES = (0, "RESTARTED", ())


def running(steps: int = 10, every_s: float = 60) -> Story:
    story = Story()
    story.observe(AttemptState.RUNNING)
    for step in range(steps):
        story.progress(step)
        story.wait(every_s)
    return story


def caught(story: Story, remedy: Remedy = Remedy.RESTART, *, stamped: bool = True) -> None:
    """A traceback that the program may survive."""
    story.line(
        "ValueError: caught",
        fault_class=FaultClass.USER_CODE,
        scope=Scope.JOB,
        remedy=remedy,
        precedence=13,
        signature="python-exception",
        stamped=stamped,
    )


def hanging(story: Story) -> None:
    """The attempt is silent until it is asked about, and watch confirms it."""
    while not story.events(OutputAsked):
        story.wait(1)
    story.output_checked(900)


def withdrawn(story: Story) -> None:
    """A hang that was none: Advice is issued and withdrawn."""
    hanging(story)
    story.wait(5)
    story.progress(100)
    story.wait(60)
    story.progress(101)


def classes(story: Story) -> list[FaultClass]:
    return [made.fault_class for made in story.events(AttributionMade)]


def withheld(story: Story) -> list[Refusal]:
    return [event.reason for event in story.events(AdviceWithheld)]


def test_after_advice_was_withdrawn_a_crash_is_seen_and_recovered() -> None:
    story = running()
    withdrawn(story)
    story.line()
    story.observe(AttemptState.FAILED)
    story.wait(20)
    assert [event.kind for event in story.events(AnomalyDetected)] == [AnomalyKind.HANG, AnomalyKind.CRASH_LOG]
    assert story.advised() == [SAME_NODES, ELSEWHERE]


def test_after_advice_was_withdrawn_a_failure_without_a_line_is_recovered() -> None:
    story = running()
    withdrawn(story)
    story.observe(AttemptState.FAILED)
    story.wait(120)
    assert story.advised() == [SAME_NODES, SAME_NODES]


def test_an_attempt_that_a_person_released_is_watched_as_any_other() -> None:
    story = Story()
    story.run_and_fail()
    story.wait(20)
    story.observe(AttemptState.HELD, 1, hold=Hold.REQUEUE)
    story.command(CommandKind.RELEASE, 1)
    story.observe(AttemptState.RUNNING, 1, nodes=("node1", "node3"), excluded=("node2",))
    assert story.resolved()[-1][1] == "CONVERGED"
    story.line(index=1, node="node3")
    story.observe(AttemptState.FAILED, 1, nodes=("node1", "node3"))
    story.wait(20)
    assert story.advised()[-1] == (1, "RESTARTED", ("node3",))


def test_what_was_withdrawn_counts_for_nothing() -> None:
    story = running()
    story.line()
    story.wait(200)
    assert story.advised() == [ELSEWHERE]
    assert story.state is not None
    assert (story.state.failures_without_checkpoint, story.state.excluded) == (0, ("node2",))
    story.progress(20)
    assert (story.state.failures_without_checkpoint, story.state.excluded) == (0, ())


def test_what_advice_has_ended_counts_as_a_failure() -> None:
    story = running()
    story.line()
    story.wait(200)
    story.intend(Operation.REQUEUE_HOLD)
    story.observe(AttemptState.HELD, 1, hold=Hold.REQUEUE)
    assert story.state is not None
    assert story.state.failures_without_checkpoint == 1


def test_steps_that_come_seldom_have_the_time_of_one_to_come() -> None:
    story = running(every_s=300)
    story.progress(20)
    story.wait(20)
    caught(story)
    story.wait(279)
    assert story.advised() == []
    story.progress(21)
    assert withheld(story) == [Refusal.PROGRESS_RESUMED]
    story.wait(20)
    caught(story)
    story.wait(500)
    assert story.advised() == [SAME_NODES]


@pytest.mark.parametrize("remedy", [Remedy.RESTART, Remedy.TERMINATE_NO_RETRY])
def test_an_evaluation_may_go_on_after_a_fault_line(remedy: Remedy) -> None:
    story = running()
    story.enter(Phase.EVALUATION)
    story.wait(30)
    caught(story, remedy)
    story.wait(700)
    assert story.advised() == []
    story.wait(200)
    assert len(story.advised()) == 1


def test_broken_hardware_gets_no_time_to_evaluate() -> None:
    story = running()
    story.enter(Phase.EVALUATION)
    story.wait(30)
    story.line()
    story.wait(200)
    assert story.advised() == [ELSEWHERE]


def test_a_job_that_its_launcher_starts_anew_in_place_may_take_its_time() -> None:
    story = running()
    caught(story)
    story.wait(100)
    story.loaded(9)
    story.wait(200)
    assert story.advised() == []
    story.progress(10)
    assert withheld(story) == [Refusal.PROGRESS_RESUMED]


def test_a_weightier_fault_after_the_attribution_has_an_incident_of_its_own() -> None:
    story = running()
    caught(story, Remedy.TERMINATE_NO_RETRY)
    story.wait(20)
    story.line()
    story.wait(2)
    story.observe(AttemptState.FAILED)
    story.wait(20)
    assert withheld(story) == [Refusal.OUTWEIGHED]
    assert classes(story) == [FaultClass.USER_CODE, FaultClass.GPU_HARDWARE]
    assert story.events(AttributionMade)[-1].secondary[0].text == "ValueError: caught"
    assert story.advised() == [ELSEWHERE]


def test_what_follows_from_the_fault_opens_nothing_anew() -> None:
    story = running()
    story.line()
    story.wait(20)
    caught(story)
    story.line("NCCL error", fault_class=FaultClass.NETWORK_IB, role=LineRole.CONSEQUENCE, precedence=28, signature="n")
    story.wait(200)
    assert len(story.events(AnomalyDetected)) == 1
    assert story.advised() == [ELSEWHERE]


def test_a_line_after_the_end_is_heard_though_an_earlier_one_was_dismissed() -> None:
    story = running()
    caught(story)
    story.wait(30)
    story.progress(20)
    story.wait(30)
    story.observe(AttemptState.FAILED)
    story.line()
    story.wait(20)
    assert story.advised() == [ELSEWHERE]


def test_one_step_more_after_the_crash_does_not_hide_what_others_then_wait_for() -> None:
    story = running()
    story.line("ECC error", precedence=82, signature="ecc", fault_class=FaultClass.GPU_MEMORY_ECC)
    story.wait(8)
    story.progress(10)
    assert withheld(story) == [Refusal.PROGRESS_RESUMED]
    story.wait(600)
    story.line(
        "timed out", fault_class=FaultClass.NCCL_TIMEOUT, role=LineRole.CONSEQUENCE, precedence=30, signature="t"
    )
    story.observe(AttemptState.FAILED)
    story.wait(20)
    assert classes(story)[-1] is FaultClass.GPU_MEMORY_ECC
    assert story.advised() == [ELSEWHERE]


@pytest.mark.parametrize("ahead_s", [-7200, 0, 7200])
def test_steps_go_on_after_an_unstamped_line_whatever_zone_they_are_stamped_in(ahead_s: int) -> None:
    story = running()
    caught(story, stamped=False)
    for step in range(20, 30):
        story.wait(20)
        story.progress(step, line_ms=story.now_ms + ahead_s * 1000)
    assert withheld(story) == [Refusal.PROGRESS_RESUMED]
    assert story.advised() == []


def test_a_node_whose_clock_is_ahead_can_t_have_a_run_killed_that_goes_on() -> None:
    story = running()
    story.node_fault(at_ms=story.now_ms + 600_000)
    for step in range(20, 40):
        story.wait(20)
        story.progress(step)
    assert withheld(story) == [Refusal.PROGRESS_RESUMED]
    assert story.advised() == []
    assert story.now_ms - START_MS > IN_ORDER_MS


def test_a_suspended_attempt_is_judged_when_it_runs_again() -> None:
    story = running()
    story.line()
    story.wait(10)
    story.observe(AttemptState.SUSPENDED)
    story.wait(3600)
    assert story.advised() == []
    story.observe(AttemptState.RUNNING)
    story.wait(400)
    assert story.advised()[0] == ELSEWHERE


def test_a_step_that_is_only_printed_again_withdraws_nothing() -> None:
    story = running()
    hanging(story)
    assert story.advised() == [SAME_NODES]
    story.progress(9)
    assert story.resolved() == []
    story.progress(10)
    assert story.resolved() == [(0, "ABANDONED", "PROGRESS_RESUMED")]


def test_a_finding_of_long_ago_decides_no_failure_of_today() -> None:
    story = Story()
    story.observe(AttemptState.RUNNING)
    story.wait(60)
    caught(story, Remedy.TERMINATE_NO_RETRY)
    story.wait(20 * 3600)
    story.observe(AttemptState.NODE_FAIL)
    story.wait(60)
    assert story.advised() == [SAME_NODES]
    assert Refusal.LATE in withheld(story)


def test_a_cause_that_comes_long_after_the_last_one_has_an_incident_of_its_own() -> None:
    story = Story()
    story.observe(AttemptState.RUNNING)
    story.line()
    story.wait(20 * 3600)
    caught(story)
    story.observe(AttemptState.FAILED)
    story.wait(60)
    assert classes(story) == [FaultClass.GPU_HARDWARE, FaultClass.USER_CODE]
    assert story.advised() == [SAME_NODES]


def nan(story: Story) -> None:
    story.line(
        "nan",
        fault_class=FaultClass.NUMERIC_NAN,
        scope=Scope.JOB,
        remedy=Remedy.RESTART,
        precedence=61,
        signature="nan-steps",
    )


@pytest.mark.parametrize(("again", "advised"), [(False, []), (True, [SAME_NODES])])
def test_steps_that_never_tell_a_loss_take_a_number_back_that_is_none_unless_it_is_told_again(
    again: bool, advised: list[tuple[int, str, tuple[str, ...]]]
) -> None:
    story = Story()
    story.observe(AttemptState.RUNNING)
    for step in range(10):
        story.progress(step, loss=None)
        story.wait(60)
    nan(story)
    for step in range(20, 24):
        story.wait(30)
        if again:
            nan(story)
        story.wait(30)
        story.progress(step, loss=None)
    assert story.advised()[:1] == advised


def test_a_job_that_crashes_in_place_again_and_again_is_not_waited_for_for_ever() -> None:
    story = running()
    for _ in range(40):
        caught(story)
        story.wait(30)
        story.loaded(9)
        story.wait(90)
    assert story.advised()[0] == SAME_NODES


def test_what_slurm_requeues_in_grace_is_settled() -> None:
    story = running()
    story.line()
    story.wait(20)
    story.observe(AttemptState.PENDING, 1)
    story.observe(AttemptState.RUNNING, 1)
    facts = len(story.facts)
    story.wait(3600)
    assert withheld(story) == [Refusal.OTHER_ATTEMPT]
    assert len(story.facts) == facts
    assert story.state is not None
    assert story.state.attempts[0].failure_counted


def test_a_suspended_attempt_is_not_looked_at() -> None:
    story = running()
    story.line()
    story.observe(AttemptState.SUSPENDED)
    story.wait(1000)
    facts = len(story.facts)
    story.wait(24 * 3600)
    assert len(story.facts) == facts


def test_what_a_person_asked_for_is_not_taken_back_by_a_step() -> None:
    story = running()
    caught(story)
    story.wait(30)
    story.progress(20)
    story.command(CommandKind.TERMINATE)
    story.wait(1)
    story.progress(21)
    assert story.resolved() == []


def test_a_step_that_is_told_late_does_not_take_back_what_the_scheduler_does() -> None:
    story = running()
    story.line()
    story.wait(200)
    story.intend(Operation.REQUEUE_HOLD)
    story.progress(20)
    assert story.resolved() == []
    story.observe(AttemptState.HELD, 1, hold=Hold.REQUEUE)
    story.observe(AttemptState.PENDING, 1, excluded=("node2",))
    assert story.resolved()[-1][1:] == ("CONVERGED", "DESIRED_STATE_OBSERVED")


def test_a_crash_while_a_release_is_open_is_recovered() -> None:
    story = Story()
    story.run_and_fail()
    story.wait(20)
    story.observe(AttemptState.HELD, 1, hold=Hold.REQUEUE)
    story.command(CommandKind.RELEASE, 1)
    story.wait(2)
    story.observe(AttemptState.FAILED, 1)
    story.wait(60)
    assert story.advised()[-1][:2] == (1, "RESTARTED")


def test_what_explains_a_standstill_later_is_told_though_advice_is_open() -> None:
    story = running()
    hanging(story)
    assert story.advised() == [SAME_NODES]
    story.wait(1800)
    story.line()
    story.wait(20)
    story.observe(AttemptState.FAILED)
    story.wait(20)
    assert classes(story) == [FaultClass.HANG_NO_LOG, FaultClass.GPU_HARDWARE]
    assert story.open_advice()[0].exclude_nodes == ("node2",)


def test_what_was_withdrawn_by_one_late_step_still_explains_what_others_wait_for() -> None:
    story = running()
    story.line("ECC error", precedence=82, signature="ecc", fault_class=FaultClass.GPU_MEMORY_ECC)
    story.wait(200)
    assert story.advised() == [ELSEWHERE]
    story.progress(10)
    story.wait(600)
    story.line(
        "timed out", fault_class=FaultClass.NCCL_TIMEOUT, role=LineRole.CONSEQUENCE, precedence=30, signature="t"
    )
    story.observe(AttemptState.FAILED)
    story.wait(20)
    assert classes(story)[-1] is FaultClass.GPU_MEMORY_ECC


def test_who_repeats_himself_does_not_drown_the_others() -> None:
    story = running()
    story.node_fault("link errors", node="node1", remedy=Remedy.RESTART, role=LineRole.CONSEQUENCE)
    for _ in range(10):
        story.wait(10)
        story.node_fault("link errors", node="node2", remedy=Remedy.RESTART, role=LineRole.CONSEQUENCE)
    assert story.state is not None
    assert [one.line.evidence.node for one in story.state.attempts[0].heard] == ["node1", "node2"]


def test_what_a_node_said_long_before_explains_no_program_s_own_error() -> None:
    story = Story()
    story.observe(AttemptState.RUNNING)
    story.node_fault(distance_ms=-20_000)
    story.wait(1500)
    caught(story)
    story.observe(AttemptState.FAILED)
    story.wait(20)
    assert classes(story) == [FaultClass.USER_CODE]


def test_the_same_fault_with_an_earlier_stamp_outweighs_nothing() -> None:
    story = running()
    for number in range(6):
        story.node_fault(at_ms=story.now_ms - 1000 * number, node="node1" if number % 2 else "node2")
        story.wait(10)
    assert len(story.events(AnomalyDetected)) == 1
    assert Refusal.OUTWEIGHED not in withheld(story)


def test_a_program_that_prints_the_same_error_on_and_on_and_trains_on_is_told_of_a_few_times() -> None:
    story = running()
    for step in range(20, 140):
        caught(story)
        story.wait(30)
        story.progress(step)
        story.wait(30)
    assert len(story.events(AnomalyDetected)) == 3
    caught(story)
    story.observe(AttemptState.FAILED)
    story.wait(60)
    assert classes(story)[-1] is FaultClass.USER_CODE
    assert story.advised() == [SAME_NODES]
