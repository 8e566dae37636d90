"""Which node and which rank printed a line, by what launchers and programs put before it.

A node is only ever one of those allocated to the attempt: anything else that looks like a host name is not believed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

HEAD_BYTES = 160
# Whole words at the start, after the brackets and prefixes of launchers: `node2: `, `[node2] `,
# `node2:4311:4400 [1]`, `node2 rank 3: `, `2026-08-01T10:00:00 node2 kernel: `, `[1,0]<stdout>:node2:…`.
_TOKENS = re.compile(rb"[A-Za-z0-9][A-Za-z0-9._-]*")
_MOST_TOKENS = 12
_AFTER_NODE = re.compile(rb"(?:\]|:|:\d+:\d+ \[|\.[A-Za-z0-9.-]*[:\] ]| rank \d| kernel: | slurmstepd| \[)")
# All that may stand before it: brackets, streams, times, months, levels. Possessive: no line makes it backtrack.
_BEFORE_NODE = re.compile(
    rb"(?:\[[^\[\]]{0,80}\]|<std(?:out|err)>|\d[\d:.,+TZ/-]*+|Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
    rb"|(?:DEBUG|INFO|WARNING|WARN|ERROR)\b|[\s:>|(\[-])*+"
)
# A rank of the whole job. Of a node, of a group of ranks, several processes have the same.
_RANK = re.compile(rb"(?i)(?:\b([a-z]+)[ _-])?\brank[ :]{0,2}(\d{1,7})\b|^\[\d+,(\d{1,7})\]<std")
_NOT_OF_JOB = re.compile(
    rb"(?i)local|node|host|machine|group|role|replica|shard|stage|[dtpcesm]p|data|tensor|pipeline|model|expert|context"
    rb"|sequence|parallel"
)
# srun -l numbers tasks. Where each of them is a launcher (`3: [default5]:`), a task is no rank.
_TASK = re.compile(rb"(?i)\[task (\d{1,7})\]|^\s*(\d{1,7}): ")
_LOCAL = re.compile(rb"\[default\d{1,7}\]")
"""What torchrun puts before each line: the role, and the rank among those of the node."""


# A program may print objects.
OBJECT_BYTES = 1024
_NODE_FIELD = re.compile(rb'"(?:host(?:name)?|node)": ?"([A-Za-z0-9][A-Za-z0-9._-]{0,62})"')
_RANK_FIELD = re.compile(rb'"(?:global_)?rank": ?"?(\d{1,7})\b')
# Ray names the node by its address, except the first.
_WORKER = re.compile(rb"\s*\([^()\n]{0,60}pid=\d+, ip=(\d[\d.]+)\)")
# Where only a node's name stands: NCCL, syslog, Open MPI, Slurm, submitit, torchrun, Ray (an address).
_NAME = "([A-Za-z][A-Za-z0-9._-]{0,62})"
# Where other words stand, too: a name with a number in it, or an address.
_HOST = r"([A-Za-z][A-Za-z._-]{0,40}\d[A-Za-z0-9._-]{0,40}|\d{1,3}(?:\.\d{1,3}){3})"
_PLACES = (
    r"(?:^|[\s:])NAME:\d+:\d+ \[\d+\]",
    r"\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)? NAME kernel: ",
    r"^\[NAME:\d+\] ",
    r" ON NAME (?:CANCELLED )?AT ",
    r"srun: error: NAME: tasks? ",
    r"(?i:on node )NAME\b",
    r"Node failure on NAME\b",
    r"NODELIST=NAME\b",
    r"hostname=NAME\b",
    r"\s+host\s+: NAME$",
    r"FAILED: NAME ",
    r", node NAME,",
    r"pid=\d+, ip=(\d[\d.]+)\)",
    r"\bRank=\d+ Node=NAME\b",
    r"^HOST:? kernel: (?:\[ *\d+\.\d+\] )?(?:NVRM|mlx5_core|EDAC|mce|pcieport|nvme|nvidia|Out of memory)",
    r"pdsh@\S{1,80}: HOST: (?:ssh|mcmd) ",
    r"ssh: connect to host HOST port ",
    r'^\{.{0,400}"(?:host(?:name)?|node)": ?"HOST"',
)
_CERTAIN = re.compile("|".join(_PLACES).replace("NAME", _NAME).replace("HOST", _HOST).encode())
_LEADING = re.compile(rb"^\[?([A-Za-z][A-Za-z_-]*\d+[A-Za-z0-9.-]*|\d{1,3}(?:\.\d{1,3}){3})(?:\]|:) ")
_NO_NODE = re.compile(
    rb"(?i)^(?:(?:epoch|step|iter|iteration|rank|worker|gpu|cuda|default|stage|layer|batch|errno|error|task|mlx5|eth|ib"
    rb"|nvme|job|fold)[_-]?)?\d"
    rb"|^(?:r|p|proc(?:ess)?|thread|actor|learner|replica|[dtpce]p)[_-]?\d+$"
    rb"|.*\.[A-Za-z_]\w*(?:Error|Exception|Warning|Timeout|Interrupt)$"
)


def named_nodes(line: bytes) -> list[str]:
    """Names of nodes in a line; for logs of which nobody knows the allocation."""
    leading = named_in_front(line)
    return list(dict.fromkeys(named_by_place(line) + ([] if leading is None else [leading])))


def named_by_place(line: bytes) -> list[str]:
    """Names that stand where nothing but a node's does."""
    names = [name for match in _CERTAIN.finditer(line[:1024]) for name in match.groups() if name]
    return [name.decode().rstrip(".") for name in dict.fromkeys(names)]


