"""The node decider: a fault reaches the attempts that were there, once, whatever comes first."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.facts import Evidence, NodeFault
from schemas.identity import AttemptId, Position, derived_id
from schemas.nodes import NodeAllocated, NodeFact, NodeFaultSeen, NodeFaultTold, NodeFreed, is_recorded_under, node_of
from schemas.vocabulary import FaultClass, LineRole, Remedy, Scope, Witness
from streams.decide.nodes import (
    AFTER_END_MS,
    BEFORE_START_MS,
    KEPT_FAULTS,
    KEPT_MS,
    KEPT_STAYS,
    NodeState,
    decide_node,
    park_node,
)

T0 = 1_700_000_000_000
NODES = ("node1", "node2")


def attempt(number: int) -> AttemptId:
    return AttemptId("local", str(number), T0 // 1000, 0)


def fault(number: int, at_ms: int, node: str = "node1", *, source: str | None = None, precedence: int = 90) -> NodeFact:
    name = source or f"file:{number}"
    evidence = Evidence(name, number, 1, at_ms, at_ms + 5, node, None, "Xid", "sha256:")
    said = NodeFault(
        "local",
        node,
        Witness.NODE_LOG,
        "xid",
        FaultClass.GPU_HARDWARE,
        Scope.NODE,
        Remedy.RESTART_EXCLUDING_NODE,
        LineRole.CAUSE,
        precedence,
        "Xid 79",
        evidence,
    )
    return NodeFaultSeen(f"fault-{number}", "", Position(name, 0, number), said)


def came(number: int, start_ms: int, node: str = "node1") -> NodeFact:
    return NodeAllocated(derived_id("came", number, node), "", attempt(number), node, start_ms, start_ms)


def went(number: int, start_ms: int, end_ms: int, node: str = "node1") -> NodeFact:
    return NodeFreed(derived_id("went", number, node), "", attempt(number), node, start_ms, end_ms, end_ms)


class Nodes:
    """Each node's state, and all that was told."""

    def __init__(self) -> None:
        self.states: dict[str, NodeState] = {}
        self.told: list[NodeFaultTold] = []
        self.now_ms = T0

    def take(self, *facts: NodeFact) -> list[NodeFaultTold]:
        before = len(self.told)
        for fact in facts:
            self.now_ms += 1
            node = node_of(fact).removeprefix("local/")
            self.states[node], told = decide_node(self.states.get(node), fact, self.now_ms)
            self.told += [one for one in told if isinstance(one, NodeFaultTold)]
        return self.told[before:]


def pairs(told: list[NodeFaultTold]) -> list[tuple[str, str]]:
    return [(one.seen, one.attempt.job_id) for one in told]


def test_whoever_is_there_is_told_and_nobody_else() -> None:
    nodes = Nodes()
    nodes.take(came(1, T0), came(2, T0, "node2"), went(3, T0 - 900_000, T0 - 600_000))
    assert pairs(nodes.take(fault(1, T0 + 1_000))) == [("fault-1", "1")]
    assert nodes.told[0].distance_ms == 0


def test_a_fault_waits_for_the_news_who_was_there() -> None:
    nodes = Nodes()
    assert nodes.take(fault(1, T0 + 1_000)) == []
    assert pairs(nodes.take(came(1, T0))) == [("fault-1", "1")]
    assert nodes.take(came(1, T0), went(1, T0, T0 + 2_000)) == []


def test_a_fault_shortly_before_or_after_is_told_with_its_distance() -> None:
    nodes = Nodes()
    nodes.take(went(1, T0, T0 + 60_000))
    nodes.take(
        fault(1, T0 - BEFORE_START_MS - 1),
        fault(2, T0 - BEFORE_START_MS),
        fault(3, T0 + 60_000 + AFTER_END_MS),
        fault(4, T0 + 60_000 + AFTER_END_MS + 1),
    )
    assert [(one.seen, one.distance_ms) for one in nodes.told] == [
        ("fault-2", -BEFORE_START_MS),
        ("fault-3", AFTER_END_MS),
    ]


def test_a_late_start_does_not_open_a_window_that_has_closed() -> None:
    nodes = Nodes()
    nodes.take(went(1, T0, T0 + 1_000), came(1, T0))
    assert nodes.take(fault(1, T0 + 60_000)) == []


def told_names(nodes: Nodes) -> list[tuple[str, str, str | None]]:
    return [(one.attempt.job_id, one.fault.node, one.fault.evidence.node) for one in nodes.told]


def test_names_are_compared_without_domains_and_told_as_the_scheduler_has_them() -> None:
    for scheduler, own in (("node1.cluster.lan", "node1"), ("node1", "node1.cluster.lan"), ("node1.a", "node1.b")):
        nodes = Nodes()
        nodes.take(came(1, T0, scheduler), fault(1, T0 + 1_000, own))
        assert told_names(nodes) == [("1", scheduler, scheduler)]


def test_nodes_that_only_their_domains_tell_apart_are_not_mixed_up() -> None:
    nodes = Nodes()
    nodes.take(came(1, T0, "node1.a"), came(2, T0, "node1.b"))
    assert nodes.take(fault(1, T0 + 1_000, "node1")) == [], "nobody knows which of them"
    nodes.take(fault(2, T0 + 1_000, "node1.b"))
    assert told_names(nodes) == [("2", "node1.b", "node1.b")]


