"""On which nodes lines were printed, by all files together: one names a node that another has before its lines.

Where srun starts one launcher a node, the number that it puts before a line is that launcher's: a node, no rank.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from schemas.vocabulary import FaultClass, LineRole, Scope
from streams.decide.blame import Places, host_of, places_of
from streams.decide.cause import Cause, Scene
from streams.decide.state import Line
from streams.decide.weighing import LAUNCHERS_SUMMARY, REPORTERS
from streams.diagnose.account import Sighting
from streams.watch.whose.origin import names_of, origin_among

_OF_LAUNCHER = re.compile(r"\s{0,4}(\d{1,6}): \[(?:default|rank)\d")
_SAYS_OF_TASKS = "srun: error: "
_FAILED_ON = {"slurm-task-exit", LAUNCHERS_SUMMARY}
"""What launchers say of a process that failed by itself, with its node."""
_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}")


def placed(sightings: Sequence[Sighting], texts: Sequence[str], nodes: Sequence[str]) -> tuple[list[Sighting], Places]:
    """The lines with their nodes, among those that take part, and which nodes addresses and ranks mean.

    `texts` may say what addresses, ranks and tasks mean. Where tasks are ranks, lines have no node by them.
    """
    names = names_of(nodes)
    sightings = [
        _on(one, origin_among(one.line.evidence.text.encode(), names).node) if one.line.evidence.node is None else one
        for one in sightings
    ]
    tasks = [_OF_LAUNCHER.match(one.line.evidence.text) for one in sightings]
    if not any(tasks):
        return sightings, places_of(texts, [one.line for one in sightings])
    on_nodes = places_of(text for text in texts if _SAYS_OF_TASKS in text).ranks
    found = [
        one if task is None or one.line.evidence.node is not None else _on(one, on_nodes.get(int(task[1])))
        for one, task in zip(sightings, tasks, strict=True)
    ]
    others = (text for text in texts if _SAYS_OF_TASKS not in text)
    return found, places_of(others, [one.line for one in found])


def unnamed_peers(lines: Sequence[Line], places: Places) -> tuple[str, ...]:
    """The addresses that several nodes blame, and of which nobody says whose they are: each is a node's."""
    blaming: dict[str, set[str]] = {}
    for line in lines:
        address = _ADDRESS.match(line.peer or "")
        if address is not None and address[0] not in places.addresses and line.evidence.node is not None:
            blaming.setdefault(address[0], set()).add(line.evidence.node)
    return tuple(address for address, nodes in blaming.items() if len(nodes) >= REPORTERS)


def broken_nodes(cause: Cause, lines: Sequence[Line], scene: Scene, least: int) -> tuple[str, ...]:
    """The nodes of a cause, or the one that other lines tell where its root, which speaks of a node, does not say of
    which.

    A node that was lost is told by its address where nobody tells its name. One that is broken must be the only one
    that lines of faults name, and one of them must say that it was lost, or, where the job has no other, that it or
    what ran on it failed: the first node that prints anything is no worse than any. `least`: the job has so many nodes.
    """
    root = cause.root
    if cause.nodes or cause.scope is not Scope.NODE or root.evidence.node is not None:
        return cause.nodes
    if root.peer is not None:
        return (host_of(root.peer, scene.nodes, scene.places) or re.split(r"[<:]", root.peer, maxsplit=1)[0],)
    if root.evidence.rank is not None or root.blamed_rank is not None:
        return ()
    telling = [line for line in lines if line.evidence.node is not None]
    named = {host_of(line.evidence.node, scene.nodes) or line.evidence.node for line in telling}
    says = _failed if len(scene.nodes) == 1 and least <= 1 else _was_lost
    return tuple(node for node in named if node is not None) if len(named) == 1 and any(map(says, telling)) else ()


def _failed(line: Line) -> bool:
    return _was_lost(line) or line.signature in _FAILED_ON or (line.scope is Scope.NODE and line.role is LineRole.CAUSE)


def _was_lost(line: Line) -> bool:
    return line.fault_class is FaultClass.NODE_LOST and line.scope is Scope.NODE and line.role is LineRole.CAUSE


def _on(one: Sighting, node: str | None) -> Sighting:
    return replace(one, line=replace(one.line, evidence=replace(one.line.evidence, node=node)))
