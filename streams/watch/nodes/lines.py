"""Reads what a node says about itself out of lines of kernel and system logs, wherever they come from.

The same packs as for job output are used, and of them only what a node can witness: a traceback in a system log is
some daemon's, and a node never says that a program must not be run again.

A fault is joined with jobs by node and time. A line that carries no time (the kernel's `[   81.2]` counts from a start
that nobody knows) happened when it was seen to appear; what was there at the first look at its log is of any age.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import tzinfo

import structlog

from recovery.metrics import counter
from schemas.facts import Evidence, NodeFault
from schemas.identity import Position, derived_id
from schemas.nodes import NodeFaultSeen, short_name
from schemas.vocabulary import FaultClass, Remedy, Witness
from streams.watch.masking import digest_of, kept_text
from streams.watch.matching.matcher import Fault, Found, Matcher
from streams.watch.matching.packs import Signature
from streams.watch.throttle import Throttle
from streams.watch.whose.stamps import stamp_ms

log = structlog.get_logger(__name__)

UNTIMED = counter(
    "watch_node_faults_untimed",
    "Faults in node logs without a time of their own, of which nobody saw when they were written.",
)
OLD = counter("watch_node_faults_old", "Faults in node logs that their time makes too old to concern anybody.")
OLDEST_MS = 3_600_000
"""A line that was this old when it was read concerns nobody any more: the node decider forgets as fast."""

# Of user code a node's kernel reports the faults that it causes on a GPU.
WITNESSED = frozenset(
    {
        FaultClass.GPU_HARDWARE,
        FaultClass.GPU_MEMORY_ECC,
        FaultClass.NVLINK,
        FaultClass.NETWORK_IB,
        FaultClass.HOST_HARDWARE,
        FaultClass.HOST_OOM,
        FaultClass.STORAGE_IO,
        FaultClass.NODE_LOST,
        FaultClass.STRAGGLER,
        FaultClass.USER_CODE,
    }
)
_REMEDIES = frozenset({Remedy.RESTART, Remedy.RESTART_EXCLUDING_NODE})
# `<6>Aug  1 10:00:00 node2 kernel: …`, `<6>1 2026-08-01T10:00:00Z node2 kernel …`, and both without a priority.
_HOST = re.compile(
    rb"(?:<\d{1,3}>(?:\d )?)?(?:[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d(?:\.\d+)?|\d{4}-\d\d-\d\dT\S{8,24}) "
    rb"(?P<host>[A-Za-z0-9][A-Za-z0-9._-]{0,252}) "
)
_ADDRESS = re.compile(r"[\d.]+|\[.*")


@dataclass(frozen=True)
class Where:
    """Where a piece of text stands: its first byte in its source, and what is known beside it."""

    source: str
    epoch: int
    offset: int
    line_no: int
    """Lines before the piece, where the source counts them."""
    read_ms: int
    node: str | None
    """The node whose log it is, with its domain if that is known; None where each line names its host."""
    after_ms: int | None = None
    """The piece was not there yet at this time; None where nobody knows since when it is."""
    path: str = ""
    index: int = 0
    """Tells apart lines at one offset."""
    identity: str = ""
    """What names a line in a store, whose offsets are times."""

    @property
    def name(self) -> tuple[str | int, ...]:
        """What tells the line from others of its source and epoch."""
        return (self.identity,) if self.identity else (self.offset, self.index)


class NodeLines:
    """Turns text into facts. Remembers only what keeps a burst of lines small, and of whom it has complained."""

    def __init__(self, matcher: Matcher, cluster: str, zone: tzinfo | None, skew_ms: int) -> None:
        self._matcher = matcher
        self._cluster = cluster
        self._zone = zone
        self._skew_ms = skew_ms
        self._throttle = Throttle()
        self.unplaced = 0
        """Faults of which nobody could say on which node they were."""
        self._said: set[tuple[str, str]] = set()

    def faults(self, text: bytes, before: bytes, where: Where) -> Iterator[NodeFaultSeen]:
        """Give the faults in whole lines; `before` are the last lines before them."""
        line_no, counted = where.line_no + 1, 0
        for found in self._matcher.scan(text, before):
            line_no, counted = line_no + text.count(b"\n", counted, found.start), found.start
            line_ms = stamp_ms(found.line, zone=self._zone, near_ms=where.read_ms)
            own = replace(where, offset=where.offset + found.start, line_no=line_no)
            fact = self.fault(found, line_ms, own)
            if fact is not None:
                yield fact

    def fault(self, found: Found, line_ms: int | None, where: Where) -> NodeFaultSeen | None:
        """The fault in one line, which stands at `where` and was written at `line_ms`; None where it tells none."""
        if found.fault is None or not _witnessed(found.fault.signature):
            return None
        host = where.node or host_of(found.line)
        if host is None:
            self.unplaced += 1
            return None
        return self._fact(found, found.fault, host, line_ms, where)

    def _fact(self, found: Found, fault: Fault, host: str, line_ms: int | None, where: Where) -> NodeFaultSeen | None:
        """The fact; None for a line that is too old, too many, or about another node."""
        node = node_name(host)
        if fault.node is not None and node_name(fault.node) != node:
            return None
        if line_ms is not None and line_ms > where.read_ms + self._skew_ms:
            self._say(where, "is of a time to come, which is not believed", line_ms)
            line_ms = None
        if not self._is_recent(line_ms, where):
            return None
        at_ms = where.read_ms if line_ms is None else line_ms
        signature = fault.signature
        if not self._throttle.keeps_fault((self._cluster, host), signature.id, None, None, at_ms, where.read_ms):
            return None
        text = kept_text(found.line, found.at)
        evidence = Evidence(
            file=where.path,
            offset=where.offset,
            line_no=where.line_no,
            line_ms=line_ms,
            read_ms=where.read_ms,
            node=host,
            rank=None,
            text=text,
            digest=digest_of(text),
        )
        return NodeFaultSeen(
            event_id=derived_id("node", self._cluster, node, where.source, where.epoch, *where.name),
            cause="",
            position=Position(where.source, where.epoch, where.offset, where.index),
            fault=NodeFault(
                cluster=self._cluster,
                node=node,
                witness=Witness.NODE_LOG,
                signature=signature.id,
                fault_class=signature.fault_class,
                scope=signature.scope,
                remedy=signature.remedy,
                role=signature.role,
                precedence=signature.precedence,
                detail=fault.detail,
                evidence=evidence,
            ),
        )

    def _is_recent(self, line_ms: int | None, where: Where) -> bool:
        """Whether the line is known to be young enough to concern somebody."""
        since_ms = where.after_ms if line_ms is None else line_ms
        if since_ms is not None and where.read_ms - since_ms <= OLDEST_MS:
            return True
        if line_ms is None:
            UNTIMED.inc()
            self._say(where, "has no time, and was there before anybody looked: no job is told")
            return False
        OLD.inc()
        if where.after_ms is not None and where.read_ms - where.after_ms <= OLDEST_MS:
            self._say(where, "came just now, and by its time it is too old: no job is told", line_ms)
        return False

    def _say(self, where: Where, problem: str, line_ms: int | None = None) -> None:
        """Say once of a source what its lines suffer from, and of their times what is to be looked at."""
        if (where.source, problem) in self._said:
            return
        self._said.add((where.source, problem))
        told: dict[str, object] = {"source": where.source, "path": where.path}
        if line_ms is not None:
            told["seconds_old"] = (where.read_ms - line_ms) // 1000
            told["next"] = "see whether watch.time_zone is the zone of this log, and whether the node's clock is right"
        log.warning(f"a fault in a node log {problem}", **told)


def host_of(line: bytes) -> str | None:
    """The node that a syslog line names as its host; None where there is no such field."""
    match = _HOST.match(line)
    return None if match is None else match.group("host").decode()


def host_name(host: str) -> str:
    """A host's name without the port of an exporter or collector."""
    return host.partition(":")[0]


def node_name(host: str) -> str:
    """A host's name as the scheduler usually has it: without port and domain; an address stays as it is."""
    return short_name(host_name(host))


def is_nameless(name: str) -> bool:
    """Whether this is no name of a node, but nothing or an address."""
    return not name or _ADDRESS.fullmatch(name) is not None


def _witnessed(signature: Signature) -> bool:
    return signature.fault_class in WITNESSED and signature.remedy in _REMEDIES
