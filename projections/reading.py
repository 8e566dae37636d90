"""Kafka's side: a consumer that keeps no offsets in Kafka, and messages made into records or problems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, Message

from projections.records import Record
from projections.store import Problem
from schemas.catalogue import DECISIONS, FACTS
from schemas.codec import Codec, UnknownSchema, UnreadableRecord
from schemas.decisions import Decision
from schemas.facts import Fact

BATCH = 1000
FIRST_S = 0.2
REST_S = 0.005

_PROJECTED = (*FACTS, *DECISIONS)


def consumer(bootstrap: str, group: str) -> Consumer:
    """A read-committed consumer whose place is kept in PostgreSQL: the group only shares out the partitions.

    A place that Kafka no longer has is an error, never skipped.
    """
    config: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
        "auto.offset.reset": "error",
        "session.timeout.ms": 6000,
        "heartbeat.interval.ms": 2000,
        "fetch.wait.max.ms": 100,
        "queued.max.messages.kbytes": 32768,
        "allow.auto.create.topics": False,
    }
    return Consumer(config)


def read_some(source: Consumer) -> list[Message]:
    """Wait up to 0.2 s for a message, then take what else is there, at most 1,000 in all."""
    first = source.poll(FIRST_S)
    if first is None:
        return []
    return [first, *source.consume(BATCH - 1, timeout=REST_S)]


def decode(codec: Codec, message: Message) -> Record | Problem:
    """Read one message. Raises UnknownSchema: then this process must stop and be upgraded, never guess."""
    topic, partition, offset = str(message.topic()), int(message.partition() or 0), int(message.offset() or 0)
    kind, stamp = message.timestamp()
    timestamp_ms = 0 if kind == TIMESTAMP_NOT_AVAILABLE else stamp
    headers = _headers(message)
    value = message.value()
    try:
        if value is None:
            raise UnreadableRecord("a record without a value: nothing here is ever withdrawn")
        event = codec.decode(value, headers)
        if not isinstance(event, _PROJECTED):
            raise UnreadableRecord(f"a {type(event).__name__}, which is neither a fact nor a decision")
    except UnreadableRecord as error:
        key = (message.key() or b"").decode("utf-8", "replace")
        return Problem(topic, partition, offset, timestamp_ms, key, str(error))
    except UnknownSchema as error:
        raise UnknownSchema(f"{topic} partition {partition} offset {offset}: {error}; upgrade this process") from error
    producer = next((value for name, value in headers if name == "ce_source" and value is not None), b"")
    return Record(
        topic, partition, offset, timestamp_ms, producer.decode("utf-8", "replace"), cast(Fact | Decision, event)
    )


def _headers(message: Message) -> Sequence[tuple[str, bytes | None]]:
    return list(message.headers() or ())
