"""Node metrics from Prometheus: edges become facts of the node, once, whatever restarts or fails in between."""

from __future__ import annotations

import json
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
import structlog

from recovery.metrics import REGISTRY
from recovery.node_queries import NODE_QUERIES, NodeQuery
from schemas.bookkeeping import SourceRead
from schemas.codec import Codec, FixedIds
from schemas.nodes import NodeFaultSeen
from schemas.vocabulary import FaultClass, Scope, Witness
from streams.watch.nodes.metrics import MOST_BACK_MS, NodeMetrics, Prometheus, Query, QueryFailed
from tests.watch.parts import T0
from tests.watch.prometheus import FakePrometheus

PERIOD_MS = 15_000
BASE = T0 // PERIOD_MS * PERIOD_MS


@pytest.fixture
def fake() -> Iterator[FakePrometheus]:
    with FakePrometheus().serving() as fake:
        yield fake


@pytest.fixture
def prometheus(fake: FakePrometheus) -> Iterator[Prometheus]:
    with closing(Prometheus(fake.url)) as prometheus:
        yield prometheus


def asked(when: str = "above", **more: Any) -> NodeQuery:
    fields = {
        "name": "ecc",
        "query": "ecc_errors",
        "when": when,
        "node_label": "Hostname",
        "fault_class": "gpu_memory_ecc",
        "remedy": "restart_excluding_node",
        "detail": "{value} errors on GPU {gpu}{nothing}",
    }
    return NodeQuery.model_validate(fields | more)


def query(of: NodeQuery, position: SourceRead | None = None) -> Query:
    return Query(of, "local", PERIOD_MS, position)


def facts(one: Query, prometheus: Prometheus, at_ms: int) -> list[NodeFaultSeen]:
    look = one.look(prometheus, at_ms)
    return [] if look is None else list(look.faults)


def test_a_value_that_crosses_its_limit_is_a_fault_of_the_node(fake: FakePrometheus, prometheus: Prometheus) -> None:
    fake.tell("ecc_errors", 0, 0, Hostname="node2.lan:9400", gpu="3")
    fake.tell("ecc_errors", BASE + PERIOD_MS, 7, Hostname="node2.lan:9400", gpu="3")
    one = query(asked())
    assert facts(one, prometheus, BASE + 1) == []
    [fact] = facts(one, prometheus, BASE + PERIOD_MS + 5)
    fault = fact.fault
    assert (fault.node, fault.witness, fault.signature) == ("node2", Witness.NODE_METRIC, "metric:ecc")
    assert (fault.fault_class, fault.scope) == (FaultClass.GPU_MEMORY_ECC, Scope.NODE)
    assert fault.detail == "7 errors on GPU 3"
    assert (fault.at_ms, fault.evidence.file) == (BASE + PERIOD_MS, "")
    assert fault.evidence.text == '{Hostname="node2.lan:9400", gpu="3"} = 7, asked as ecc_errors'
    assert (fact.position.source, fact.position.offset) == ("metric:ecc", BASE + PERIOD_MS)


@pytest.mark.parametrize(
    ("when", "values", "edges"),
    [
        ("above", [0, 7, 7, 0, 7], [1, 4]),
        ("above", [None, 7, 7], [1]),
        ("grows", [3, 3, 5, 5, 0, 1], [2, 5]),
        ("grows", [None, 5, 6], [2]),
        ("changes", [0, 48, 48, 79, 0], [1, 3]),
    ],
)
def test_edges_count_and_levels_do_not(
    fake: FakePrometheus, prometheus: Prometheus, when: str, values: list[float | None], edges: list[int]
) -> None:
    for number, value in enumerate(values):
        if value is not None:
            fake.tell("ecc_errors", BASE + number * PERIOD_MS, value, Hostname="node2")
    one = query(asked(when), None)
    seen = [number for number in range(len(values)) if facts(one, prometheus, BASE + number * PERIOD_MS)]
    assert seen == edges


@pytest.mark.parametrize("when", ["above", "grows", "changes"])
def test_a_series_that_was_not_scraped_for_a_while_is_no_news_if_it_stands_where_it_stood(
    fake: FakePrometheus, prometheus: Prometheus, when: str
) -> None:
    fake.tell("ecc_errors", 0, 94, Hostname="node2")
    for number, value in enumerate([94, None, None, 94]):
        fake.tell("ecc_errors", BASE + number * PERIOD_MS, value, Hostname="node2")
    one = query(asked(when))
    assert [number for number in range(6) if facts(one, prometheus, BASE + number * PERIOD_MS)] == []


