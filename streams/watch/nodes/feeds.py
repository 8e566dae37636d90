"""Node logs from a Kafka topic or a log store: records of kernel and system logs in, facts for the node decider out.

Nothing waits here: a node's line needs no news of a job. Whose it is, the label of the host says, else the line itself.
"""

from __future__ import annotations

from collections.abc import Iterator

import structlog

from recovery.metrics import counter, gauge
from schemas.bookkeeping import SourceRead
from schemas.nodes import NodeFaultSeen
from streams.sources.feed import Batches
from streams.sources.lines import Cursor, SourceState
from streams.watch.nodes.lines import NodeLines, Where, host_name
from streams.watch.records import Records, Said
from streams.watch.store import BATCHES_A_TURN, position_at
from streams.watch.telling import Reading

log = structlog.get_logger(__name__)

NODE_SOURCES = gauge("watch_node_sources", "Sources of node logs beside files, by name and state.", "source", "state")
NODE_RECORDS = counter("watch_node_records", "Records read from sources of node logs beside files.", "source")
UNPLACED_RECORDS = counter(
    "watch_node_record_faults_unplaced", "Faults in records of node logs that name no host.", "source"
)


class NodeFeed:
    """One source. Give everything that `turn` gives to Kafka, and have it delivered, before `moved` is asked for."""

    def __init__(self, feed: Batches, lines: NodeLines, reading: Reading) -> None:
        self.state = SourceState.FOLLOWED
        self.problem = ""
        self._feed = feed
        self._lines = lines
        self._records = Records(reading)
        self._cursors: dict[str, Cursor] = {}
        self._told: dict[str, Cursor] = {}

    def turn(self, now_ms: int) -> Iterator[NodeFaultSeen]:
        """Give what is new, without waiting."""
        for _ in range(BATCHES_A_TURN):
            batch = self._feed.take()
            if batch is None:
                break
            self._say(batch.state, batch.problem)
            for said in self._records.said(batch, now_ms):
                fact = self._lines.fault(said.line.found, said.line.line_ms, _where(said))
                if fact is not None:
                    yield fact
            self._cursors |= {cursor.source: cursor for cursor in batch.cursors}
            NODE_RECORDS.labels(self._feed.name).inc(len(batch.lines))
        self._count()

    def moved(self, now_ms: int) -> list[SourceRead]:
        """How far the source was read, where that was not told yet."""
        moved = [cursor for name, cursor in self._cursors.items() if self._told.get(name) != cursor]
        self._told |= {cursor.source: cursor for cursor in moved}
        return [position_at(cursor, cursor.offset, now_ms) for cursor in moved]

    def close(self) -> None:
        """Stop reading."""
        self._feed.close()

    def _say(self, state: SourceState, problem: str) -> None:
        """Say once that something is wrong, and once that it is well again."""
        self.state = state
        if problem == self.problem:
            return
        self.problem = problem
        if problem:
            log.warning(
                "node logs can't be read",
                source=self._feed.name,
                state=state,
                problem=problem,
                next="try again, with back-off; meanwhile faults in them are not seen",
            )
        else:
            log.info("node logs are read", source=self._feed.name)

    def _count(self) -> None:
        for state in SourceState:
            NODE_SOURCES.labels(self._feed.name, state).set(self.state is state)
        UNPLACED_RECORDS.labels(self._feed.name).inc(self._lines.unplaced)
        self._lines.unplaced = 0


def _where(said: Said) -> Where:
    record, line = said.record, said.line
    return Where(
        source=line.source_name,
        epoch=line.epoch,
        offset=line.offset,
        line_no=0,
        read_ms=line.read_ms,
        node=None if record.labels.node is None else host_name(record.labels.node),
        after_ms=record.at_ms,
        path=line.path,
        index=line.index,
        identity=line.identity,
    )
