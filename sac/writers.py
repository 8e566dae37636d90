"""How the controller writes: actions in transactions, which fence a stale leader; facts and heartbeats without.

Nobody writes to the journal in a transaction: a dead leader's open one would hide everybody's facts behind it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message

from recovery.metrics import FACTS_WRITTEN
from recovery.process import FencedError
from sac.act import Record
from schemas.bookkeeping import ClusterSeen, PolicyPublished
from schemas.codec import Codec
from schemas.facts import JobObserved
from schemas.identity import Position, derived_id
from schemas.policy import Policy
from schemas.topics import FLEET, POLICIES, action_route, fact_route
from streams.kafka import producer, send

TRANSACTION_TIMEOUT_MS = 10_000
REQUEST_TIMEOUT_S = 10.0
COMMIT_TRIES = 3
FENCED = (KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH)


class WriteFailed(RuntimeError):
    """Kafka did not take a record in time. What was observed is published anew after a restart."""


class FactWriter:
    """Writes observations to the journal and heartbeats to the fleet topic. Not thread-safe."""

    def __init__(self, bootstrap: str, codec: Codec, cluster: str) -> None:
        self._codec = codec
        self._source = f"sac/{cluster}"
        self._producer = producer(bootstrap, f"sac-facts-{cluster}")
        self._failure: str | None = None

    def observed(self, fact: JobObserved) -> None:
        topic, key = fact_route(fact)
        self._send(topic, key, fact, fact.position.offset)

    def seen(self, heartbeat: ClusterSeen) -> None:
        self._send(FLEET, heartbeat.cluster, heartbeat, heartbeat.seen_ms)

    def documented(self, policy: Policy) -> None:
        """Publish a policy's document before an observation is stamped with its digest.

        The shipped default changes with the code, and history must be decided with the default of its day. Repeating
        it writes the same record under the same key. Raises WriteFailed.
        """
        digest = policy.digest()
        event = PolicyPublished(derived_id("policy", digest), "", digest, 0, policy.document())
        self._send(POLICIES, digest, event, 0)
        if self._producer.flush(REQUEST_TIMEOUT_S):
            raise WriteFailed(f"{POLICIES.name} did not take the policy's document within {REQUEST_TIMEOUT_S:g} s")
        self.check()

    def check(self) -> None:
        """Raise WriteFailed if a record was lost."""
        self._producer.poll(0)
        if self._failure is not None:
            raise WriteFailed(self._failure)

    def close(self) -> None:
        self._producer.flush(REQUEST_TIMEOUT_S)

    def _send(self, topic: Any, key: str, event: JobObserved | ClusterSeen | PolicyPublished, time_ms: int) -> None:
        encoded = self._codec.encode(event, source=self._source, time_ms=time_ms, subject=key)
        send(self._producer, topic, key, encoded, self._delivered)
        FACTS_WRITTEN.labels(type(event).__name__).inc()

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failure = f"{message.topic()} did not take a record: {error.str()}"


class ActionWriter:
    """The one transactional writer of a cluster's actions; making it fences whoever had the id before.

    `known` is told of every record as soon as it is committed. Raises FencedError once another took its place.
    """

    def __init__(self, bootstrap: str, codec: Codec, cluster: str, known: Callable[[Record], None]) -> None:
        self._codec = codec
        self._cluster = cluster
        self._known = known
        self._last_ms = 0
        extra: dict[str, str | int] = {
            "transactional.id": f"sac-{cluster}",
            "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
        }
        self._producer = producer(
            bootstrap,
            f"sac-actions-{cluster}",
            **extra,
        )
        self._call(lambda: self._producer.init_transactions(REQUEST_TIMEOUT_S))

    def start_after(self, position_ms: int) -> None:
        """Continue the positions of an earlier leader, whose clock may have been ahead."""
        self._last_ms = max(self._last_ms, position_ms)

    def next_position(self) -> Position:
        self._last_ms = max(self._last_ms + 1, time.time_ns() // 1_000_000)
        return Position(f"sac:{self._cluster}", 0, self._last_ms)

    def record(self, *records: Record) -> None:
        """Commit records in one transaction. Raises FencedError, and KafkaException where the outcome is open."""
        self._call(self._producer.begin_transaction)
        for record in records:
            topic, key = action_route(record)
            encoded = self._codec.encode(
                record, source=f"sac/{self._cluster}", time_ms=record.position.offset, subject=key
            )
            self._call(lambda t=topic, k=key, e=encoded: send(self._producer, t, k, e))  # type: ignore[misc]
        self._call(lambda: self._producer.commit_transaction(REQUEST_TIMEOUT_S))
        for record in records:
            FACTS_WRITTEN.labels(type(record).__name__).inc()
            self._known(record)

    def _call(self, step: Callable[[], object]) -> None:
        for left in reversed(range(COMMIT_TRIES)):
            try:
                step()
            except KafkaException as error:
                cause = error.args[0]
                if cause.code() in FENCED:
                    raise FencedError(f"another controller leads cluster {self._cluster}: {cause.str()}") from error
                if not cause.retriable() or not left:
                    raise
            else:
                return
