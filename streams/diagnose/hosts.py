"""Which hosts a file speaks of: is it a node's own log, and of a node that the job ran on?

A job's output names its nodes here and there. Where it names all of them, the log of any other node is beside the
point, however loud. Where it may leave some out, nobody can tell, and a node's log is believed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

MOST_HOSTS, MOST_CHARACTERS = 4096, 4096
RANKS_OF_NODE = 8
"""A node hardly runs more ranks than this: more ranks mean more nodes."""
_MONTH = rb"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
# syslog and journald; dmesg, which names no host; and a kernel's words without anything before them.
_SYSLOG = re.compile(
    rb"(?:<\d{1,3}>)?(?:" + _MONTH + rb" [ \d]\d \d\d:\d\d:\d\d"
    rb"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d))"
    rb" (?!(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL|FATAL)\b)([A-Za-z0-9][\w.-]{0,252})"
    rb" [\w./()-]{1,48}(?:\[\d+\])?: "
)
_DMESG = re.compile(rb"(?:<\d{1,3}>)?(?:\[ *\d+\.\d{6}\] |\[\w{3} " + _MONTH + rb" [ \d]\d |kernel: |NVRM: )")
_NODE_LIST = re.compile(rb"(?i)\b(?:SLURM_(?:JOB_|STEP_)?NODELIST|NodeList)['\"]?[=: ]{1,3}['\"]?([\w.\[\],-]{1,4000})")
_ITEM = re.compile(r"([^,\[\]]+)(?:\[([\d,-]+)\]([^,\[\]]*))?")
_NODES = re.compile(rb"\b(?:nnodes|num_?nodes|slurm_(?:job_|step_)?(?:num_|n)nodes)['\"]?[=: ]{1,3}(\d{1,6})\b")
_RANKS = re.compile(rb"\b(?:nranks|world[_ ]?size)['\"]?[=: ]{1,3}(\d{1,7})\b")
_NUMBERED = re.compile(r"[A-Za-z][^.]*\d")
_NO_HOST = {"localhost", "localhost.localdomain", "node", "none", "null"}


@dataclass
class Hosts:
    """Give it the lines of a file, as many as there is time for."""

    listed: set[str] = field(default_factory=set)
    """All nodes of the job, as the scheduler lists them."""
    named: set[str] = field(default_factory=set)
    """Nodes that lines name where nothing but a node's name stands."""
    leading: set[str] = field(default_factory=set)
    """What stands before lines and may be a node."""
    least: int = 0
    """The job has so many nodes at least."""
    _lines: int = 0
    _of_node: int = 0

    @property
    def is_node_log(self) -> bool:
        """Whether most lines are a system's own."""
        return 2 * self._of_node > self._lines

    def hear(self, line: bytes, named: Iterable[str], leading: str | None) -> None:
        """Take the next line, with the names in it by their place, and the one in front of it."""
        if not line.strip():
            return
        self._lines += 1
        self._of_node += is_of_node(line)
        if len(self.named) + len(self.leading) < MOST_HOSTS:
            self.named.update(named)
            self.leading |= set() if leading is None else {leading}
        words = line[:MOST_CHARACTERS].lower()
        if b"node" in words:
            for match in _NODE_LIST.finditer(line[:MOST_CHARACTERS]):
                self.listed |= set(_expanded(match[1].decode()))
            self.least = max([self.least, *(int(match[1]) for match in _NODES.finditer(words))])
        if b"rank" in words or b"world" in words:
            ranks = max((int(match[1]) for match in _RANKS.finditer(words)), default=0)
            self.least = max(self.least, -(-ranks // RANKS_OF_NODE))


def is_of_node(line: bytes) -> bool:
    """Whether a node's system printed this line, and not a program of the job."""
    return _SYSLOG.match(line) is not None or _DMESG.match(line) is not None


def host_of_line(line: bytes) -> str | None:
    """The host that a line of a system's log names as its own."""
    match = _SYSLOG.match(line)
    return None if match is None or match[1].decode().lower() in _NO_HOST else match[1].decode()


def is_elsewhere(
    host: str, jobs: Sequence[Hosts], ranks: int = 0, peers: Sequence[str] = (), *, explained: bool = False
) -> bool:
    """Whether a host is none of those on which the job ran, by the files that are the job's own.

    `ranks`: the job has so many at least; `peers`: whom its processes talked to, by name or address. `explained`: the
    job's own lines say why it failed, so that a node that it does not name is none of its, even if it may have more.
    """
    listed = {name for one in jobs for name in one.listed}
    named = {name for one in jobs for name in one.named}
    alike = {name for one in jobs for name in one.leading if _stem(name) == _stem(host)}
    if any(_same(host, name) for name in listed | named | alike):
        return False
    # A name without a number may be a word, and one that begins with a number is an address.
    known = {name.partition(".")[0] for name in named | alike if _NUMBERED.match(name)} - _NO_HOST
    if listed or not known or explained:
        return bool(listed or known)
    talks_to_others = any(re.split(r"[.<:]", peer)[0] not in known for peer in peers)
    return len(known) >= max(1 + talks_to_others, -(-ranks // RANKS_OF_NODE), *(one.least for one in jobs))


def _same(one: str, other: str) -> bool:
    """Whether two names mean the same host: with their domains, where both have one."""
    one, other = one.lower(), other.lower()
    short, _, domain = one.partition(".")
    other_short, _, other_domain = other.partition(".")
    return short == other_short and (not domain or not other_domain or domain == other_domain)


def _stem(name: str) -> str:
    return re.split(r"[\d.]", name.lower(), maxsplit=1)[0]


def _expanded(text: str) -> Iterator[str]:
    """The names of a list as Slurm writes it, of an absurd one only the first: `node[01-04,7],login1`."""
    count = 0
    for prefix, numbers, suffix in _ITEM.findall(text):
        for part in numbers.split(",") if numbers else [""]:
            low, _, high = part.partition("-")
            for number in range(int(low), int(high or low) + 1) if low.isdigit() else [None]:
                count += 1
                if count > MOST_HOSTS:
                    return
                yield prefix + ("" if number is None else str(number).zfill(len(low))) + suffix
