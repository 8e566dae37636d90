"""The relay's loop: one consumer of a group, one idempotent producer, at least once everywhere.

Offsets are committed only after what they caused was delivered. Timers are read from the beginning at each
assignment, and fired by the member that has their partition.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import structlog
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from recovery.health import Health
from recovery.metrics import FACTS_WRITTEN, counter, gauge, latency
from recovery.metrics import PARKED as PARKED_METRIC
from recovery.process import FencedError, Stop
from schemas.codec import Codec, UnknownSchema
from schemas.decisions import TimerSet
from schemas.topics import ACTIONS, DECISION_LOG, NODE_DECISIONS, TIMERS
from streams.kafka import LIBRARY_LOG, batch, is_fenced, producer
from streams.parking import Parking, ParkingFull
from streams.records import Incoming, Outgoing
from streams.run.relay_copy import SOURCE, action_fact, firing, node_fault_fact, request
from streams.run.relay_timers import Timers

log = structlog.get_logger(__name__)

GROUP = "recovery-relay"
IDLE_S = 0.5
COMMIT_PERIOD_S = 0.1
DELIVERY_TIMEOUT_S = 60.0
STOP_GRACE_S = 5.0
BEAT_S = 90.0

RELAYED = counter("relayed", "Records that the relay copied, by the topic that they came from.", "topic")
FIRED = counter("timers_fired", "Timers fired, repetitions included.")
PENDING = gauge("timers_pending", "Timers that are pending in the partitions of this relay.")
LATENESS = latency("timer_lateness", "From when a timer was due to when it fired; repetitions are late by design.")


class DeliveryFailed(RuntimeError):
    """Kafka did not take a record in time: nothing was committed, so a restart repeats it."""


class Relay:
    """Turns until it is asked to stop."""

    def __init__(self, bootstrap: str, codec: Codec, instance: str, stop: Stop, health: Health) -> None:
        self._codec = codec
        self._stop = stop
        self._health = health
        self._timers = Timers()
        self._parking = Parking(codec, SOURCE)
        self._producer = producer(
            bootstrap, instance, **{"message.timeout.ms": int(DELIVERY_TIMEOUT_S * 1000), "linger.ms": 0}
        )
        self._consumer = _consumer(bootstrap, instance)
        self._assigned: list[TopicPartition] = []
        self._read: dict[tuple[str, int], int] = {}
        self._committed: dict[tuple[str, int], int] = {}
        self._commit_at = 0.0
        self._unsettled = False
        self._failure: str | None = None

    def partitions(self) -> list[TopicPartition]:
        """The partitions that this relay has. Safe to call from another thread, as `busy` is."""
        return self._assigned

    def busy(self) -> str | None:
        """Why timers do not fire yet; None once they do."""
        unread = self._timers.unread
        return f"reading {unread} partitions of {TIMERS.name} to the stable end" if unread else None

    def run(self) -> None:
        """Relay until `stop`. Raises FencedError, DeliveryFailed, ParkingFull, UnknownSchema, KafkaException."""
        self._consumer.subscribe(
            [ACTIONS.name, DECISION_LOG.name, NODE_DECISIONS.name, TIMERS.name],
            on_assign=self._on_assign,
            on_revoke=self._on_revoke,
            on_lost=self._on_lost,
        )
        with _fencing():
            while not self._stop.requested:
                self._health.beat(BEAT_S)
                try:
                    self._turn()
                except ParkingFull:
                    if self._settle():
                        self._commit(wait=True)  # what was parked before is not parked again
                    raise
            self._settle()
            self._commit(wait=True)
            self._consumer.close()

    def _turn(self) -> None:
        for message in batch(self._consumer, self._wait_s()):
            error = message.error()
            if error is None:
                self._take(message)
                self._has_read(message, 1)
            elif error.code() == KafkaError._PARTITION_EOF:
                self._has_read(message, 0)
                if message.topic() == TIMERS.name:
                    self._timers.read_to_end(message.partition() or 0)
            elif error.fatal() or not error.retriable():
                raise KafkaException(error)
        self._fire()
        PENDING.set(len(self._timers))
        if self._settle():
            self._commit(wait=False)

    def _has_read(self, message: Message, records: int) -> None:
        """Keep our place ourselves: the consumer's own position is one too far after an end of partition."""
        place = (message.topic() or "", message.partition() or 0)
        self._read[place] = (message.offset() or 0) + records

    def _wait_s(self) -> float:
        next_ms = self._timers.next_ms()
        if next_ms is None:
            return IDLE_S
        return min(IDLE_S, max(0, math.ceil(next_ms - time.time() * 1000)) / 1000)

    def _take(self, message: Message) -> None:
        record = incoming(message)
        if record.topic == TIMERS.name:
            self._take_timer(record)
        elif record.value is not None:
            self._copy(record)

    def _take_timer(self, record: Incoming) -> None:
        key = record.key.decode()
        if record.value is None:
            self._timers.take(record.partition, key, None)
            return
        timer = self._codec.decode(record.value, record.headers)
        if not isinstance(timer, TimerSet):
            raise TypeError(f"{record.place} is {type(timer).__name__}, no timer: only deciders may write there")
        self._timers.take(record.partition, key, timer)

    def _copy(self, record: Incoming) -> None:
        if record.topic == DECISION_LOG.name:
            copy = request(record)
        else:
            try:
                carry = node_fault_fact if record.topic == NODE_DECISIONS.name else action_fact
                copy = carry(self._codec, record)
            except UnknownSchema:
                raise
            except Exception as error:  # noqa: BLE001 - whatever a record does to us, it is parked
                _, copy = self._parking.park(record, error)
                PARKED_METRIC.labels(record.topic).inc()
            else:
                self._parking.handled()
        if copy is not None:
            RELAYED.labels(record.topic).inc()
            self._write(copy)

    def _fire(self) -> None:
        now_ms = time.time_ns() // 1_000_000
        for timer in self._timers.due(now_ms):
            self._write(firing(self._codec, timer, now_ms))
            FIRED.inc()
            FACTS_WRITTEN.labels("TimerFired").inc()
            LATENESS.observe((now_ms - timer.due_ms) / 1000)
        self._producer.poll(0)

    def _write(self, record: Outgoing) -> None:
        self._unsettled = True
        while True:
            try:
                self._producer.produce(
                    record.topic.name,
                    key=record.key,
                    value=record.value,
                    headers=list(record.headers),
                    on_delivery=self._delivered,
                )
            except BufferError:
                self._producer.poll(0.1)
            else:
                return

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self._failure = error.str()

    def _settle(self) -> bool:
        """Wait until everything written is delivered; False where we are to stop and Kafka does not take it.

        Raises DeliveryFailed. A broker that restarts is waited for.
        """
        grace = STOP_GRACE_S
        while self._unsettled and self._producer.flush(0.5):
            self._health.beat(BEAT_S)
            if self._stop.requested:
                grace -= 0.5
                if grace <= 0:
                    log.warning("stopped before Kafka took everything", next="the next relay repeats it")
                    return False
        self._unsettled = False
        if self._failure is not None:
            raise DeliveryFailed(f"Kafka did not take a record within {DELIVERY_TIMEOUT_S:g} s: {self._failure}")
        return True

    def _commit(self, *, wait: bool) -> None:
        """Commit how far we have read. Timers too, though they are read from the beginning: it shows their lag."""
        if not wait and time.monotonic() < self._commit_at:
            return
        self._commit_at = time.monotonic() + COMMIT_PERIOD_S
        moved = [
            TopicPartition(place.topic, place.partition, offset)
            for place in self._assigned
            if (offset := self._read.get((place.topic, place.partition))) is not None
            and self._committed.get((place.topic, place.partition)) != offset
        ]
        if not moved or self._unsettled:
            return
        try:
            self._consumer.commit(offsets=moved, asynchronous=not wait)
        except KafkaException as error:
            log.warning("offsets not committed", error=str(error), next="what follows them is copied again")
            return
        self._committed |= {(place.topic, place.partition): place.offset for place in moved}

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        for place in partitions:
            if place.topic == TIMERS.name:
                place.offset = OFFSET_BEGINNING
                self._timers.begin(place.partition)
        consumer.assign(partitions)
        self._assigned = [TopicPartition(place.topic, place.partition) for place in partitions]
        self._committed.clear()
        self._read.clear()
        log.info("partitions assigned", count=len(partitions))

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if self._settle():
            self._commit(wait=True)
        self._on_lost(consumer, partitions)

    def _on_lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        for place in partitions:
            if place.topic == TIMERS.name:
                self._timers.drop(place.partition)
        self._assigned = []
        self._read.clear()
        consumer.unassign()


def incoming(message: Message) -> Incoming:
    """Return a consumed message as a record."""
    return Incoming(
        message.topic() or "",
        message.partition() or 0,
        message.offset() or 0,
        message.key() or b"",
        message.value(),
        [(name, value) for name, value in message.headers() or [] if value is not None],
        message.timestamp()[1],
    )


def _consumer(bootstrap: str, instance: str) -> Consumer:
    config: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "client.id": instance,
        "group.id": GROUP,
        "group.instance.id": instance,
        "session.timeout.ms": 10_000,
        "heartbeat.interval.ms": 3_000,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "logger": LIBRARY_LOG,
        "on_commit": _on_commit,
    }
    return Consumer(config)


def _on_commit(error: KafkaError | None, _partitions: list[TopicPartition]) -> None:
    if error is not None:
        log.warning("offsets not committed", error=error.str(), next="what follows them is copied again")


@contextmanager
def _fencing() -> Iterator[None]:
    try:
        yield
    except KafkaException as error:
        if is_fenced(error):
            raise FencedError("another relay took this one's place in the group") from error
        raise
