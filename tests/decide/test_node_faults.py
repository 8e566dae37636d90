"""What a node says about itself, as evidence for the attempts that run there."""

from __future__ import annotations

import pytest

from schemas.decisions import AdviceWithheld, AnomalyDetected, AttributionMade, OutputAsked
from schemas.nodes import NodeAllocated, NodeFreed
from schemas.policy import Policy
from schemas.vocabulary import (
    AnomalyKind,
    AttemptState,
    FaultClass,
    LineRole,
    Mode,
    Refusal,
    Remedy,
    Scope,
    Witness,
)
from streams.decide.blame import host_of
from streams.decide.lines import HEARD_MS
from streams.decide.nodes import AFTER_END_MS
from streams.watch.whose.origin import origin_of
from tests.decide.story import Story


def attributed(story: Story) -> AttributionMade:
    [made] = story.events(AttributionMade)
    return made


def test_a_job_that_fails_without_a_word_is_explained_by_its_nodes_kernel_log() -> None:
    story = Story()
    story.observe(AttemptState.RUNNING)
    story.node_fault()
    story.wait(1)
    story.observe(AttemptState.FAILED)
    story.wait(20)
    assert [one.kind for one in story.events(AnomalyDetected)] == [AnomalyKind.NODE_FAULT]
    made = attributed(story)
    assert (made.fault_class, made.nodes) == (FaultClass.GPU_HARDWARE, ("node2",))
    assert made.root is not None
    assert made.root.file == "/var/log/nodes/node2/kern.log"
    assert "as the log of the node says" in made.explanation
    assert story.advised() == [(0, "RESTARTED", ("node2",))]


def test_the_nodes_word_explains_what_the_output_only_suffers_from() -> None:
    story = Story()
    story.observe(AttemptState.RUNNING)
    story.line(
        "NCCL watchdog timeout",
        node="node1",
        fault_class=FaultClass.NCCL_TIMEOUT,
        scope=Scope.UNKNOWN,
        remedy=Remedy.RESTART,
        precedence=40,
    )
    story.node_fault()
    story.observe(AttemptState.FAILED)
    story.wait(20)
    assert [one.kind for one in story.events(AnomalyDetected)] == [AnomalyKind.CRASH_LOG]
    assert attributed(story).nodes == ("node2",)


def test_a_node_is_excluded_by_the_name_that_the_scheduler_has_for_it() -> None:
    story = Story()
    nodes = ("node1.a.lan", "node2.a.lan", "node2.b.lan")
    story.observe(AttemptState.RUNNING, nodes=nodes)
    story.node_fault(node="node2.b.lan")
    story.observe(AttemptState.FAILED, nodes=nodes)
    story.wait(20)
    assert story.advised() == [(0, "RESTARTED", ("node2.b.lan",))]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("node2.b.lan:29500", "node2.b.lan"),
        ("node2<3>", None),
        ("node1", "node1.a.lan"),
        ("node1.ib.lan", "node1.a.lan"),
        ("node3.c.lan", "node3"),
    ],
)
def test_domains_count_where_without_them_a_name_could_be_several(name: str, meant: str | None) -> None:
    nodes = ("node1.a.lan", "node2.a.lan", "node2.b.lan", "node3", "node3.b.lan")
    assert host_of(name, nodes) == meant
    assert origin_of(f"{name.partition(':')[0]}: x".encode(), nodes).node == (meant if "<" not in name else None)


def test_it_is_taken_while_a_failed_attempt_still_waits_for_lines() -> None:
    story = Story()
    story.observe(AttemptState.RUNNING)
    story.observe(AttemptState.FAILED)
    story.wait(3)
    story.node_fault(at_ms=story.now_ms - 4_000)
    story.wait(20)
    assert attributed(story).nodes == ("node2",)


def test_an_attempt_that_moves_on_is_left_alone() -> None:
    story = Story()
    story.observe(AttemptState.RUNNING)
    story.progress(10)
    story.node_fault()
    story.wait(10)
    story.progress(20)
    story.wait(200)
    assert story.advised() == []
    assert [one.reason for one in story.events(AdviceWithheld)] == [Refusal.PROGRESS_RESUMED]


def outlived_for_minutes() -> Story:
    """A node says every half minute that it failed, and training goes on."""
    story = Story()
    story.observe(AttemptState.RUNNING)
    for half_minute in range(20):
        story.progress(half_minute)
        story.node_fault()
        story.wait(30)
    return story


def test_what_a_node_says_on_and_on_while_training_goes_on_is_one_incident() -> None:
    story = outlived_for_minutes()
    assert [one.reason for one in story.events(AdviceWithheld)] == [Refusal.PROGRESS_RESUMED]
    assert len(story.events(AnomalyDetected)) == 1


def test_what_a_node_says_on_and_on_explains_the_failure_that_comes_in_the_end() -> None:
    story = outlived_for_minutes()
    story.observe(AttemptState.FAILED)
    story.wait(200)
    assert story.events(AttributionMade)[-1].nodes == ("node2",)
    assert story.advised() == [(0, "RESTARTED", ("node2",))]