@pytest.mark.parametrize(("when", "value"), [("above", 0), ("grows", 1), ("changes", 79)])
def test_what_changed_while_a_series_was_not_scraped_is_told(
    fake: FakePrometheus, prometheus: Prometheus, when: str, value: int
) -> None:
    for number, given in enumerate([value, None, None, 94]):
        fake.tell("ecc_errors", BASE + number * PERIOD_MS, given, Hostname="node2")
    one = query(asked(when))
    assert [number for number in range(6) if facts(one, prometheus, BASE + number * PERIOD_MS)][-1:] == [3]


def test_a_counter_that_an_exporters_restart_sets_back_has_not_grown(
    fake: FakePrometheus, prometheus: Prometheus
) -> None:
    for number, value in enumerate([94, None, 0, None, 0]):
        fake.tell("ecc_errors", BASE + number * PERIOD_MS, value, Hostname="node2")
    one = query(asked("grows"))
    assert [number for number in range(6) if facts(one, prometheus, BASE + number * PERIOD_MS)] == []


def test_a_series_of_which_nothing_was_known_for_an_hour_is_new(fake: FakePrometheus, prometheus: Prometheus) -> None:
    looks = MOST_BACK_MS // PERIOD_MS + 2
    for number, value in ((0, 94), (1, None), (looks, 94)):
        fake.tell("ecc_errors", BASE + number * PERIOD_MS, value, Hostname="node2")
    one = query(asked())
    assert [number for number in range(looks + 1) if facts(one, prometheus, BASE + number * PERIOD_MS)] == [0, looks]


def test_what_stood_before_prometheus_was_away_for_hours_stands_after_it(
    fake: FakePrometheus, prometheus: Prometheus
) -> None:
    back_ms = BASE + 3 * MOST_BACK_MS
    for at_ms, value in ((0, 94), (BASE + PERIOD_MS, None), (back_ms + 4 * PERIOD_MS, 94)):
        fake.tell("ecc_errors", at_ms, value, Hostname="node2")
    one = query(asked())
    facts(one, prometheus, BASE)
    assert [number for number in range(6) if facts(one, prometheus, back_ms + number * PERIOD_MS)] == []


@pytest.mark.parametrize("known", [False, True])
def test_a_series_that_is_missing_at_the_start_is_looked_for_further_back(
    fake: FakePrometheus, prometheus: Prometheus, known: bool
) -> None:
    for at_ms, value in ((BASE - 1_800_000, 94), (BASE - PERIOD_MS, None), (BASE + 2 * PERIOD_MS, 94)):
        fake.tell("ecc_errors", at_ms, value, Hostname="node2")
    first = query(asked())
    look = first.look(prometheus, BASE)
    assert look is not None
    one = query(asked(), look.read) if known else first
    assert facts(one, prometheus, BASE + 2 * PERIOD_MS) == []


def test_what_stands_since_long_is_no_news_at_the_first_start(fake: FakePrometheus, prometheus: Prometheus) -> None:
    fake.tell("ecc_errors", 0, 7, Hostname="node2")
    assert facts(query(asked()), prometheus, BASE) == []


def test_an_edge_while_watch_was_down_is_found_and_none_is_told_twice(
    fake: FakePrometheus, prometheus: Prometheus
) -> None:
    fake.tell("ecc_errors", 0, 0, Hostname="node2")
    first = query(asked()).look(prometheus, BASE)
    assert first is not None
    fake.tell("ecc_errors", BASE + 4 * PERIOD_MS, 7, Hostname="node2")
    later = query(asked(), first.read).look(prometheus, BASE + 9 * PERIOD_MS)
    assert later is not None
    assert len(later.faults) == 1
    again = query(asked(), first.read).look(prometheus, BASE + 9 * PERIOD_MS + 700)
    assert again is not None
    assert [one.event_id for one in again.faults] == [one.event_id for one in later.faults]
    assert facts(query(asked(), later.read), prometheus, BASE + 10 * PERIOD_MS) == []
    long_after = BASE + 9 * PERIOD_MS + MOST_BACK_MS + PERIOD_MS
    assert facts(query(asked(), first.read), prometheus, long_after) == []


def test_halves_of_characters_in_labels_do_not_keep_a_fault_from_being_told(
    fake: FakePrometheus, prometheus: Prometheus
) -> None:
    fake.tell("ecc_errors", BASE, 7, Hostname="node2", gpu="3\ud800")
    one = query(asked())
    facts(one, prometheus, BASE - PERIOD_MS)
    [fact] = facts(one, prometheus, BASE)
    assert Codec(FixedIds()).encode(fact, source="test", time_ms=0, subject="node2").value
    assert 'gpu="3?"' in fact.fault.evidence.text


def test_series_without_a_node_are_nobodys(fake: FakePrometheus, prometheus: Prometheus) -> None:
    fake.tell("ecc_errors", BASE, 7, instance="node2")
    one = query(asked())
    facts(one, prometheus, BASE - PERIOD_MS)
    assert facts(one, prometheus, BASE) == []


