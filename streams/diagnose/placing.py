"""On which nodes lines were printed, by all files together: one names a node that another has before its lines.

Where srun starts one launcher a node, the number that it puts before a line is that launcher's: a node, no rank.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from streams.decide.blame import Places, places_of
from streams.decide.state import Line
from streams.decide.weighing import REPORTERS
from streams.diagnose.account import Sighting
from streams.watch.origin import names_of, origin_among

_OF_LAUNCHER = re.compile(r"\s{0,4}(\d{1,6}): \[(?:default|rank)\d")
_SAYS_OF_TASKS = "srun: error: "
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


def _on(one: Sighting, node: str | None) -> Sighting:
    return replace(one, line=replace(one.line, evidence=replace(one.line.evidence, node=node)))