def named_in_front(line: bytes) -> str | None:
    """What a launcher may have put before a line: a node's name, by its looks."""
    word = word_in_front(line)
    return None if word is None or _NO_NODE.match(word.encode()) else word


def word_in_front(line: bytes) -> str | None:
    """The same, of which only other names can show whether it is one: `worker-1: `, `10.0.0.5: `."""
    leading = _LEADING.match(line, 0, HEAD_BYTES)  # backtracks over a long run of digits
    return None if leading is None else leading.group(1).decode().rstrip(".")


@dataclass(frozen=True)
class Origin:
    """Who printed a line; None where it does not say."""

    node: str | None
    rank: int | None


def origin_of(line: bytes, nodes: Collection[str]) -> Origin:
    """Read the line's prefix. `nodes` are the attempt's allocated nodes, as the scheduler names them."""
    return origin_among(line, names_of(nodes))


def names_of(nodes: Iterable[str]) -> dict[str, str]:
    """Each node by its name, and by its name without the domain if no other has that; an address has no domain."""
    whole = {name: name for name in nodes}
    short: dict[str, list[str]] = {}
    for name in whole:
        short.setdefault(name if name[:1].isdigit() else name.partition(".")[0], []).append(name)
    return {key: names[0] for key, names in short.items() if len(names) == 1} | whole


def origin_among(line: bytes, names: Mapping[str, str]) -> Origin:
    """As `origin_of`, for many lines and nodes: `names` as `names_of` gives them."""
    if line.startswith(b"{"):
        return _of_object(line[:OBJECT_BYTES], names)
    head = line[:HEAD_BYTES]
    return Origin(_node(head, names), _rank(head))


def _of_object(line: bytes, names: Mapping[str, str]) -> Origin:
    """What the fields of a JSON line say."""
    node, rank = _NODE_FIELD.search(line), _RANK_FIELD.search(line)
    name = None if node is None else node.group(1).decode()
    known = None if name is None else names.get(name) or names.get(name.partition(".")[0])
    return Origin(known, None if rank is None else int(rank.group(1)))


def _node(head: bytes, names: Mapping[str, str]) -> str | None:
    worker = _WORKER.match(head)
    if worker is not None:
        return names.get(worker.group(1).decode())
    for count, match in enumerate(_TOKENS.finditer(head)):
        if count >= _MOST_TOKENS:
            break
        token = match.group().decode()
        name = names.get(token) or names.get(token.partition(".")[0])
        if name is not None and _BEFORE_NODE.fullmatch(head[: match.start()]) and _AFTER_NODE.match(head, match.end()):
            return name
    return None


def _rank(head: bytes) -> int | None:
    for match in _RANK.finditer(head):
        if match.group(1) is None or not _NOT_OF_JOB.fullmatch(match.group(1)):
            return int(match.group(2) or match.group(3))
    task = None if _LOCAL.search(head) else _TASK.search(head)
    return None if task is None else int(task.group(1) or task.group(2))
