"""What lines are weighed against, and what comes of it. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from schemas.vocabulary import FaultClass, Remedy, Scope
from streams.decide.blame import Places
from streams.decide.state import Line


@dataclass(frozen=True)
class Earlier:
    """The cause of an earlier failure of the same job, and the last step before it."""

    signature: str
    step: int | None


@dataclass(frozen=True)
class Scene:
    """What is known beside the lines."""

    nodes: tuple[str, ...]
    """The nodes that take part, by the names that lines use."""
    step: int | None = None
    """The last step before the failure."""
    finished: bool = False
    """The program said that it is done before the first of the lines."""
    silent_ms: int | None = None
    """How long nothing was printed before the scheduler ended the run."""
    silent_rank: int | None = None
    """The rank that stopped printing before the others."""
    earlier: tuple[Earlier, ...] = ()
    places: Places = field(default_factory=Places)
    """Which nodes addresses and ranks mean."""


@dataclass(frozen=True)
class Cause:
    """The outcome. `nodes`: the broken ones, among those that take part."""

    fault_class: FaultClass
    scope: Scope
    remedy: Remedy
    nodes: tuple[str, ...]
    root: Line
    confidence: float
    explanation: str


def what(root: Line) -> str:
    """What the line says, where, and by whom it is told."""
    node = root.evidence.node
    where = f" on {node}" if node is not None and node not in root.detail else ""
    return f"{root.detail or root.signature}{where}{root.told_by}"


def said(
    root: Line,
    fault_class: FaultClass,
    scope: Scope,
    remedy: Remedy,
    confidence: float,
    text: str,
    nodes: tuple[str, ...] = (),
) -> Cause:
    """The outcome, with its kind added to the words."""
    kind = fault_class.value.replace("_", " ")
    return Cause(fault_class, scope, remedy, nodes, root, confidence, f"{text} ({kind})")


def began_with(cause: Cause, first: Line | None) -> Cause:
    """The cause with its root where it began; as it is where that is not known."""
    if first is None:
        return cause
    return replace(cause, root=first, explanation=f"{what(first)}; then {cause.explanation}")
