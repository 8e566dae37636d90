"""Nodes: what their own logs and metrics say, who was allocated on them, and what the node decider told to whom.

A node's line is no line of a job. It reaches an attempt only through the node decider, which knows who was there at
the time, and it keeps its own name on the way: the witness is always told apart from the job's output.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from schemas.facts import NodeFault
from schemas.identity import AttemptId, Position


@dataclass(frozen=True)
class NodeFaultSeen:
    """A node's log or metric says that something failed on it; nobody knows yet whom it concerns."""

    event_id: str
    cause: str
    position: Position
    fault: NodeFault


@dataclass(frozen=True)
class NodeAllocated:
    """An attempt runs on a node; one for each node of its allocation."""

    event_id: str
    cause: str
    attempt: AttemptId
    node: str
    start_ms: Annotated[int, "when the attempt started, by the scheduler"]
    decided_ms: int


@dataclass(frozen=True)
class NodeFreed:
    """An attempt no longer runs on a node. It says all: the allocation need not have been heard of before."""

    event_id: str
    cause: str
    attempt: AttemptId
    node: str
    start_ms: Annotated[int, "when the attempt started, by the scheduler"]
    end_ms: Annotated[int, "when it ended, by the scheduler where that is known"]
    decided_ms: int


@dataclass(frozen=True)
class NodeFaultTold:
    """The node decider found an attempt that was on the node at the time of a fault; once for each of the two."""

    event_id: str
    cause: Annotated[str, "event id of the fact that brought the two together"]
    attempt: AttemptId
    decided_ms: int
    seen: Annotated[str, "event id of the NodeFaultSeen"]
    fault: NodeFault
    distance_ms: Annotated[int, "0 inside the attempt's window; negative before its start, positive after its end"]


Allocation = NodeAllocated | NodeFreed
NodeFact = NodeFaultSeen | NodeAllocated | NodeFreed


def short_name(node: str) -> str:
    """A node's name without its domain, which the scheduler and the node may see differently; an address has none."""
    return node if node.replace(".", "").isdigit() else node.partition(".")[0]


def node_of(fact: NodeFact | NodeFaultTold) -> str:
    """`cluster/node`, by the short name: the record key that gives all that is known of one node one order."""
    cluster, node = _names(fact)
    return f"{cluster}/{short_name(node)}"


def is_recorded_under(fact: NodeFact, key: str) -> bool:
    """Whether this is the fact's key, or the one that it had before keys were short names."""
    return key in (node_of(fact), "/".join(_names(fact)))


def _names(fact: NodeFact | NodeFaultTold) -> tuple[str, str]:
    """The cluster, and the node as the fact names it."""
    match fact:
        case NodeAllocated() | NodeFreed():
            return fact.attempt.cluster, fact.node
        case _:
            return fact.fault.cluster, fact.fault.node
