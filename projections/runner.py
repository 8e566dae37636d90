"""The runner: reads the journal and the decisions, and moves tables and offsets together.

Any number of runners may live: the consumer group shares the partitions out, and where two hold the same one for a
moment, the compare-and-set on its offset lets one batch in and sends the other runner to look where it stands now.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError

from projections import metrics
from projections.latencies import Latencies
from projections.reading import decode, read_some
from projections.store import Batch, Conflict, Prepared, Source, Store, prepare
from recovery.health import Health
from recovery.lag import records_behind
from recovery.metrics import LAG
from recovery.process import Stop
from schemas.codec import Codec

GROUP = "recovery-project"
BEAT_LIMIT_S = 60.0
NOTE_EVERY_S = 2.0
FIRST_BACK_OFF_S, LAST_BACK_OFF_S = 0.2, 5.0
SWITCH_S = 0.0002
KAFKA_TIMEOUT_S = 10.0

# Kafka's own troubles that its client works on by itself; anything else must stop us.
_PASSING = frozenset(
    {
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TRANSPORT,
        KafkaError._RESOLVE,
        KafkaError._TIMED_OUT,
        KafkaError._MAX_POLL_EXCEEDED,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError.REBALANCE_IN_PROGRESS,
        KafkaError.UNKNOWN_MEMBER_ID,
        KafkaError.ILLEGAL_GENERATION,
    }
)

Result = TypeVar("Result")
log = structlog.get_logger(__name__)


def switch_often() -> None:
    """Have Python's threads take turns quickly.

    By default the one that talks with PostgreSQL waits 5 ms for the one that prepares, at each of its many short turns,
    and a batch takes half as long again.
    """
    sys.setswitchinterval(SWITCH_S)


class Stopping(Exception):
    """The process should stop while it waited for PostgreSQL: nothing was applied."""


class HistoryMissing(Exception):
    """Kafka no longer has, or never had, the place where the tables stand."""


class Runner:
    """One runner. `consumer` and `store` are its own; it lives until `stop` is requested."""

    def __init__(self, consumer: Consumer, codec: Codec, store: Store, stop: Stop, health: Health) -> None:
        self._consumer = consumer
        self._codec = codec
        self._store = store
        self._stop = stop
        self._health = health
        self._next: dict[Source, int] = {}
        self._noted_at = 0.0
        self._latencies = Latencies()
        self._writer = ThreadPoolExecutor(1, "projection-writer")
        self._under_way: tuple[Prepared, Future[None]] | None = None

    def run(self, topics: Iterable[str]) -> None:
        """Project the topics. Raises UnknownSchema and HistoryMissing, which only a person can resolve."""
        self._consumer.subscribe(list(topics), on_assign=self._assigned, on_revoke=self._revoked)
        try:
            while not self._stop.requested:
                self._health.beat(BEAT_LIMIT_S)
                self._apply(self._batches(read_some(self._consumer)))
                self._note()
            self._settle()
        except Stopping:
            log.info("stopped while waiting for PostgreSQL", next="the batch is read again after a start")
        finally:
            self._writer.shutdown()
            self._consumer.close()

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        sources = [Source(part.topic, part.partition) for part in partitions]
        self._next = self._offsets(sources)
        consumer.assign([TopicPartition(source.topic, source.partition, self._next[source]) for source in sources])
        log.info("partitions assigned", count=len(sources))
        self._health.ready()

    def _revoked(self, consumer: Consumer, _partitions: list[TopicPartition]) -> None:
        self._settle()
        self._next = {}
        consumer.unassign()

    def _offsets(self, sources: list[Source]) -> dict[Source, int]:
        beginnings = {}
        for source in sources:
            part = TopicPartition(source.topic, source.partition)
            beginnings[source] = self._consumer.get_watermark_offsets(part, timeout=KAFKA_TIMEOUT_S)[0]
        return self._patiently(lambda: self._store.offsets(beginnings))

    def _batches(self, messages: list[Message]) -> list[Batch]:
        found: dict[Source, list[Message]] = {}
        for message in messages:
            error = message.error()
            if error is not None:
                _consider(error)
                continue
            source = Source(str(message.topic()), int(message.partition() or 0))
            # a message of a partition that was given away, or read before we learned where we stand, is not ours
            if source in self._next and int(message.offset() or 0) >= self._next[source]:
                found.setdefault(source, []).append(message)
        return [
            Batch(source, self._next[source], tuple(decode(self._codec, message) for message in own))
            for source, own in found.items()
        ]

    def _apply(self, batches: list[Batch]) -> None:
        """Prepare the batches while PostgreSQL still writes the ones before, then have it write these."""
        prepared = prepare(batches)
        self._settle()
        if any(batch.start != self._next[batch.source] for batch in batches):  # we stepped aside meanwhile
            prepared = prepare(batch for batch in batches if batch.start == self._next[batch.source])
        if prepared.batches:
            self._begin(prepared)

    def _begin(self, prepared: Prepared) -> None:
        self._next |= {batch.source: batch.next_offset for batch in prepared.batches}
        work = partial(self._patiently, partial(self._store.apply, prepared))
        self._under_way = (prepared, self._writer.submit(work))

    def _settle(self) -> None:
        """Wait for the batches under way. Where another runner is ahead, the others of them are written again."""
        while self._under_way is not None:
            (prepared, writing), self._under_way = self._under_way, None
            try:
                writing.result()
            except Conflict as conflict:
                self._step_aside(conflict.source)
                rest = [batch for batch in prepared.batches if batch.source != conflict.source]
                if rest:
                    self._begin(prepare(rest))
            else:
                self._latencies.take(prepared.records, time.time_ns() // 1_000_000)

    def _step_aside(self, source: Source) -> None:
        metrics.CONFLICTS.labels(source.topic).inc()
        place = self._offsets([source])[source]
        log.warning("another runner is ahead", topic=source.topic, partition=source.partition, next_offset=place)
        self._next[source] = place
        self._consumer.seek(TopicPartition(source.topic, source.partition, place))

    def _note(self) -> None:
        if time.monotonic() - self._noted_at < NOTE_EVERY_S or not self._next:
            return
        self._settle()
        lags = {
            source: records_behind(self._consumer, source.topic, source.partition, place)
            for source, place in self._next.items()
        }
        try:
            self._patiently(lambda: self._store.note(self._next, lags))
        except Conflict as conflict:
            self._step_aside(conflict.source)
            return
        for topic in {source.topic for source in lags}:
            LAG.labels(topic, GROUP).set(sum(lag for source, lag in lags.items() if source.topic == topic))
        self._noted_at = time.monotonic()

    def _patiently(self, work: Callable[[], Result]) -> Result:
        """Do `work`, again and again while PostgreSQL is out of reach. Raises Stopping when the process should end."""
        pause = FIRST_BACK_OFF_S
        while True:
            try:
                result = work()
            except (OperationalError, InterfaceError, DBAPIError) as error:
                if not _passing(error):
                    raise
                log.warning("PostgreSQL does not answer", error=str(error.orig), next=f"again in {pause:g} s")
                self._health.not_ready("PostgreSQL does not answer; trying again")
                self._health.beat(BEAT_LIMIT_S)
                if self._stop.wait(pause):
                    raise Stopping from error
                pause = min(pause * 2, LAST_BACK_OFF_S)
            else:
                self._health.ready()
                return result


def _passing(error: DBAPIError) -> bool:
    return isinstance(error, OperationalError | InterfaceError) or error.connection_invalidated


def _consider(error: KafkaError) -> None:
    if error.code() in _PASSING:
        log.warning("Kafka does not answer", error=error.str(), next="its client tries again")
        return
    if error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
        raise HistoryMissing(
            f"Kafka does not have the place where the tables stand ({error.str()}): is this the Kafka they were made"
            " from? If its history is whole, `recovery projections rebuild` makes the tables anew"
        )
    raise KafkaException(error)
