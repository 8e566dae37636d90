"""Writes facts, and only after their delivery how far each source was read.

The producer is idempotent and not transactional: nobody writes to the journal in a transaction. While Kafka is away
it keeps what it was given and tries for ever; a failure that it can't get over ends the process, whose successor
starts again from the positions.
"""

from __future__ import annotations

import structlog
from confluent_kafka import KafkaError, KafkaException, Message

from recovery.metrics import FACTS_WRITTEN, PARKED
from schemas.bookkeeping import RecordParked, SourceRead
from schemas.codec import Codec
from schemas.facts import BlindReported, OutputChecked, SignatureMatched
from schemas.nodes import NodeFaultSeen
from schemas.topics import PARKED as PARKED_TOPIC
from schemas.topics import POSITIONS, fact_route, node_fact_route
from streams.kafka import producer, send
from streams.watch.events import LineFact

log = structlog.get_logger(__name__)

# Facts that may wait for Kafka; past it nothing more is read.
MOST_WAITING = 10_000
CE_SOURCE = "recovery/watch"


class Publisher:
    """The one producer of the process. Not thread-safe."""

    def __init__(self, bootstrap: str, codec: Codec) -> None:
        self._codec = codec
        self._failure: KafkaError | None = None
        # 0: no message is given up; what waits is bounded by MOST_WAITING
        self._producer = producer(bootstrap, "recovery-watch", **{"message.timeout.ms": 0})

    @property
    def full(self) -> bool:
        """Whether so much waits for Kafka that nothing more may be read."""
        return len(self._producer) >= MOST_WAITING

    def write(self, event: LineFact | OutputChecked | BlindReported | RecordParked) -> None:
        """Give one fact or parked line to Kafka. Raises KafkaException after a failure that can't be got over."""
        if isinstance(event, RecordParked):
            key = event.key.decode("utf-8", "replace")
            encoded = self._codec.encode(event, source=CE_SOURCE, time_ms=event.parked_ms, subject=key)
            send(self._producer, PARKED_TOPIC, key, encoded, self._delivered)
            PARKED.labels(PARKED_TOPIC.name).inc()
            log.warning("line parked", source=key, offset=event.offset, reason=event.reason)
            return
        topic, key = fact_route(event)
        encoded = self._codec.encode(event, source=CE_SOURCE, time_ms=_time_of(event), subject=event.attempt.key)
        send(self._producer, topic, key, encoded, self._delivered)
        FACTS_WRITTEN.labels(type(event).__name__).inc()

    def write_of_node(self, fact: NodeFaultSeen) -> None:
        """Give what a node said to Kafka: for the node decider, since nobody here knows whom it concerns."""
        topic, key = node_fact_route(fact)
        time_ms = fact.fault.evidence.read_ms
        send(
            self._producer,
            topic,
            key,
            self._codec.encode(fact, source=CE_SOURCE, time_ms=time_ms, subject=key),
            self._delivered,
        )
        FACTS_WRITTEN.labels(type(fact).__name__).inc()

    def delivered(self, timeout_s: float) -> bool:
        """Whether everything written so far is in Kafka, waiting up to `timeout_s` seconds. Raises KafkaException."""
        left = self._producer.flush(timeout_s)
        if self._failure is not None:
            raise KafkaException(self._failure)
        return bool(left == 0)

    def write_position(self, position: SourceRead) -> None:
        """Write how far a source was read; its facts must be delivered."""
        encoded = self._codec.encode(position, source=CE_SOURCE, time_ms=position.read_ms, subject=position.source)
        send(self._producer, POSITIONS, position.source, encoded, self._delivered)

    def forget_position(self, source: str) -> None:
        """Take a position out of the topic."""
        send(self._producer, POSITIONS, source, None, self._delivered)

    def poll(self) -> None:
        """Serve what came back from Kafka. Raises KafkaException."""
        self._producer.poll(0)
        if self._failure is not None:
            raise KafkaException(self._failure)

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None and self._failure is None:
            self._failure = error


def _time_of(event: LineFact | OutputChecked | BlindReported) -> int:
    """When watch saw it."""
    if isinstance(event, BlindReported):
        return event.reported_ms
    if isinstance(event, SignatureMatched):
        return event.evidence.read_ms
    return event.checked_ms if isinstance(event, OutputChecked) else event.read_ms
