"""The node decider: which attempts were on a node when it said that it failed? Pure, one node at a time.

The names of a node, the scheduler's and its own, are compared without their domains; where the scheduler has nodes that
only domains tell apart, whole names count. What an attempt is told names the node as the scheduler does.

Facts come late and in any order: a fault waits here for the news who was there, an allocation for the faults that are
still being read. Each fault is told to each attempt once. While nobody knows that an attempt has ended its window is
open; the attempt decider, which learns its end, drops what came after it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from schemas.decisions import FactParked
from schemas.facts import NodeFault
from schemas.frozen import replace
from schemas.identity import AttemptId, Position, derived_id
from schemas.nodes import NodeAllocated, NodeFact, NodeFaultSeen, NodeFaultTold, NodeFreed, node_of
from streams.decide.state import advance

NODE_STATE_VERSION = 2
BEFORE_START_MS = 30_000
"""A node that failed so shortly before an attempt began there is that attempt's concern."""
AFTER_END_MS = 5_000
"""Clocks of nodes and of the scheduler differ, and the scheduler tells whole seconds."""
KEPT_MS = 3_600_000
KEPT_FAULTS = 16
KEPT_STAYS = 64


@dataclass(frozen=True)
class Fault:
    """A fault of the node that may still concern somebody, and whom it was told to."""

    event_id: str
    fault: NodeFault
    told: tuple[AttemptId, ...]
    taken_ms: int


@dataclass(frozen=True)
class Stay:
    """An attempt on the node; `end_ms` is None while it is there."""

    attempt: AttemptId
    start_ms: int
    end_ms: int | None
    taken_ms: int
    node: str = field(default="", repr=False)
    """The node as the scheduler names it; empty in states of version 1, which knew only one name, and no part
    of what those are compared by."""

    def distance_ms(self, at_ms: int) -> int:
        """0 inside the window, negative before its start, positive after its end."""
        if at_ms < self.start_ms:
            return at_ms - self.start_ms
        return 0 if self.end_ms is None else max(0, at_ms - self.end_ms)


@dataclass(frozen=True)
class NodeState:
    """Everything the decider knows of one node."""

    cluster: str
    node: str
    now_ms: int
    marks: tuple[Position, ...]
    faults: tuple[Fault, ...]
    stays: tuple[Stay, ...]


NodeOutcome = tuple[NodeState, tuple[NodeFaultTold | FactParked, ...]]


def decide_node(state: NodeState | None, fact: NodeFact, recorded_ms: int) -> NodeOutcome:
    """Return the node's new state and whom a fault is told to. A fact that was already taken in changes nothing.

    `recorded_ms` is the record's timestamp in `recovery.nodes`; the running maximum of it is the only now.
    """
    node = _at(state, node_of(fact), recorded_ms)
    if isinstance(fact, NodeFaultSeen):
        marks = advance(node.marks, fact.position)
        if marks is None:
            return node, ()
        node = replace(node, marks=marks, faults=(*node.faults, Fault(fact.event_id, fact.fault, (), node.now_ms)))
    else:
        node = replace(node, stays=_with_stay(node, fact))
    node, told = _tell(node, fact.event_id)
    return _forget(node), told


def park_node(
    state: NodeState | None, key: str, record: tuple[str, int, int], reason: str, recorded_ms: int
) -> NodeOutcome:
    """Record that a record can't be handled; `record` is its topic, partition and offset."""
    node = _at(state, key, recorded_ms)
    topic, partition, offset = record
    cause = f"{topic}/{partition}/{offset}"
    return node, (FactParked(derived_id(cause, 1), cause, key, node.now_ms, topic, partition, offset, reason),)


def _at(state: NodeState | None, key: str, recorded_ms: int) -> NodeState:
    if state is None:
        cluster, _, name = key.partition("/")
        state = NodeState(cluster, name, 0, (), (), ())
    return replace(state, now_ms=max(state.now_ms, recorded_ms))


def _with_stay(node: NodeState, fact: NodeAllocated | NodeFreed) -> tuple[Stay, ...]:
    """The stays with this one; an end that is known is not taken back by a late start."""
    known = next((stay for stay in node.stays if stay.attempt == fact.attempt), None)
    if known is not None and isinstance(fact, NodeAllocated):
        return node.stays
    end_ms = fact.end_ms if isinstance(fact, NodeFreed) else None
    others = tuple(stay for stay in node.stays if stay is not known)
    return (*others, Stay(fact.attempt, fact.start_ms, end_ms, node.now_ms, fact.node))


def _tell(node: NodeState, cause: str) -> tuple[NodeState, tuple[NodeFaultTold, ...]]:
    told: list[NodeFaultTold] = []
    faults = []
    for fault in node.faults:
        found = [
            NodeFaultTold(
                derived_id("told", fault.event_id, stay.attempt.key),
                cause,
                stay.attempt,
                node.now_ms,
                fault.event_id,
                _as_named(fault.fault, stay.node or node.node),
                stay.distance_ms(fault.fault.at_ms),
            )
            for stay in _stays_there(node, fault.fault)
            if stay.attempt not in fault.told
            and -BEFORE_START_MS <= stay.distance_ms(fault.fault.at_ms) <= AFTER_END_MS
        ]
        faults.append(replace(fault, told=(*fault.told, *(one.attempt for one in found))))
        told += found
    return replace(node, faults=tuple(faults)), tuple(told)


def _stays_there(node: NodeState, fault: NodeFault) -> tuple[Stay, ...]:
    """The stays on the node that the fault is of: all, unless whole names have to tell nodes apart."""
    names = [stay.node or node.node for stay in node.stays]
    if len(set(names)) < 2:
        return node.stays
    return tuple(stay for stay, name in zip(node.stays, names, strict=True) if name == fault.evidence.node)


def _as_named(fault: NodeFault, name: str) -> NodeFault:
    """The fault with the node's name as the scheduler has it: that is what can be excluded."""
    if fault.node == fault.evidence.node == name:
        return fault
    return replace(fault, node=name, evidence=replace(fault.evidence, node=name))


def _forget(node: NodeState) -> NodeState:
    """Keep what is recent, and of too many faults the weightiest, of too many stays those that last."""
    faults = [fault for fault in node.faults if node.now_ms - fault.taken_ms <= KEPT_MS]
    while len(faults) > KEPT_FAULTS:
        faults.remove(min(faults, key=lambda fault: (fault.fault.precedence, fault.taken_ms)))
    stays = [stay for stay in node.stays if stay.end_ms is None or node.now_ms - stay.taken_ms <= KEPT_MS]
    while len(stays) > KEPT_STAYS:
        stays.remove(min(stays, key=lambda stay: (stay.end_ms is None, stay.taken_ms)))
    return replace(node, faults=tuple(faults), stays=tuple(stays))
