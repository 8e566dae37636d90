"""All that watch hears of nodes: their logs and their metrics, as facts for the node decider."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import tzinfo

from recovery.settings import Settings
from schemas.bookkeeping import SourceRead
from schemas.nodes import NodeFaultSeen
from streams.watch.matcher import Matcher
from streams.watch.node_lines import NodeLines
from streams.watch.node_logs import NodeLogs
from streams.watch.node_metrics import NodeMetrics, Prometheus, Query


class NodeWatch:
    """Give everything that `turn` gives to Kafka, and have it delivered, before `moved` is asked for."""

    def __init__(
        self, settings: Settings, matcher: Matcher, zone: tzinfo | None, positions: Mapping[str, SourceRead]
    ) -> None:
        nodes, cluster = settings.nodes, settings.slurm.cluster
        self._logs = NodeLogs(nodes.log_paths, nodes.log_poll_s, NodeLines(matcher, cluster, zone), positions)
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
        for look in self._metrics.looks() if self._metrics is not None else ():
            yield from look.faults
            self._read[look.read.source] = look.read

    def moved(self, now_ms: int) -> list[SourceRead]:
        """How far sources were read since the last call."""
        read, self._read = [*self._read.values(), *self._logs.moved(now_ms)], {}
        return read

    def close(self) -> None:
        """Stop asking and let go of files."""
        self._logs.close()
        if self._metrics is not None:
            self._metrics.close()
