"""Kafka as every room uses it: one way to produce, and one way to read a topic whole."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from typing import Any

from confluent_kafka import (
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from recovery.lag import records_behind
from recovery.metrics import LAG
from schemas.codec import Codec, Encoded
from schemas.topics import DERIVED_BYTES, PARTITIONER, Topic

REQUEST_TIMEOUT_S = 10.0
LAG_PERIOD_S = 1.0
POLL_S = 0.2
LIBRARY_LOG = logging.getLogger("librdkafka")
"""Given to every client as `logger`: else the library writes lines of its own to stderr, beside our JSON."""


class KafkaUnavailable(RuntimeError):
    """Kafka did not answer within the time allowed; the message names the address."""


def producer(bootstrap: str, client_id: str, **extra: str | int | float | bool) -> Producer:
    """Return an idempotent producer with the one partitioner. `extra` adds librdkafka settings."""
    return Producer(
        {
            "bootstrap.servers": bootstrap,
            "client.id": client_id,
            "enable.idempotence": True,
            "acks": "all",
            "partitioner": PARTITIONER,
            "linger.ms": 2,
            "compression.type": "lz4",
            "message.max.bytes": DERIVED_BYTES,
            "logger": LIBRARY_LOG,
        }
        | extra
    )


def reader(bootstrap: str, client_id: str, *, committed: bool = True) -> Consumer:
    """Return a consumer without a group: it is assigned by hand and commits nothing."""
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "client.id": client_id,
            "group.id": f"{client_id}-ungrouped",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed" if committed else "read_uncommitted",
            "logger": LIBRARY_LOG,
            "fetch.wait.max.ms": 50,
        }
    )


def stable_ends(consumer: Consumer, topic: Topic) -> dict[int, int]:
    """Return the ends of the partitions that hold anything, asked from the broker.

    An end is the last stable offset under read_committed. Raises KafkaUnavailable.
    """
    ends = {}
    for partition in range(topic.partitions):
        try:
            low, high = consumer.get_watermark_offsets(
                TopicPartition(topic.name, partition), timeout=REQUEST_TIMEOUT_S, cached=False
            )
        except KafkaException as error:
            raise KafkaUnavailable(f"{topic.name}/{partition}: {error.args[0].str()}") from error
        if high > low:
            ends[partition] = high
    return ends


class TopicView:
    """A topic read whole: every record goes to `take`, in each partition's order, first to the stable end, then on.

    `take` gets every message with its value, tombstones included. `reader`: who reads, in the metric of lag; None for
    one who only reads once. Not thread-safe.
    """

    def __init__(
        self,
        consumer: Consumer,
        topics: tuple[Topic, ...],
        take: Callable[[Message], None],
        *,
        reader: str | None = None,
    ) -> None:
        self._consumer = consumer
        self._topics = topics
        self._take = take
        self._reader = reader
        self._lag_told_s = 0.0
        consumer.assign([TopicPartition(t.name, p, 0) for t in topics for p in range(t.partitions)])

    def read_to_stable_end(self, *, timeout_s: float = 60.0) -> None:
        """Read until the stable end as it is now. Raises KafkaUnavailable after `timeout_s` seconds."""
        ends = {(t.name, p): end for t in self._topics for p, end in stable_ends(self._consumer, t).items()}
        deadline = time.monotonic() + timeout_s
        while self._behind(ends):
            self.poll(POLL_S)
            if time.monotonic() > deadline:
                raise KafkaUnavailable(f"the stable end was not reached within {timeout_s:g} s: {self._behind(ends)}")

    def poll(self, timeout_s: float) -> int:
        """Take what is there, waiting at most `timeout_s` seconds for the first record; return how many were taken."""
        taken = 0
        for message in messages(self._consumer, timeout_s):
            self._take(message)
            taken += 1
        if self._reader is not None and time.monotonic() - self._lag_told_s >= LAG_PERIOD_S:
            self._tell_lag(self._reader)
        return taken

    def _tell_lag(self, reader: str) -> None:
        self._lag_told_s = time.monotonic()
        for topic in self._topics:
            behind = sum(records_behind(self._consumer, topic.name, number) for number in range(topic.partitions))
            LAG.labels(topic.name, reader).set(behind)

    def _behind(self, ends: dict[tuple[str, int], int]) -> list[str]:
        at = self._consumer.position([TopicPartition(name, partition) for name, partition in ends])
        return [
            f"{place.topic}/{place.partition}"
            for place in at
            if ends[place.topic, place.partition] > max(place.offset, 0)
        ]


def messages(consumer: Consumer, timeout_s: float, limit: int = 1000) -> Iterator[Message]:
    """Yield what is there, waiting at most `timeout_s` seconds. Raises KafkaException for a fatal error only."""
    for message in batch(consumer, timeout_s, limit):
        error = message.error()
        if error is None:
            yield message
        elif error.fatal() or error.code() in (KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET):
            raise KafkaException(error)


def batch(consumer: Consumer, timeout_s: float, limit: int = 1000) -> list[Message]:
    """Return what is there, errors included, waiting at most `timeout_s` seconds for the first.

    `Consumer.consume` alone waits the whole time unless `limit` is reached, so the first is polled for.
    """
    first = consumer.poll(timeout_s)
    return [] if first is None else [first, *consumer.consume(limit - 1, 0)]


def is_fenced(error: BaseException) -> bool:
    """Whether another process took this one's transactional id or static membership over.

    A fenced consumer says so only in the words of a fatal error; its code is the same for all of those.
    """
    return "fenced" in repr(error).lower()


def decode(codec: Codec, message: Message) -> Any:
    """Return the event in a message that has a value. Raises what Codec.decode raises."""
    value = message.value()
    if value is None:
        raise ValueError("a tombstone has no event")
    return codec.decode(value, message.headers())


def place(message: Message) -> tuple[str, int, int]:
    """Topic, partition and offset of a consumed message."""
    return message.topic() or "", message.partition() or 0, message.offset() or 0


def recorded_ms(message: Message) -> int:
    """The record's timestamp. In the journal it is the broker's; a producer's time there would be no order."""
    kind, timestamp = message.timestamp()
    if kind != TIMESTAMP_LOG_APPEND_TIME:
        raise ValueError(f"{message.topic()} does not have LogAppendTime: make it with `recovery topics create`")
    return int(timestamp)


def send(to: Producer, topic: Topic, key: str, encoded: Encoded | None, on_delivery: Any = None) -> None:
    """Produce one event, or a tombstone where there is none, making room first where the queue is full."""
    while True:
        try:
            to.produce(
                topic.name,
                key=key.encode(),
                value=None if encoded is None else encoded.value,
                headers=[] if encoded is None else list(encoded.headers),
                on_delivery=on_delivery,
            )
        except BufferError:
            to.poll(POLL_S)
        else:
            to.poll(0)
            return
