"""Records behind a transaction that nobody ends: told after a while, and no sooner."""

from __future__ import annotations

import time
from collections.abc import Callable
from uuid import uuid4

import pytest
from confluent_kafka import Producer

from infra.local.endpoints import Endpoints
from recovery import hidden
from recovery.hidden import STUCK_S, Hidden, hidden_watched
from recovery.metrics import HIDDEN
from recovery.topics import create_topics
from schemas.topics import Cleanup, Topic

PLACE = ("recovery.decisions", 3)


def test_a_stable_end_that_stands_still_before_the_end_hides_what_follows() -> None:
    watch = Hidden()
    assert not watch.look({PLACE: (100, 107)}, 0.0)
    assert not watch.look({PLACE: (100, 109)}, STUCK_S - 1)
    assert watch.look({PLACE: (100, 112), ("recovery.jobs", 0): (5, 5)}, STUCK_S) == {"recovery.decisions": 12}
    assert not watch.look({PLACE: (112, 112)}, STUCK_S + 10)


def test_one_that_moves_hides_nothing_however_long_it_is_behind() -> None:
    watch = Hidden()
    assert not any(watch.look({PLACE: (100 + second, 200 + second)}, float(second)) for second in range(120))


def test_the_partitions_of_a_topic_add_up() -> None:
    watch = Hidden()
    ends = {("recovery.jobs", 0): (1, 3), ("recovery.jobs", 1): (4, 9)}
    watch.look(ends, 0.0)
    assert watch.look(ends, STUCK_S) == {"recovery.jobs": 7}


@pytest.mark.stack
def test_an_open_transaction_on_a_real_kafka_is_told_until_it_ends(
    stack: Endpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hidden, "PERIOD_S", 0.2)
    monkeypatch.setattr(hidden, "STUCK_S", 1.0)
    topic = Topic(f"hidden.{uuid4().hex[:8]}", "job", Cleanup.KEPT, 2, "a test's")
    create_topics(stack.kafka, [topic])
    writer = Producer({"bootstrap.servers": stack.kafka, "transactional.id": topic.name})
    writer.init_transactions(10)
    writer.begin_transaction()
    writer.produce(topic.name, b"value", partition=1)
    writer.flush(10)
    with hidden_watched(stack.kafka, [topic]):
        assert _within(10, lambda: _hidden(topic) == 1)
        writer.commit_transaction(10)
        assert _within(10, lambda: _hidden(topic) == 0)


def _hidden(topic: Topic) -> float:
    return float(HIDDEN.labels(topic.name)._value.get())


def _within(seconds: float, holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
