"""Node logs that a collector sends: whose each line is, that it keeps its identity, and that it is nobody's output."""

from __future__ import annotations

import pytest
import structlog

from recovery.settings import Settings, SettingsError
from schemas.nodes import NodeFaultSeen
from schemas.vocabulary import Witness
from streams.sources.configured import node_sources_of, sources_of
from streams.sources.lines import Batch, Labels, SourceState
from streams.watch.nodes.feeds import NodeFeed
from streams.watch.nodes.lines import NodeLines
from tests.watch.parts import T0, matcher, reading
from tests.watch.test_store import Given

XID = "NVRM: Xid (PCI:0000:06:00): 79, pid=1, GPU has fallen off the bus."
NOW = T0 + 2_000


def feed(given: Given) -> NodeFeed:
    return NodeFeed(given, NodeLines(matcher(), "local", reading().zone, 2_000), reading())


def names(facts: list[NodeFaultSeen]) -> list[tuple[str, str]]:
    return [(fact.fault.node, fact.fault.signature) for fact in facts]


def test_a_line_is_of_the_host_that_its_label_names_else_of_the_one_that_it_names_itself() -> None:
    given = Given()
    given.add(
        (XID, Labels(node="node2.cluster.lan:514", filename="kern.log")),
        (f"Aug  1 10:00:01 node3 kernel: {XID}", Labels()),
        (XID, Labels()),
        ("usb 1-1: new high-speed USB device", Labels(node="node4")),
    )
    facts = list(feed(given).turn(NOW))
    assert names(facts) == [("node2", "xid-off-the-bus"), ("node3", "xid-off-the-bus")]
    fault, position = facts[0].fault, facts[0].position
    assert (fault.witness, fault.cluster, fault.evidence.file) == (Witness.NODE_LOG, "local", "kern.log")
    assert fault.at_ms == T0 + 1_000, "the record's own time"
    assert (position.source, position.offset) == ("kafka:raw/0", 0)


def test_a_record_whose_line_is_hours_older_than_itself_is_said() -> None:
    given = Given()
    given.add((f"Aug  1 08:00:01 node3 kernel: {XID}", Labels()))
    with structlog.testing.capture_logs() as said:
        assert list(feed(given).turn(NOW)) == []
    [warning] = [one for one in said if one["log_level"] == "warning"]
    assert (warning["source"], warning["seconds_old"] // 3600) == ("kafka:raw/0", 2)
    assert "watch.time_zone" in warning["next"]


def test_a_record_read_again_is_the_same_fact_and_places_are_told_once() -> None:
    given = Given()
    given.add((XID, Labels(node="node2")), (XID, Labels(node="node3")))
    [batch] = given.batches
    first = feed(given)
    facts = list(first.turn(NOW))
    [position] = first.moved(NOW)
    assert (position.source, position.identity, position.offset) == ("kafka:raw/0", "topic", 2)
    assert first.moved(NOW) == []
    given.batches.append(batch)
    again = list(feed(given).turn(NOW + 60_000))
    assert [(fact.event_id, fact.position) for fact in again] == [(fact.event_id, fact.position) for fact in facts]
    assert len({fact.event_id for fact in facts}) == 2


def test_a_source_that_is_down_is_said_and_its_lines_come_later() -> None:
    given = Given()
    given.batches.append(Batch((), (), SourceState.DOWN, "kafka:raw does not answer"))
    own = feed(given)
    assert list(own.turn(NOW)) == []
    assert (own.state, own.problem) == (SourceState.DOWN, "kafka:raw does not answer")
    given.add((XID, Labels(node="node2")))
    assert names(list(own.turn(NOW))) == [("node2", "xid-off-the-bus")]
    assert own.problem == ""


def settings(**nodes: dict[str, str]) -> Settings:
    return Settings.model_validate({"nodes": nodes, "watch": {"kafka": {"topic": "lines"}}})


def test_sources_of_nodes_are_not_those_of_jobs() -> None:
    found = settings(
        kafka={"topic": "kern"}, victorialogs={"url": "http://logs:9428"}, loki={"url": "http://loki:3100"}
    )
    names_of_nodes = [one.source.name for one in node_sources_of(found)]
    assert names_of_nodes == ["kafka:kern", "victorialogs:nodes", "loki:nodes"]
    assert [one.source.name for one in sources_of(found)] == ["kafka:lines"]
    with pytest.raises(SettingsError, match="both read kafka:lines"):
        node_sources_of(settings(kafka={"topic": "lines"}))
    with pytest.raises(SettingsError, match=r"nodes\.loki\.search"):
        node_sources_of(settings(loki={"url": "http://loki:3100", "search": "host"}))
