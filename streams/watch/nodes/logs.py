"""Follows kernel and system logs of nodes, as files that the site collects on a mount of this machine.

A path that begins with `{host}:` is this machine's own: other machines have a file of the same name, so its places and
its lines are kept by the machine's name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import structlog

from recovery.metrics import counter, gauge
from schemas.bookkeeping import SourceRead
from schemas.nodes import NodeFaultSeen
from streams.sources.files import FileFollower, FileState, Place
from streams.watch.events import position_in, source_of
from streams.watch.matching.surroundings import tail_of
from streams.watch.nodes.lines import NodeLines, Where, host_name, node_name

log = structlog.get_logger(__name__)

NODE, HOST = "{node}", "{host}:"
DISCOVER_MS = 10_000
BLOCKS_A_TURN = 2

LOGS = gauge("watch_node_logs", "Node logs that are followed, by state.", "state")
UNPLACED = counter("watch_node_faults_unplaced", "Faults in node logs whose line names no host and whose path no node.")


class NodeLogs:
    """All node logs that the patterns match. Not thread-safe."""

    def __init__(
        self, patterns: Sequence[str], poll_s: float, lines: NodeLines, positions: Mapping[str, SourceRead], host: str
    ) -> None:
        self._patterns = patterns
        self._node = host_name(host)
        self._host = node_name(host)
        self._poll_ms = int(poll_s * 1000)
        self._lines = lines
        self._positions = positions
        self._logs: dict[str, _NodeLog] = {}
        self._looked_ms = self._discovered_ms = 0
        self._said: dict[str, str] = {}

    def turn(self, now_ms: int) -> Iterator[NodeFaultSeen]:
        """Look at every log once, if it is time to; give what is new."""
        if now_ms - self._looked_ms < self._poll_ms:
            return
        self._looked_ms = now_ms
        if now_ms - self._discovered_ms >= DISCOVER_MS:
            self._discovered_ms = now_ms
            self._discover()
        for node_log in self._logs.values():
            yield from node_log.turn(now_ms, self._lines)
            self._say(node_log.path, node_log.problem)
        self._count()

    def moved(self, now_ms: int) -> list[SourceRead]:
        """How far logs were read, where that was not told yet. Everything given before must be delivered."""
        return [one.position(now_ms) for one in self._logs.values() if one.has_moved]

    def close(self) -> None:
        """Let go of all files."""
        for node_log in self._logs.values():
            node_log.close()

    def _discover(self) -> None:
        for pattern in self._patterns:
            found, own = 0, pattern.startswith(HOST)
            named = pattern.removeprefix(HOST)
            for path in map(str, Path("/").glob(named.replace(NODE, "*").lstrip("/"))):
                node = self._node if own else node_in(named, path)
                if node == "":
                    continue
                shown = path.encode("utf-8", "backslashreplace").decode()
                if shown != path:
                    self._say(shown, "its name is not UTF-8, and no event could name it: it is not followed")
                    continue
                found += 1
                if path not in self._logs:
                    source = source_of(f"{self._host}:{path}" if own else path)
                    self._logs[path] = _NodeLog(path, source, node, self._positions.get(source))
                    log.info("following a node log", path=path, node=node or "by each line")
            self._say(pattern, "" if found else "no file matches: faults in node logs are not seen")

    def _say(self, what: str, problem: str) -> None:
        """Say once that something is wrong, and once that it is well again."""
        if self._said.get(what, "") == problem:
            return
        self._said[what] = problem
        if problem:
            log.warning("node log can't be read", path=what, problem=problem, next="look again")
        else:
            log.info("node log is read", path=what)

    def _count(self) -> None:
        states = Counter(one.state for one in self._logs.values())
        for state in FileState:
            LOGS.labels(state).set(states.get(state, 0))
        UNPLACED.inc(self._lines.unplaced)
        self._lines.unplaced = 0


class _NodeLog:
    """One file, and its name in positions. `node` is None where each line names its host."""

    def __init__(self, path: str, source: str, node: str | None, position: SourceRead | None) -> None:
        self.path = path
        self._source = source
        self._node = node
        place = None
        if position is not None:
            place = Place(position.identity, position.epoch, position.offset, position.line_no)
        self._follower = FileFollower(path, place)
        self._told = self._done = place or Place()
        self._whole_ms = None if position is None else position.line_ms
        """What stands behind `_done` was written after this time: nothing was there then."""
        self._tail = b""

    @property
    def state(self) -> FileState:
        return self._follower.state

    @property
    def problem(self) -> str:
        return self._follower.problem

    @property
    def has_moved(self) -> bool:
        return self._told != self._done

    def turn(self, now_ms: int, lines: NodeLines) -> Iterator[NodeFaultSeen]:
        source = self._source
        for count, block in enumerate(self._follower.look(now_ms), start=1):
            start = block.start
            goes_on = start.epoch == self._done.epoch
            after_ms = block.after_ms if block.after_ms is not None or not goes_on else self._whole_ms
            where = Where(
                source, start.epoch, start.offset, start.line_no, block.read_ms, self._node, after_ms, self.path
            )
            yield from lines.faults(block.data, self._tail if goes_on else b"", where)
            self._tail, self._done = tail_of(block.data), block.end
            if count >= BLOCKS_A_TURN:
                return
        if self._follower.state is FileState.FOLLOWED:
            self._whole_ms = now_ms

    def position(self, now_ms: int) -> SourceRead:
        """How far the log was read; its `line_ms` is when nothing more was there, for lines that carry no time."""
        self._told = self._done
        return position_in(self._source, self._done, self._whole_ms, now_ms)

    def close(self) -> None:
        self._follower.close()


def node_in(pattern: str, path: str) -> str | None:
    """The node that a path names; None where the pattern has no `{node}`, empty where the path does not fit it."""
    if NODE not in pattern:
        return None
    parts = [re.escape(part).replace(r"\*", "[^/]*") for part in pattern.split(NODE)]
    expression = "(?P<node>[^/]+)".join([parts[0], "(?P=node)".join(parts[1:])])
    match = re.fullmatch(expression, path)
    return "" if match is None else host_name(match.group("node"))
