"""Real Kafka topics, databases and runners for the tests of the projector."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast
from uuid import uuid4

import psycopg
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from sqlalchemy import Engine, Row, select
from sqlalchemy.engine import make_url

from projections.reading import consumer
from projections.runner import Runner
from projections.store import Store, engine_of
from projections.tables import OFFSETS, PROJECTED
from recovery.health import Health
from recovery.process import Stop
from schemas.catalogue import DECISIONS
from schemas.codec import Codec, FixedIds
from schemas.decisions import Decision, job_of_decision
from schemas.facts import Fact, job_of
from schemas.topics import PARTITIONER
from tests.history import Recorded

PARTITIONS = 2
DEADLINE_S = 60.0
CODEC = Codec(FixedIds())


@dataclass(frozen=True)
class Topics:
    """A journal and a decision topic of one test."""

    bootstrap: str
    journal: str
    decisions: str

    def of(self, event: Fact | Decision) -> tuple[str, str]:
        """Where an event goes, and under which key."""
        if isinstance(event, DECISIONS):
            return self.decisions, job_of_decision(cast(Decision, event))
        return self.journal, job_of(cast(Fact, event))


@contextmanager
def database(server: str) -> Iterator[str]:
    """A new, empty database beside the stack's own; its address."""
    name = f"test_{uuid4().hex[:12]}"
    url = make_url(server)
    admin = url.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    try:
        yield url.set(database=name).render_as_string(hide_password=False)
    finally:
        with psycopg.connect(admin, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def make_topics(bootstrap: str) -> Topics:
    name = uuid4().hex[:12]
    topics = Topics(bootstrap, f"{name}.journal", f"{name}.decisions")
    admin = AdminClient({"bootstrap.servers": bootstrap})
    config = {"message.timestamp.type": "CreateTime"}
    new = [NewTopic(topic, PARTITIONS, 1, config=config) for topic in (topics.journal, topics.decisions)]
    for future in admin.create_topics(new, operation_timeout=10).values():
        future.result(timeout=10)
    return topics


class Writer:
    """Writes records as our processes do: facts plainly, decisions in transactions."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        config: dict[str, Any] = {"bootstrap.servers": topics.bootstrap, "partitioner": PARTITIONER, "linger.ms": 0}
        self._plain = Producer(config | {"enable.idempotence": True})
        self._transactional = Producer(config | {"transactional.id": uuid4().hex})
        self._transactional.init_transactions(10)
        self.ends: dict[tuple[str, int], int] = {}

    def write(self, records: Iterable[Recorded]) -> None:
        """Write the records in order; each run of decisions is a transaction of its own."""
        open_transaction = False
        for record in records:
            decided = isinstance(record.event, DECISIONS)
            if decided and not open_transaction:
                self._transactional.begin_transaction()
            elif open_transaction and not decided:
                self._transactional.commit_transaction(10)
            open_transaction = decided
            self._produce(self._transactional if decided else self._plain, record)
        if open_transaction:
            self._transactional.commit_transaction(10)
        assert self._plain.flush(10) == 0

    def write_raw(self, topic: str, key: bytes, value: bytes | None, partition: int) -> None:
        self._plain.produce(topic, value=value, key=key, partition=partition, timestamp=1, on_delivery=self._delivered)
        assert self._plain.flush(10) == 0

    def abort(self, record: Recorded) -> None:
        """Write a decision in a transaction that comes to nothing."""
        self._transactional.begin_transaction()
        known = dict(self.ends)
        self._produce(self._transactional, record)
        self._transactional.flush(10)
        self._transactional.abort_transaction(10)
        self.ends = known

    def _delivered(self, error: Any, message: Any) -> None:
        assert error is None, error
        self.ends[message.topic(), message.partition()] = message.offset() + 1

    def _produce(self, producer: Producer, record: Recorded) -> None:
        topic, key = self._topics.of(record.event)
        encoded = CODEC.encode(record.event, source=record.producer, time_ms=record.timestamp_ms, subject=key)
        producer.produce(
            topic,
            value=encoded.value,
            key=key.encode(),
            headers=encoded.headers,
            timestamp=record.timestamp_ms,
            on_delivery=self._delivered,
        )
        producer.poll(0)


def runner_of(topics: Topics, engine: Engine, stop: Stop, group: str) -> Runner:
    return Runner(consumer(topics.bootstrap, group), CODEC, Store(engine), stop, Health())


@dataclass(frozen=True)
class Running:
    """A runner at work in a thread."""

    future: Future[None]

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait; the runner's failure, if it has one, fails the test at once."""
        wait_until(lambda: self.future.done() or condition(), what)
        if self.future.done():
            self.future.result()
        assert condition()


@contextmanager
def running(topics: Topics, url: str, group: str = "") -> Iterator[Running]:
    """A runner in a thread, by default in the test's one group; its failure fails the test."""
    stop, engine = Stop(), engine_of(url)
    runner = runner_of(topics, engine, stop, f"{topics.journal}{group}")
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(runner.run, (topics.journal, topics.decisions))
        try:
            yield Running(future)
        finally:
            stop.request()
            wait([future], DEADLINE_S)
            engine.dispose()
        future.result(0)


@contextmanager
def runner_process(topics: Topics, url: str) -> Iterator[subprocess.Popen[bytes]]:
    """A runner in a process of its own, killed at the end if it still lives."""
    command = [sys.executable, "-m", "tests.projections.lone_runner", *vars(topics).values(), url]
    with subprocess.Popen(command) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {DEADLINE_S:g} s"
        time.sleep(0.05)


def caught_up(engine: Engine, ends: Mapping[tuple[str, int], int]) -> bool:
    """Whether the offsets have reached the end of what was written in every partition."""
    with engine.connect() as connection:
        rows = connection.execute(select(OFFSETS.c.topic, OFFSETS.c.partition, OFFSETS.c.next_offset)).all()
    reached = {(topic, partition): next_offset for topic, partition, next_offset in rows}
    return all(reached.get(source, 0) >= end for source, end in ends.items())


def dump(engine: Engine) -> dict[str, list[Row[Any]]]:
    """Every projected row, in the order of the keys."""
    with engine.connect() as connection:
        return {
            table.name: list(connection.execute(select(table).order_by(*table.primary_key.columns)))
            for table in PROJECTED
        }
