"""History to replay: the journal and the decisions, partition by partition, from Kafka or from an exported file.

Both topics are keyed by job with the same partition count, so the decisions of a journal partition lie, in the order
of their facts, on the decisions partition of the same number. The topics of the node decider lie in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from schemas.codec import FINGERPRINT
from schemas.topics import DECISION_LOG, JOURNAL, Topic
from streams.kafka import REQUEST_TIMEOUT_S, messages, reader, stable_ends

POLL_S = 0.5
IDLE_LIMIT = 60


class HistoryUnreadable(RuntimeError):
    """History can't be read to its end; the message says where it broke off and what to do."""


@dataclass(frozen=True)
class StoredRecord:
    """One record as it lies in its topic."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes
    value: bytes | None
    fingerprint: str

    @property
    def headers(self) -> list[tuple[str, bytes | None]]:
        """What the codec needs of the headers."""
        return [(FINGERPRINT, self.fingerprint.encode())] if self.fingerprint else []


class History(Protocol):
    """Where records come from."""

    def partitions(self) -> int:
        """How many partitions the journal and the decisions have."""
        ...

    def decided_up_to(self, partition: int) -> int:
        """The journal offset below which every fact has been decided."""
        ...

    def journal(self, partition: int) -> Iterator[StoredRecord]: ...

    def decisions(self, partition: int) -> Iterator[StoredRecord]: ...


class TopicHistory:
    """History as it lies in Kafka now. Positions of the deciders are read first, so what follows covers them."""

    def __init__(self, bootstrap: str, group: str, facts: Topic = JOURNAL, decisions: Topic = DECISION_LOG) -> None:
        self._bootstrap = bootstrap
        self._facts = facts
        self._decisions = decisions
        admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        asked = ConsumerGroupTopicPartitions(
            group, [TopicPartition(facts.name, partition) for partition in range(facts.partitions)]
        )
        committed = admin.list_consumer_group_offsets([asked], request_timeout=REQUEST_TIMEOUT_S)[group]
        self._decided: dict[int, int] = {
            place.partition: max(place.offset, 0) for place in committed.result(REQUEST_TIMEOUT_S).topic_partitions
        }

    def partitions(self) -> int:
        return self._facts.partitions

    def decided_up_to(self, partition: int) -> int:
        return self._decided[partition]

    def journal(self, partition: int) -> Iterator[StoredRecord]:
        return self._read(self._facts, partition)

    def decisions(self, partition: int) -> Iterator[StoredRecord]:
        return self._read(self._decisions, partition)

    def _read(self, topic: Topic, partition: int) -> Iterator[StoredRecord]:
        """Read a partition to its stable end as it was when the reading began."""
        consumer = reader(self._bootstrap, f"replay-{topic.name}-{partition}")
        try:
            end = stable_ends(consumer, topic).get(partition, 0)
            consumer.assign([TopicPartition(topic.name, partition, 0)])
            idle = 0
            while end and consumer.position([TopicPartition(topic.name, partition)])[0].offset < end:
                idle += 1
                for message in messages(consumer, POLL_S):
                    idle = 0
                    headers = dict(message.headers() or [])
                    yield StoredRecord(
                        topic.name,
                        partition,
                        message.offset() or 0,
                        message.timestamp()[1],
                        message.key() or b"",
                        message.value(),
                        (headers.get(FINGERPRINT) or b"").decode("ascii", "replace"),
                    )
                if idle > IDLE_LIMIT:
                    raise HistoryUnreadable(
                        f"{topic.name}/{partition} gives no more before its end at {end}; is it up?"
                    )
        finally:
            consumer.close()
