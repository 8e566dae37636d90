"""The main story: a fault line, a failed state, one Advice, and a convergence that only a fresh look proves."""

from __future__ import annotations

from dataclasses import replace

from schemas.decisions import AdviceIssued, AdviceWithheld, AnomalyDetected, AttributionMade, JobView
from schemas.policy import DEFAULT_POLICY
from schemas.vocabulary import (
    AnomalyKind,
    AttemptState,
    FaultClass,
    Hold,
    LineRole,
    Operation,
    Refusal,
    Remedy,
    Scope,
)
from tests.decide.story import OPTED_IN, Story


def test_the_anomaly_is_recorded_at_the_first_fault_line() -> None:
    story = Story()
    story.observe(AttemptState.RUNNING)
    events = story.line()
    anomalies = [event for event in events if isinstance(event, AnomalyDetected)]
    assert [(a.kind, a.fault_class) for a in anomalies] == [(AnomalyKind.CRASH_LOG, FaultClass.GPU_HARDWARE)]
    assert story.advised() == []


def test_a_crash_is_restarted_without_the_node_that_caused_it() -> None:
    story = Story()
    story.run_and_fail()
    story.wait(2)
    assert story.advised() == [(0, "RESTARTED", ("node2",))]
    advice = story.open_advice()[0]
    assert advice.valid_until_ms is None
    assert "node2" in advice.explanation


def test_one_attribution_names_the_cause_among_its_consequences() -> None:
    story = Story()
    story.observe(AttemptState.RUNNING)
    for i in range(40):
        story.line(f"NCCL remote error {i}", node="node1", role=LineRole.CONSEQUENCE, precedence=20)
    story.line("Xid 79")
    story.observe(AttemptState.FAILED)
    story.wait(3)
    made = story.events(AttributionMade)
    assert len(made) == 1
    assert made[0].nodes == ("node2",)
    assert made[0].root is not None
    assert made[0].root.text == "Xid 79"
    assert made[0].lines_seen == 41


def test_a_consequence_alone_restarts_without_exclusion() -> None:
    story = Story()
    story.observe(AttemptState.RUNNING)
    story.line(
        "NCCL timeout",
        node="node1",
        fault_class=FaultClass.NCCL_TIMEOUT,
        scope=Scope.UNKNOWN,
        remedy=Remedy.RESTART,
        role=LineRole.CONSEQUENCE,
        precedence=20,
    )
    story.observe(AttemptState.FAILED)
    story.wait(3)
    assert story.advised() == [(0, "RESTARTED", ())]


def test_a_node_outside_the_allocation_is_never_excluded() -> None:
    story = Story()
    story.observe(AttemptState.RUNNING)
    story.line(node="node9")
    story.observe(AttemptState.FAILED)
    story.wait(3)
    assert story.advised() == [(0, "RESTARTED", ())]


def test_restart_converges_only_by_a_look_that_had_its_generation_in_view() -> None:
    story = Story()
    story.run_and_fail()
    story.wait(2)
    story.intend(Operation.REQUEUE_HOLD)
    story.observe(AttemptState.HELD, 1, hold=Hold.REQUEUE, excluded=("node2",))
    story.observe(AttemptState.RUNNING, 1, excluded=("node2",), generation=0)
    assert story.resolved() == []
    story.observe(AttemptState.RUNNING, 1, excluded=("node2",))
    assert story.resolved() == [(0, "CONVERGED", "DESIRED_STATE_OBSERVED")]
    assert story.open_advice() == []


def test_a_successor_without_the_exclusion_abandons_the_advice() -> None:
    story = Story()
    story.run_and_fail()
    story.wait(2)
    story.observe(AttemptState.RUNNING, 1)
    assert story.resolved() == [(0, "ABANDONED", "ATTEMPT_SUPERSEDED")]


def test_the_second_failure_gets_advice_of_its_own_with_a_higher_generation() -> None:
    story = Story()
    story.run_and_fail(0)
    story.wait(2)
    story.held_then_running(1)
    story.line("Xid 79 again", 1, node="node1")
    story.observe(AttemptState.FAILED, 1, nodes=("node1", "node3"))
    story.wait(3)
    assert [(index, state) for index, state, _ in story.advised()] == [(0, "RESTARTED"), (1, "RESTARTED")]
    generations = [advice.advice.generation for advice in story.events(AdviceIssued)]
    assert generations == sorted(set(generations))


def test_a_failed_state_that_no_line_explains_is_restarted_after_the_fallback_delay() -> None:
    story = Story()
    story.observe(AttemptState.RUNNING)
    story.observe(AttemptState.FAILED)
    story.wait(DEFAULT_POLICY.crash_fallback_delay_s - 1)
    assert story.events(AnomalyDetected) == []
    story.wait(2)
    assert [a.kind for a in story.events(AnomalyDetected)] == [AnomalyKind.CRASH_STATE]
    assert story.advised() == [(0, "RESTARTED", ())]


def test_it_is_restarted_at_once_where_the_job_turned_log_detection_off() -> None:
    story = Story(aps=replace(OPTED_IN, log_based_crash_detection_enabled=False))
    story.observe(AttemptState.RUNNING)
    story.observe(AttemptState.FAILED)
    assert story.advised() == [(0, "RESTARTED", ())]


def test_a_fault_line_after_the_failed_state_still_names_the_node() -> None:
    story = Story()
    story.observe(AttemptState.RUNNING)
    story.observe(AttemptState.FAILED)
    story.wait(1)
    story.line()
    story.wait(2)
    assert story.advised() == [(0, "RESTARTED", ("node2",))]


def test_an_early_held_successor_still_belongs_to_the_failed_attempt() -> None:
    story = Story()
    story.run_and_fail()
    story.intend(Operation.REQUEUE_HOLD)
    story.observe(AttemptState.HELD, 1, hold=Hold.REQUEUE)
    story.wait(3)
    assert story.advised() == [(0, "RESTARTED", ("node2",))]


def test_slurms_own_requeue_is_left_to_slurm() -> None:
    story = Story()
    story.observe(AttemptState.RUNNING)
    story.line()
    story.observe(AttemptState.PENDING, 1)
    story.wait(10)
    assert story.advised() == []
    assert [event.reason for event in story.events(AdviceWithheld)] == [Refusal.OTHER_ATTEMPT]


def test_the_view_tells_watch_and_controller_of_each_attempt_and_its_window() -> None:
    story = Story()
    story.run_and_fail()
    story.wait(2)
    story.held_then_running(1)
    view = story.events(JobView)[-1]
    assert [(a.attempt.index, a.state) for a in view.attempts] == [
        (0, AttemptState.FAILED),
        (1, AttemptState.RUNNING),
    ]
    assert view.attempts[0].end_ms is not None