def test_an_address_has_no_domain() -> None:
    nodes = Nodes()
    nodes.take(came(1, T0, "10.0.0.5"), fault(1, T0 + 1_000, "10.0.0.6"))
    assert nodes.told == []


def test_what_was_recorded_under_a_whole_name_is_still_read() -> None:
    fact = came(1, T0, "node1.cluster.lan")
    assert node_of(fact) == "local/node1"
    keys = ("local/node1", "local/node1.cluster.lan", "local/node1.other.lan", "other/node1")
    assert [is_recorded_under(fact, key) for key in keys] == [True, True, False, False]


def test_a_line_that_is_read_again_is_told_once() -> None:
    nodes = Nodes()
    nodes.take(came(1, T0))
    one, two = fault(1, T0 + 1_000, source="kern.log"), fault(2, T0 + 2_000, source="kern.log")
    nodes.take(one, two, one, two)
    assert pairs(nodes.told) == [("fault-1", "1"), ("fault-2", "1")]


def test_state_stays_small_and_keeps_what_weighs() -> None:
    nodes = Nodes()
    nodes.take(fault(0, T0, precedence=98), *(fault(number, T0, precedence=10) for number in range(1, 100)))
    nodes.take(*(went(number, T0 - 900_000, T0 - 800_000) for number in range(200)), came(500, T0))
    state = nodes.states["node1"]
    assert (len(state.faults), len(state.stays)) == (KEPT_FAULTS, KEPT_STAYS)
    assert ("fault-0", "500") in pairs(nodes.told)
    nodes.now_ms += KEPT_MS + 1_000
    nodes.take(came(501, T0 + KEPT_MS))
    state = nodes.states["node1"]
    assert state.faults == ()
    assert {stay.attempt.job_id for stay in state.stays} == {"500", "501"}


def test_a_record_that_can_not_be_handled_is_said_and_changes_nothing() -> None:
    nodes = Nodes()
    nodes.take(came(1, T0))
    before = nodes.states["node1"]
    after, [parked] = park_node(before, "local/node1", ("recovery.nodes", 3, 7), "no such word", before.now_ms)
    assert after == before
    assert (parked.event_id, getattr(parked, "key", "")) != ("", "")
    assert getattr(parked, "offset", None) == 7


stays = st.lists(st.tuples(st.integers(0, 300), st.integers(0, 300) | st.none(), st.sampled_from(NODES)), max_size=4)
faults = st.lists(st.tuples(st.integers(-60, 400), st.sampled_from(NODES)), max_size=5)


def facts_of(stays: list[tuple[int, int | None, str]], faults: list[tuple[int, str]]) -> list[NodeFact]:
    facts: list[NodeFact] = [fault(i, T0 + at * 1000, node) for i, (at, node) in enumerate(faults)]
    for number, (start, length, node) in enumerate(stays):
        facts.append(came(number, T0 + start * 1000, node))
        if length is not None:
            facts.append(went(number, T0 + start * 1000, T0 + (start + length) * 1000, node))
    return facts


def concerned(stays: list[tuple[int, int | None, str]], faults: list[tuple[int, str]]) -> set[tuple[str, str]]:
    """By the plain rule: same node, and inside the window that is known in the end."""
    return {
        (f"fault-{i}", str(number))
        for i, (at, at_node) in enumerate(faults)
        for number, (start, length, node) in enumerate(stays)
        if node == at_node
        and start - BEFORE_START_MS // 1000 <= at
        and (length is None or at <= start + length + AFTER_END_MS // 1000)
    }


@settings(max_examples=120, deadline=None)
@given(stays, faults, st.randoms(use_true_random=False))
def test_in_any_order_all_who_are_concerned_are_told_once(
    stays: list[tuple[int, int | None, str]], faults: list[tuple[int, str]], random: object
) -> None:
    facts = facts_of(stays, faults)
    random.shuffle(facts)  # type: ignore[attr-defined]
    nodes = Nodes()
    nodes.take(*facts, *facts)
    told = Counter(pairs(nodes.told))
    assert set(told.values()) <= {1}
    expected = concerned(stays, faults)
    assert told.keys() >= expected
    # More are told only while their end was not known; then they are told on the same node, not before their start.
    endless: list[tuple[int, int | None, str]] = [(start, None, node) for start, _, node in stays]
    assert told.keys() <= concerned(endless, faults)


@settings(max_examples=120, deadline=None)
@given(stays, faults, st.randoms(use_true_random=False))
def test_with_all_ends_known_exactly_those_concerned_are_told(
    stays: list[tuple[int, int | None, str]], faults: list[tuple[int, str]], random: object
) -> None:
    facts = [fact for fact in facts_of(stays, faults) if not isinstance(fact, NodeFaultSeen)]
    seen = [fact for fact in facts_of(stays, faults) if isinstance(fact, NodeFaultSeen)]
    random.shuffle(facts)  # type: ignore[attr-defined]
    random.shuffle(seen)  # type: ignore[attr-defined]
    nodes = Nodes()
    nodes.take(*facts, *seen)
    assert sorted(pairs(nodes.told)) == sorted(concerned(stays, faults))