def test_series_that_name_no_node_are_counted_and_said_once_a_query(fake: FakePrometheus) -> None:
    for labels in (
        {"instance": "10.0.0.5:9100"},
        {"instance": "[fe80::5]:9100"},
        {"job": "dcgm"},
        {"instance": "node2:9100"},
    ):
        fake.tell("ecc_errors", 0, 0, **labels)
    with structlog.testing.capture_logs() as said:
        metrics = NodeMetrics(Prometheus(fake.url), [Query(asked(node_label="instance"), "local", 50, None)], 0.05)
        metrics.start()
        with closing(metrics):
            deadline = time.monotonic() + 10
            while len(fake.asked) < 8:
                assert time.monotonic() < deadline
                time.sleep(0.01)
    [warning] = said
    assert warning["query"] == "metric:ecc"
    assert warning["problem"] == 'the label instance names no node in 3 series, such as {instance="10.0.0.5:9100"}'
    assert "node_label" in warning["next"]
    assert REGISTRY.get_sample_value("recovery_watch_node_series_nameless", {"query": "metric:ecc"}) == 3


@pytest.mark.parametrize(
    ("code", "body", "said"),
    [
        (400, {"status": "error", "errorType": "bad_data", "error": "parse error"}, "refuses 'ecc_errors': bad_data"),
        (200, {"status": "success", "data": {"resultType": "matrix", "result": []}}, "gives a matrix"),
        (200, {"status": "success", "data": {"resultType": "vector", "result": [{"metric": {}}]}}, "no result"),
        (200, [], "no result"),
        (502, None, "does not answer as Prometheus does"),
        (200, b"[" * 100_000, "does not answer as Prometheus does"),
    ],
)
def test_what_is_no_answer_is_said_and_asked_again(
    fake: FakePrometheus, prometheus: Prometheus, code: int, body: object, said: str
) -> None:
    fake.tell("ecc_errors", BASE, 7, Hostname="node2")
    one = query(asked())
    facts(one, prometheus, BASE - PERIOD_MS)
    said_body = body if isinstance(body, bytes) else b"<html>" if body is None else json.dumps(body).encode()
    fake.broken = (code, said_body)
    with pytest.raises(QueryFailed, match=said):
        one.look(prometheus, BASE)
    fake.broken = None
    assert len(facts(one, prometheus, BASE)) == 1


def test_a_detail_holds_no_secret(fake: FakePrometheus, prometheus: Prometheus) -> None:
    fake.tell("ecc_errors", BASE, 7, Hostname="node2", gpu="https://me:hunter2@host/3")
    one = query(asked())
    [fact] = facts(one, prometheus, BASE)
    assert fact.fault.detail == "7 errors on GPU https://me:***@host/3"
    assert "hunter2" not in fact.fault.evidence.text


def test_a_password_in_the_address_is_sent_and_never_shown(fake: FakePrometheus) -> None:
    url = fake.url.replace("http://", "http://ada:se%3Acret@")
    with closing(Prometheus(url)) as prometheus:
        query(asked()).look(prometheus, BASE)
        assert fake.signed == f"Basic {b64encode(b'ada:se:cret').decode()}"
        for broken in ((400, b'{"status": "error"}'), (200, b"[]"), (502, b"<html>")):
            fake.broken = broken
            with pytest.raises(QueryFailed) as failed:
                query(asked()).look(prometheus, BASE)
            assert fake.url in str(failed.value)
            assert "ada" not in str(failed.value)


def test_the_thread_gives_looks_and_outlives_a_prometheus_that_is_away(fake: FakePrometheus) -> None:
    fake.broken = (503, b"away")
    metrics = NodeMetrics(Prometheus(fake.url), [Query(asked(), "local", 50, None)], 0.05)
    metrics.start()
    with closing(metrics):
        deadline = time.monotonic() + 10
        while len(fake.asked) < 3:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert list(metrics.looks()) == []
        fake.broken = None
        fake.tell("ecc_errors", time.time_ns() // 1_000_000, 7, Hostname="node2")
        found: list[NodeFaultSeen] = []
        while not found:
            assert time.monotonic() < deadline
            found += [fault for look in metrics.looks() for fault in look.faults]
            time.sleep(0.01)
        assert [fact.fault.node for fact in found] == ["node2"]


def test_the_shipped_queries_have_names_of_their_own_and_never_stop_a_job() -> None:
    assert len({one.name for one in NODE_QUERIES}) == len(NODE_QUERIES)
    assert {str(one.remedy) for one in NODE_QUERIES} <= {"restart", "restart_excluding_node"}
