"""Lines from a Kafka topic of raw records, as a collector writes them.

A record's place is its partition and offset, which are durable and in order; the epoch counts the topic's lives (one
that was deleted and made again starts its offsets anew, and has another id). Nothing is committed: cursors are ours.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from threading import Event
from uuid import uuid4

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient

from streams.kafka import LIBRARY_LOG
from streams.sources.lines import (
    RETRY_S,
    Answer,
    Batch,
    Cursor,
    Labels,
    SourceLine,
    SourceProblem,
    SourceState,
    Wanted,
    newest,
    of_wanted,
)
from streams.sources.records import Fields, labels_of, read_record

MOST_RECORDS = 2_000
POLL_S = 0.2
ASK_S = 5.0
LOOK_S = 30.0
"""Between two looks at how many partitions there are."""
QUERIED_RECORDS = 200_000
QUERY_S = 15.0
NS_PER_MS = 1_000_000


class KafkaTopic:
    """Follows and queries one topic."""

    def __init__(self, bootstrap: str, topic: str, fields: Fields) -> None:
        self.name = f"kafka:{topic}"
        self._bootstrap = bootstrap
        self._topic = topic
        self._fields = fields
        self._down = ""

    def follow(self, cursors: Mapping[str, Cursor], since_ms: int, stop: Event) -> Iterator[Batch]:
        """Give batches until told to stop; see LogSource."""
        places = {name: cursor for name, cursor in cursors.items() if name.startswith(f"{self.name}/")}
        tried = 0
        while not stop.is_set():
            consumer = self._consumer()
            try:
                for batch in self._read(consumer, places, since_ms, stop):
                    places |= {cursor.source: cursor for cursor in batch.cursors}
                    tried = 0 if batch.lines else tried
                    yield batch
            except SourceProblem as problem:
                yield Batch((), tuple(places.values()), problem.state, str(problem))
                stop.wait(RETRY_S[min(tried, len(RETRY_S) - 1)])
                tried += 1
            finally:
                consumer.close()

    def query(self, wanted: Wanted, limit: int) -> Answer:
        """Return the newest lines of a job, by reading the topic from `start_ms` on, within a bound."""
        return self._ask(lambda consumer: self._search(consumer, wanted, limit))

    def sample(self, start_ms: int, end_ms: int, limit: int) -> Answer:
        """Return the last lines of each partition within the window; see LogSource."""
        return self._ask(lambda consumer: self._last(consumer, start_ms, end_ms, limit))

    def close(self) -> None:
        """Nothing is held between looks."""

    def _ask(self, question: Callable[[Consumer], Answer]) -> Answer:
        consumer = self._consumer()
        try:
            return question(consumer)
        except SourceProblem as problem:
            return Answer((), str(problem))
        except KafkaException as error:
            return Answer((), f"{self.name} does not answer: {error.args[0]}")
        finally:
            consumer.close()

    def _read(self, consumer: Consumer, places: Mapping[str, Cursor], since_ms: int, stop: Event) -> Iterator[Batch]:
        """Batches from where `places` are; returns when the topic has more partitions than before."""
        starts, told = self._starts(consumer, places, since_ms)
        known = {int(cursor.source.rpartition("/")[2]): cursor for cursor in starts}
        consumer.assign([TopicPartition(self._topic, number, cursor.offset) for number, cursor in known.items()])
        yield Batch((), starts, SourceState.FOLLOWED, told)
        look_at = time.monotonic() + LOOK_S
        while not stop.is_set():
            first = consumer.poll(POLL_S)
            messages = [] if first is None else [first, *consumer.consume(MOST_RECORDS - 1, 0)]
            lines: list[SourceLine] = []
            for message in messages:
                _check(self.name, message.error())
                if message.error() is None:
                    self._down = ""
                    number, offset = message.partition() or 0, message.offset() or 0
                    lines += self._lines(message, known[number])
                    known[number] = replace(known[number], offset=offset + 1)
            if self._down or time.monotonic() >= look_at:
                look_at = time.monotonic() + LOOK_S
                if len(self._partitions(consumer)) != len(known):
                    return
            yield Batch(tuple(lines), tuple(known.values()), caught_up=not lines)

    def _starts(
        self, consumer: Consumer, places: Mapping[str, Cursor], since_ms: int
    ) -> tuple[tuple[Cursor, ...], str]:
        """Where to begin in each partition, and what is lost, in words. Raises SourceProblem."""
        numbers = self._partitions(consumer)
        identity = self._identity()
        starts, told = [], []
        try:
            by_time = consumer.offsets_for_times(
                [TopicPartition(self._topic, number, since_ms) for number in numbers], timeout=ASK_S
            )
            for wanted in by_time:
                low, high = consumer.get_watermark_offsets(TopicPartition(self._topic, wanted.partition), timeout=ASK_S)
                source = f"{self.name}/{wanted.partition}"
                place = places.get(source)
                if place is None:
                    starts.append(Cursor(source, identity, 0, wanted.offset if wanted.offset >= 0 else high))
                elif place.identity != identity or place.offset > high:
                    told.append(f"{source} was made anew: read from its beginning")
                    starts.append(Cursor(source, identity, place.epoch + 1, low))
                else:
                    if place.offset < low:
                        told.append(f"{source}: {low - place.offset} records were deleted before they were read")
                    starts.append(Cursor(source, identity, place.epoch, max(place.offset, low)))
        except KafkaException as error:
            raise SourceProblem(SourceState.DOWN, f"{self.name} does not answer: {error.args[0]}") from error
        return tuple(starts), "; ".join(told)

    def _partitions(self, consumer: Consumer) -> list[int]:
        try:
            known = consumer.list_topics(self._topic, timeout=ASK_S).topics[self._topic]
        except KafkaException as error:
            raise SourceProblem(SourceState.DOWN, f"{self._bootstrap} does not answer: {error.args[0]}") from error
        _check(self.name, known.error)
        self._down = ""
        return sorted(known.partitions)

    def _identity(self) -> str:
        """The topic's id, which tells it from an earlier one of the same name."""
        admin = AdminClient({"bootstrap.servers": self._bootstrap, "logger": LIBRARY_LOG})
        try:
            [future] = admin.describe_topics(TopicCollection([self._topic]), request_timeout=ASK_S).values()
            return str(future.result(ASK_S * 2).topic_id)
        except (KafkaException, TimeoutError) as error:
            raise SourceProblem(SourceState.DOWN, f"{self.name} can't be described: {error}") from error

    def _lines(self, message: Message, cursor: Cursor) -> Iterator[SourceLine]:
        """The lines of one record; what it does not say its headers may."""
        at_ms = message.timestamp()[1]
        headers = {name: value.decode("utf-8", "replace") for name, value in message.headers() or () if value}
        for index, read in enumerate(read_record(message.value() or b"", self._fields)):
            offset = message.offset() or 0
            yield SourceLine(
                text=read.text,
                at_ms=at_ms if read.at_ns is None else read.at_ns // NS_PER_MS,
                labels=read.labels if read.labels != Labels() else labels_of(headers, self._fields),
                source=cursor.source,
                epoch=cursor.epoch,
                offset=offset,
                index=index,
                identity=f"{cursor.identity}:{offset}:{index}",
                cursor=cursor.source,
                mark=offset,
            )

    def _last(self, consumer: Consumer, start_ms: int, end_ms: int, limit: int) -> Answer:
        starts = []
        for number in self._partitions(consumer):
            low, high = consumer.get_watermark_offsets(TopicPartition(self._topic, number), timeout=ASK_S)
            if high > low:
                starts.append(TopicPartition(self._topic, number, max(low, high - limit)))
        return self._scan(consumer, starts, lambda line: start_ms <= line.at_ms <= end_ms, limit)

    def _search(self, consumer: Consumer, wanted: Wanted, limit: int) -> Answer:
        numbers = self._partitions(consumer)
        starts = consumer.offsets_for_times(
            [TopicPartition(self._topic, number, wanted.start_ms) for number in numbers], timeout=ASK_S
        )
        starts = [start for start in starts if start.offset >= 0]  # else nothing is that new
        return self._scan(consumer, starts, lambda line: of_wanted(line, wanted), limit)

    def _scan(
        self, consumer: Consumer, starts: list[TopicPartition], fits: Callable[[SourceLine], bool], limit: int
    ) -> Answer:
        """The newest lines that fit, from the starts to the end of each partition, within a bound."""
        consumer.assign(starts)
        unread = {start.partition for start in starts}
        found: tuple[SourceLine, ...] = ()
        read, deadline = 0, time.monotonic() + QUERY_S
        while unread:
            if read >= QUERIED_RECORDS or time.monotonic() > deadline:
                return Answer(found, f"{self.name}: {read} records since then were read, and there are more")
            first = consumer.poll(POLL_S)
            for message in [] if first is None else [first, *consumer.consume(MOST_RECORDS - 1, 0)]:
                error, number = message.error(), message.partition() or 0
                _check(self.name, error)
                if error is not None and error.code() == KafkaError._PARTITION_EOF:
                    unread.discard(number)
                if error is None:
                    lines = self._lines(message, Cursor(f"{self.name}/{number}"))
                    found = newest([*found, *filter(fits, lines)], limit)
                    read += 1
        return Answer(found)

    def _consumer(self) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "client.id": "recovery-lines",
                "group.id": f"recovery-lines-{uuid4()}",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "enable.partition.eof": True,
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 50,
                "queued.max.messages.kbytes": 16_384,
                "logger": LIBRARY_LOG,
                "error_cb": self._failed,
            }
        )

    def _failed(self, error: KafkaError) -> None:
        if error.code() in (KafkaError._ALL_BROKERS_DOWN, KafkaError._AUTHENTICATION, KafkaError._RESOLVE):
            self._down = error.str()


def _check(name: str, error: KafkaError | None) -> None:
    """Raise SourceProblem for what the topic says is wrong; what librdkafka tries again by itself is nothing."""
    if error is None:
        return
    code = error.code()
    if code in (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED):
        raise SourceProblem(SourceState.DENIED, f"{name} may not be read: {error.str()}")
    if code in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION):
        raise SourceProblem(SourceState.BROKEN, f"{name}: there is no such topic")
    if error.fatal():
        raise SourceProblem(SourceState.DOWN, f"{name}: {error.str()}")
