"""Whom do the lines blame? Names, addresses and ranks that mean a node, and the node that says nothing. Pure.

A program names its peers by address and its ranks by number. Which node that is, other lines show: those that a node
prints of itself, and those that name both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from schemas.vocabulary import FaultClass
from streams.decide.state import Line

_IP = r"(?P<ip>\d{1,3}(?:\.\d{1,3}){3})"
_NAME = r"(?P<node>[A-Za-z][A-Za-z0-9._-]{0,62})"
_WITH_ADDRESS = tuple(
    re.compile(pattern.replace("IP", _IP).replace("NAME", _NAME))
    for pattern in (
        r"(?:^|[\s:>\]])NAME:\d+:\d+ \[\d+\] NCCL INFO .{0,160}?(?:Using|OOB) (?:\[\d+\])?[\w.-]+:IP<",
        r"\bNAME ?[(\[/]IP\b",
        r"\bIP ?[(\[]NAME[)\]]",
        r"^IP\s+NAME(?:\s|$)",
    )
)
_WITH_RANK = tuple(
    re.compile(pattern.replace("NAME", _NAME))
    for pattern in (
        r"\b[Rr]ank (?P<rank>\d+), node NAME,",
        r"\brank=(?P<rank>\d+), node='NAME'",
        r"hostname=NAME, .{0,60}global_rank=(?P<rank>\d+)",
        r"\bRank=(?P<rank>\d+) Node=NAME\b",
    )
)
_COMMUNICATOR = re.compile(
    rf"(?:^|[\s:>\]]){_NAME}:\d+:\d+ \[\d+\] NCCL INFO .{{0,80}}?\brank (?P<rank>\d+) nranks (?P<size>\d+)\b"
)


_TASKS = re.compile(rf"srun: error: {_NAME}: tasks? (?P<tasks>\d[\d,-]{{0,400}}):")
MOST_TASKS = 4096
"""Ranks that one line of srun may name."""


@dataclass(frozen=True)
class Places:
    """Which node an address or a rank means, by the nodes' names as lines print them."""

    addresses: Mapping[str, str] = field(default_factory=dict)
    ranks: Mapping[int, str] = field(default_factory=dict)


def places_of(texts: Iterable[str], lines: Sequence[Line] = ()) -> Places:
    """Read them from lines of whatever kind. Of communicators only the largest counts its ranks as the job does."""
    addresses: dict[str, str] = {}
    ranks: dict[int, str] = {}
    largest = 0
    for text in texts:
        for pattern in _WITH_ADDRESS:
            addresses.update((match["ip"], match["node"]) for match in pattern.finditer(text))
        for pattern in _WITH_RANK:
            ranks.update((int(match["rank"]), match["node"]) for match in pattern.finditer(text))
        ended = _TASKS.search(text)
        if ended is not None:
            ranks.update(dict.fromkeys(_numbers(ended["tasks"]), ended["node"]))
        member = _COMMUNICATOR.search(text)
        if member is not None and int(member["size"]) >= largest:
            largest = int(member["size"])
            ranks[int(member["rank"])] = member["node"]
    ranks.update(
        (line.evidence.rank, line.evidence.node)
        for line in lines
        if line.evidence.rank is not None and line.evidence.node is not None
    )
    return Places(addresses, ranks)


def _numbers(text: str) -> list[int]:
    """`32-39,41`, as Slurm writes sets of tasks; of absurd ones only the first."""
    found: list[int] = []
    for part in text.strip(",-").split(","):
        low, _, high = part.partition("-")
        if low.isdigit() and (high.isdigit() or not high):
            found += range(int(low), min(int(high or low), int(low) + MOST_TASKS) + 1)
    return found[:MOST_TASKS]


def means_by_number(line: Line) -> bool:
    """Whether a line names somebody by a rank or an address, whose node must be looked for in others (`places_of`)."""
    by_itself = line.evidence.rank is not None and line.evidence.node is None
    return by_itself or line.blamed_rank is not None or (line.peer is not None and line.peer[:1].isdigit())


def host_of(name: str | None, nodes: Sequence[str], places: Places | None = None) -> str | None:
    """The node among those that take part which a printed name or address means: `node48<37948>`, `10.0.0.5:29500`.

    Domains count only where without them it could be several.
    """
    if name is None:
        return None
    host = re.split(r"[<:]", name, maxsplit=1)[0]
    if places is not None:
        host = places.addresses.get(host, host)
    short = host if host[:1].isdigit() else host.partition(".")[0]  # of an address the first number means nothing
    whole = next((one for one in (name, host, short) if one in nodes), None)
    if whole is not None:
        return whole
    alike = [node for node in nodes if node.partition(".")[0] == short]
    return alike[0] if len(alike) == 1 else None


def blamed_node(line: Line, nodes: Sequence[str], places: Places) -> str | None:
    """The node that a line blames, by its peer's name or address or by a rank; None for the node that prints it."""
    node = host_of(line.peer, nodes, places)
    if node is None and line.blamed_rank is not None and line.blamed_rank != line.evidence.rank:
        node = host_of(places.ranks.get(line.blamed_rank), nodes)
    return None if node == line.evidence.node else node


def voices_against(
    lines: Sequence[Line], nodes: Sequence[str], places: Places
) -> dict[str, set[tuple[str | None, int | None]]]:
    """For each node that lines blame, who does so: a node and a rank."""
    blaming: dict[str, set[tuple[str | None, int | None]]] = {}
    for line in lines:
        node = blamed_node(line, nodes, places)
        if node is not None:
            blaming.setdefault(node, set()).add((line.evidence.node, line.evidence.rank))
    return blaming


def silent_node(lines: Sequence[Line], nodes: Sequence[str]) -> str | None:
    """The only node that does not report that a collective timed out, where all others do."""
    late = [line for line in lines if line.fault_class is FaultClass.NCCL_TIMEOUT]
    reporting = {host_of(line.evidence.node, nodes) for line in late}
    silent = [node for node in nodes if node not in reporting]
    return silent[0] if len(silent) == 1 and len(nodes) > 2 else None
