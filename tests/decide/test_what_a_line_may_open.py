"""What a line may open, what takes it back, and which node it stands for."""

from __future__ import annotations

from schemas.decisions import AdviceWithheld, AnomalyDetected, AttributionMade
from schemas.vocabulary import AttemptState, FaultClass, LineRole, Refusal, Remedy, Scope
from streams.watch.skipping import SKIPPED_STEPS
from tests.decide.story import Story


def running() -> Story:
    story = Story()
    story.observe(AttemptState.RUNNING)
    story.progress(10)
    return story


def nan_step(story: Story, step: int) -> None:
    story.line(
        f"step {step} loss nan",
        signature="nan-steps",
        fault_class=FaultClass.NUMERIC_NAN,
        scope=Scope.JOB,
        remedy=Remedy.RESTART,
        precedence=61,
    )
    story.progress(step, loss=None)


def requeued(story: Story) -> None:
    story.line(
        "Requeued job 7",
        fault_class=FaultClass.PREEMPTION,
        scope=Scope.JOB,
        remedy=Remedy.WAIT,
        role=LineRole.CONSEQUENCE,
        precedence=18,
    )


def told_to_end(story: Story) -> None:
    story.line(
        "Received SIGTERM", fault_class=FaultClass.PREEMPTION, scope=Scope.JOB, remedy=Remedy.RESTART, precedence=21
    )


def dismissals(story: Story) -> list[Refusal]:
    return [event.reason for event in story.events(AdviceWithheld)]


def test_a_further_step_without_a_number_does_not_take_the_loss_of_numbers_back() -> None:
    story = running()
    for step in range(11, 20):
        nan_step(story, step)
        story.wait(10)
    assert dismissals(story) == []
    assert story.advised() == []
    story.wait(300)
    assert [desired for _index, desired, _nodes in story.advised()] == ["RESTARTED"]


def test_a_run_that_skips_all_its_steps_is_stopped_though_it_counts_them() -> None:
    story = running()
    story.line(
        "number of skipped iterations:   1",
        signature=SKIPPED_STEPS.id,
        fault_class=SKIPPED_STEPS.fault_class,
        scope=SKIPPED_STEPS.scope,
        remedy=SKIPPED_STEPS.remedy,
        precedence=SKIPPED_STEPS.precedence,
    )
    for step in range(60, 80):
        story.progress(step, loss=None)
        story.wait(20)
    assert {desired for _index, desired, _nodes in story.advised()} == {"TERMINATED"}


def test_a_step_whose_loss_is_a_number_again_does() -> None:
    story = running()
    nan_step(story, 11)
    story.wait(20)
    story.progress(12, loss=2.0)
    assert dismissals(story) == [Refusal.PROGRESS_RESUMED]


def test_what_is_handed_to_somebody_else_opens_no_incident_and_explains_the_one_that_follows() -> None:
    story = running()
    requeued(story)
    assert story.events(AnomalyDetected) == []
    told_to_end(story)
    story.wait(20)
    [made] = story.events(AttributionMade)
    assert made.remedy is Remedy.WAIT


def test_what_is_handed_to_somebody_else_counts_in_an_open_incident() -> None:
    story = running()
    told_to_end(story)
    requeued(story)
    story.wait(20)
    assert [made.remedy for made in story.events(AttributionMade)] == [Remedy.WAIT]
    story.wait(600)
    assert story.advised() == []


def test_a_broken_node_that_no_line_names_is_known_where_the_attempt_has_only_one() -> None:
    for nodes, excluded in (("node1",), ("node1",)), (("node1", "node2"), ()):
        story = Story()
        story.observe(AttemptState.RUNNING, nodes=nodes)
        story.line(node=None)
        story.observe(AttemptState.FAILED, nodes=nodes)
        story.wait(60)
        assert story.advised() == [(0, "RESTARTED", excluded)]


def test_a_program_s_word_that_a_rank_is_slow_explains_no_crash() -> None:
    story = running()
    story.line("straggler", fault_class=FaultClass.STRAGGLER, remedy=Remedy.WAIT, precedence=39)
    story.line("RuntimeError", fault_class=FaultClass.USER_CODE, remedy=Remedy.RESTART, precedence=13)
    story.wait(20)
    assert [made.fault_class for made in story.events(AttributionMade)] == [FaultClass.USER_CODE]


def test_of_many_nodes_the_one_that_is_silent_is_found() -> None:
    nodes = tuple(f"node{number}" for number in range(1, 65))
    story = Story()
    story.observe(AttemptState.RUNNING, nodes=nodes)
    story.progress(10)
    for node in nodes:
        if node != "node5":
            peer = "node5" if node == "node1" else None
            story.line(
                f"Watchdog caught collective operation timeout on {node}",
                node=node,
                fault_class=FaultClass.NCCL_TIMEOUT,
                scope=Scope.UNKNOWN,
                remedy=Remedy.RESTART,
                role=LineRole.CONSEQUENCE,
                precedence=30,
                signature="nccl-watchdog-timeout",
                peer=peer,
            )
    story.observe(AttemptState.FAILED, nodes=nodes)
    story.wait(20)
    assert story.advised() == [(0, "RESTARTED", ("node5",))]
