"""The watch process on real Kafka with node logs in a topic, in a real VictoriaLogs, and in a small Loki."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Message

from infra.local.endpoints import Endpoints
from infra.local.stack import Stack
from schemas.nodes import NodeFaultSeen
from schemas.topics import NODES
from streams.kafka import TopicView, decode, reader
from tests.watch.collectors import Collectors, collectors
from tests.watch.test_process import Bench, until

pytestmark = pytest.mark.stack
XID = "NVRM: Xid (PCI:0000:06:00): 79, number {n}, GPU has fallen off the bus."


class NodeLogs:
    """Everything that a collector may send node logs to, each with hosts of its own, and what is heard of them."""

    def __init__(self, bench: Bench, sent_to: Collectors) -> None:
        self.bench, self.sent_to = bench, sent_to
        self.facts: list[NodeFaultSeen] = []
        self.consumer = reader(bench.endpoints.kafka, f"test-nodes-{bench.job_id}")
        self.view = TopicView(self.consumer, (NODES,), self._take)

    def writers(self) -> dict[str, Callable[[str, str], object]]:
        """A way to log for each source, by the source's name."""
        made: dict[str, Callable[[str, str], object]] = {
            f"kafka:{self.sent_to.kafka.topic}": lambda host, text: self.sent_to.kafka.send(
                [json.dumps({"message": text, "timestamp": now_ms(), "host": host, "filename": "kern.log"})]
            ),
            "loki:nodes": lambda host, text: self.sent_to.loki.server.push(
                [(now_ms() * 1_000_000, {"host": host, "cluster": "local"}, text)]
            ),
        }
        if self.sent_to.victorialogs is not None:
            server = self.sent_to.victorialogs.server
            made["victorialogs:nodes"] = lambda host, text: server.push(
                json.dumps({"_msg": text, "_time": str(now_ms() * 1_000_000), "host": host}).encode() + b"\n"
            )
        return made

    def environment(self) -> dict[str, str]:
        return self.sent_to.environment("NODES")

    def heard(self, host: str) -> list[NodeFaultSeen]:
        """What was told of a host, each fact once."""
        self.view.poll(0.02)
        return list({fact.event_id: fact for fact in self.facts if fact.fault.node == host}.values())

    def _take(self, message: Message) -> None:
        event = decode(self.bench.codec, message)
        if isinstance(event, NodeFaultSeen):
            self.facts.append(event)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@pytest.fixture
def logs(stack: Endpoints, session_stack: Stack, tmp_path: Path) -> Iterator[NodeLogs]:
    with closing(Bench(stack, tmp_path)) as bench, collectors(stack, session_stack, tmp_path) as sent_to:
        found = NodeLogs(bench, sent_to)
        with closing(found.consumer):
            yield found


def test_a_nodes_line_of_every_source_is_told_of_the_node_once_through_a_kill_and_is_no_jobs_output(
    logs: NodeLogs,
) -> None:
    logs.bench.publish(logs.bench.view())
    hosts = {name: f"{name.partition(':')[0]}-{logs.bench.job_id}" for name in logs.writers()}

    def write(number: int) -> None:
        for name, write_to in logs.writers().items():
            write_to(f"{hosts[name]}.cluster.lan", XID.format(n=number))

    def count() -> list[int]:
        return [len(logs.heard(host)) for host in hosts.values()]

    with logs.bench.watch(logs.environment()) as process:
        write(1)
        until(lambda: count() == [1] * len(hosts), "the fault, from each source")
        process.kill()
        process.wait(10)
    write(2)
    with logs.bench.watch(logs.environment()):
        until(lambda: count() == [2] * len(hosts), "the second fault, from each source")
    for name, host in hosts.items():
        first, second = logs.heard(host)
        assert first.position < second.position
        assert first.position.source.startswith(name)
        assert "number 1" in first.fault.evidence.text
    assert logs.bench.facts() == [], "no job printed it"
