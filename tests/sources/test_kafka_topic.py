"""A topic of raw lines: made anew, cut off at its beginning, with more partitions, or not there."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from infra.local.endpoints import Endpoints
from infra.local.stack import Stack
from streams.kafka import producer
from streams.sources.kafka_topic import KafkaTopic
from streams.sources.lines import Batch, Cursor, SourceState
from streams.sources.records import Fields
from tests.sources.benches import KafkaBench

pytestmark = pytest.mark.stack
DEADLINE_S = 40.0


@pytest.fixture
def bench(stack: Endpoints, session_stack: Stack) -> Iterator[KafkaBench]:
    with closing(KafkaBench(stack, session_stack)) as bench:
        yield bench


def follow(topic: KafkaTopic, enough: Callable[[list[Batch]], bool], cursors: dict[str, Cursor]) -> list[Batch]:
    stop, batches, deadline = threading.Event(), list[Batch](), time.monotonic() + DEADLINE_S
    for batch in topic.follow(cursors, 0, stop):
        batches.append(batch)
        cursors |= {cursor.source: cursor for cursor in batch.cursors}
        if enough(batches):
            stop.set()
        assert time.monotonic() < deadline, batches[-1]
    return batches


def texts(batches: list[Batch]) -> list[str]:
    return [line.text.decode() for batch in batches for line in batch.lines]


def topic_of(bench: KafkaBench) -> KafkaTopic:
    return KafkaTopic(bench.bootstrap, bench.topic, Fields())


def test_a_topic_that_was_made_anew_is_another_epoch(bench: KafkaBench) -> None:
    cursors: dict[str, Cursor] = {}
    bench.send(["one", "two"])
    before = follow(topic_of(bench), lambda batches: len(texts(batches)) == 2, cursors)
    bench.delete()
    deadline = time.monotonic() + DEADLINE_S
    while bench.topic in AdminClient({"bootstrap.servers": bench.bootstrap}).list_topics(timeout=10).topics:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    bench.create()
    bench.send(["three", "four", "five"])
    after = follow(topic_of(bench), lambda batches: len(texts(batches)) == 3, cursors)
    assert "made anew" in after[0].problem
    places = [(line.epoch, line.offset) for batch in (*before, *after) for line in batch.lines]
    assert places == sorted(places)
    assert len({line.identity for batch in (*before, *after) for line in batch.lines}) == 5


def test_records_that_were_deleted_before_they_were_read_are_said(bench: KafkaBench) -> None:
    cursors: dict[str, Cursor] = {}
    bench.send(["one"])
    follow(topic_of(bench), lambda batches: len(texts(batches)) == 1, cursors)
    bench.send(["two", "three", "four"])
    [source] = [name for name, cursor in cursors.items() if cursor.offset == 1]
    admin = AdminClient({"bootstrap.servers": bench.bootstrap})
    [cut] = admin.delete_records([TopicPartition(bench.topic, int(source.rpartition("/")[2]), 3)]).values()
    cut.result(20)
    after = follow(topic_of(bench), lambda batches: len(texts(batches)) == 1, cursors)
    assert texts(after) == ["four"]
    assert "2 records were deleted before they were read" in after[0].problem


def test_a_topic_that_is_not_there_is_a_state(stack: Endpoints) -> None:
    topic = KafkaTopic(stack.kafka, "raw-that-nobody-made", Fields())
    [batch] = follow(topic, bool, {})
    assert batch.state is SourceState.BROKEN
    assert "no such topic" in batch.problem


def test_headers_say_what_the_record_does_not(bench: KafkaBench) -> None:
    to = producer(bench.bootstrap, "collector")
    to.produce(bench.topic, value=b"plain text", headers=[("job_id", b"7"), ("filename", b"/a.out"), ("rank", b"3")])
    assert to.flush(20) == 0
    [line] = [
        line for batch in follow(topic_of(bench), lambda batches: len(texts(batches)) == 1, {}) for line in batch.lines
    ]
    assert (line.text, line.labels.job_id, line.labels.filename, line.labels.rank) == (b"plain text", "7", "/a.out", 3)
