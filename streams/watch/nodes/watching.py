"""All that watch hears of nodes: their logs and their metrics, as facts for the node decider."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from socket import gethostname

from recovery.settings import Settings
from schemas.bookkeeping import SourceRead
from schemas.nodes import NodeFaultSeen
from streams.sources.configured import Configured
from streams.sources.feed import Feed
from streams.sources.lines import Cursor
from streams.watch.nodes.feeds import NodeFeed
from streams.watch.nodes.lines import OLDEST_MS, NodeLines
from streams.watch.nodes.logs import NodeLogs
from streams.watch.nodes.metrics import NodeMetrics, Prometheus, Query
from streams.watch.telling import Reading


class NodeWatch:
    """Give everything that `turn` gives to Kafka, and have it delivered, before `moved` is asked for."""

    def __init__(
        self,
        settings: Settings,
        sources: Sequence[Configured],
        reading: Reading,
        positions: Mapping[str, SourceRead],
        now_ms: int,
    ) -> None:
        nodes, cluster = settings.nodes, settings.slurm.cluster
        self._logs = NodeLogs(nodes.log_paths, nodes.log_poll_s, _lines(cluster, reading), positions, gethostname())
        cursors = {name: Cursor(name, read.identity, read.epoch, read.offset) for name, read in positions.items()}
        self._feeds = [
            NodeFeed(Feed(one.source, cursors, now_ms - OLDEST_MS), _lines(one.cluster, reading), reading)
            for one in sources
        ]
        self._read: dict[str, SourceRead] = {}
        self._metrics: NodeMetrics | None = None
        if nodes.prometheus_url is not None:
            period_ms = int(nodes.metrics_period_s * 1000)
            queries = [Query(one, cluster, period_ms, positions.get(f"metric:{one.name}")) for one in nodes.queries]
            self._metrics = NodeMetrics(Prometheus(nodes.prometheus_url), queries, nodes.metrics_period_s)
            self._metrics.start()

    def turn(self, now_ms: int) -> Iterator[NodeFaultSeen]:
        """Give what is new, without waiting."""
        yield from self._logs.turn(now_ms)
        for feed in self._feeds:
            yield from feed.turn(now_ms)
        for look in self._metrics.looks() if self._metrics is not None else ():
            yield from look.faults
            self._read[look.read.source] = look.read

    def moved(self, now_ms: int) -> list[SourceRead]:
        """How far sources were read since the last call."""
        of_feeds = [position for feed in self._feeds for position in feed.moved(now_ms)]
        read, self._read = [*self._read.values(), *self._logs.moved(now_ms), *of_feeds], {}
        return read

    def close(self) -> None:
        """Stop asking and let go of files."""
        self._logs.close()
        for feed in self._feeds:
            feed.close()
        if self._metrics is not None:
            self._metrics.close()


def _lines(cluster: str, reading: Reading) -> NodeLines:
    return NodeLines(reading.matcher, cluster, reading.zone, reading.skew_ms)