def test_what_a_node_says_on_and_on_explains_why_training_stands_still_in_the_end() -> None:
    story = outlived_for_minutes()
    for _ in range(60):
        if story.events(OutputAsked):
            break
        story.node_fault()
        story.wait(30)
    story.output_checked(1_000)
    assert story.events(AttributionMade)[-1].nodes == ("node2",)


def test_a_fault_that_comes_again_long_after_it_was_outlived_is_an_incident_of_its_own() -> None:
    story = outlived_for_minutes()
    story.progress(100)
    story.wait(HEARD_MS / 1000 + 1)
    story.node_fault()
    assert len(story.events(AnomalyDetected)) == 2


def test_an_attempt_that_stands_still_after_it_is_restarted_elsewhere() -> None:
    story = Story()
    story.observe(AttemptState.RUNNING)
    story.progress(10)
    story.node_fault()
    story.wait(2_500)
    assert story.advised()[0] == (0, "RESTARTED", ("node2",))


def test_a_job_that_recovery_leaves_alone_is_left_alone() -> None:
    story = Story(mode=Mode.DISABLED)
    story.observe(AttemptState.RUNNING)
    assert story.node_fault() == ()


def test_a_weak_sign_alone_opens_nothing_and_explains_a_failure_that_follows() -> None:
    story = Story()
    story.observe(AttemptState.RUNNING)
    story.node_fault(
        "the kernel killed a process", fault_class=FaultClass.HOST_OOM, remedy=Remedy.RESTART, scope=Scope.UNKNOWN
    )
    story.wait(30)
    assert story.events(AnomalyDetected) == []
    story.observe(AttemptState.FAILED)
    story.wait(20)
    assert attributed(story).fault_class is FaultClass.HOST_OOM


def test_a_weak_sign_long_ago_or_outlived_explains_nothing() -> None:
    for outlived in (True, False):
        story = Story()
        story.observe(AttemptState.RUNNING)
        story.node_fault("the kernel killed a process", remedy=Remedy.RESTART, scope=Scope.UNKNOWN)
        if outlived:
            story.progress(20)
        else:
            story.wait(2_500)
        story.observe(AttemptState.FAILED)
        story.wait(20)
        assert attributed(story).fault_class is FaultClass.UNKNOWN


def test_a_fault_before_the_attempt_began_opens_nothing_by_itself() -> None:
    story = Story()
    story.observe(AttemptState.RUNNING)
    story.node_fault(distance_ms=-20_000)
    story.wait(60)
    assert story.events(AnomalyDetected) == []
    story.observe(AttemptState.FAILED)
    story.wait(20)
    assert attributed(story).nodes == ("node2",)


def test_a_fault_after_the_end_that_was_not_known_yet_explains_nothing() -> None:
    story = Story()
    story.observe(AttemptState.RUNNING)
    ended_ms = story.now_ms
    story.wait(60)
    story.node_fault(at_ms=ended_ms + AFTER_END_MS + 1)
    story.observe(AttemptState.FAILED, end_ms=ended_ms)
    story.wait(20)
    assert (attributed(story).fault_class, attributed(story).nodes) == (FaultClass.UNKNOWN, ())


def test_a_metric_of_a_node_names_the_straggler() -> None:
    story = Story(policy=Policy(straggler_recovery=1))
    story.observe(AttemptState.RUNNING)
    for step in range(10):
        story.progress(step)
    story.node_fault(
        "clocks at 300 MHz",
        witness=Witness.NODE_METRIC,
        fault_class=FaultClass.STRAGGLER,
        remedy=Remedy.RESTART_EXCLUDING_NODE,
        role=LineRole.CONSEQUENCE,
    )
    for step in range(10, 20):
        story.progress(step, seconds=0.9)
    made = attributed(story)
    assert (made.fault_class, made.nodes) == (FaultClass.STRAGGLER, ("node2",))


def test_nodes_are_told_who_is_there_and_who_is_gone() -> None:
    story = Story()
    story.observe(AttemptState.PENDING)
    assert story.events(NodeAllocated) == []
    story.observe(AttemptState.RUNNING)
    story.progress(10)
    started_ms = story.events(NodeAllocated)[0].start_ms
    assert [one.node for one in story.events(NodeAllocated)] == ["node1", "node2"]
    assert story.events(NodeFreed) == []
    story.observe(AttemptState.FAILED, start_ms=started_ms)
    assert [(one.node, one.start_ms, one.end_ms) for one in story.events(NodeFreed)] == [
        ("node1", started_ms, story.now_ms),
        ("node2", started_ms, story.now_ms),
    ]
    story.observe(AttemptState.RUNNING, 1, nodes=("node1", "node3"))
    story.observe(AttemptState.COMPLETED, 1, nodes=("node1", "node3"), end_ms=story.now_ms)
    assert [(one.attempt.index, one.node) for one in story.events(NodeFreed)[2:]] == [(1, "node1"), (1, "node3")]


def test_nodes_are_told_of_an_attempt_that_is_seen_only_when_it_is_over() -> None:
    story = Story()
    story.observe(AttemptState.FAILED, start_ms=story.now_ms - 500)
    assert [(one.node, one.start_ms) for one in story.events(NodeFreed)] == [
        ("node1", story.now_ms - 600),
        ("node2", story.now_ms - 600),
    ]
