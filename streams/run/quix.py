"""Quix Streams, imported in one place: it drags in authlib, which insists on a warning that nobody here can act on."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Any

from authlib.deprecate import AuthlibDeprecationWarning
from confluent_kafka import KafkaError, Message, TopicPartition

from streams.records import Incoming, Outgoing

# authlib shows its warning whatever the filters say, unless one comes after its own.
warnings.filterwarnings("ignore", category=AuthlibDeprecationWarning)

from quixstreams import Application as PlainApplication  # noqa: E402 - after the filter
from quixstreams.kafka.consumer import raise_for_msg_error  # noqa: E402
from quixstreams.models import Topic as QuixTopic  # noqa: E402
from quixstreams.models.serializers.base import Serializer  # noqa: E402
from quixstreams.models.serializers.simple_types import BytesSerializer  # noqa: E402
from quixstreams.processing import ProcessingContext  # noqa: E402

__all__ = [
    "Application",
    "BytesSerializer",
    "PlainApplication",
    "Serializer",
    "assigned",
]

POLL_S, IDLE_POLL_S = 0.02, 0.2
"""How long to wait for a record: while something is to be committed, and while nothing is."""
BATCH = 256
"""Records that are handled together at most."""
COMMIT_SOON_S = 0.1
COMMIT_LATE_S = 1.0
BEHIND_MS = 1_000
"""A worker that handles records older than this is behind: to catch up counts for more than a few milliseconds."""


class PartitionsLost(RuntimeError):
    """The group gave this worker's partitions away without asking it: what it has not committed is void."""


def is_due(open_s: float, age_ms: float) -> bool:
    """Whether to commit after so long, a record of this age having been handled; COMMIT_LATE_S ends it in any case."""
    return open_s >= COMMIT_SOON_S and age_ms < BEHIND_MS


class _Context(ProcessingContext):
    """Quix's context that lets what was held back be written before each commit, whoever asks for it."""

    before_commit: Callable[[], None]

    def commit_checkpoint(self, force: bool = False, revoking: bool = False) -> None:
        if not force and not self.checkpoint.expired():
            return
        if not self.checkpoint.empty():
            self.before_commit()
        # Now or never: a second look at the clock might find it due, with its states unwritten.
        super().commit_checkpoint(force=True, revoking=revoking)


class Application(PlainApplication):
    """Hands over what there is to read in batches, and commits by what it reads.

    Quix takes one record at a time through its dataframe. Of several each step of deciding is done in a row, which is
    nearly twice as fast; nobody waits for a batch to be full.

    A commit waits for the broker as long as a hundred facts take to decide: under load it should come seldom, and
    otherwise at once. Quix itself commits by the clock alone.
    """

    _processing_context: _Context
    _take: Callable[[list[Message]], None]
    _stream_id: str

    def __init__(self, before_commit: Callable[[], None], **settings: Any) -> None:
        """`before_commit` is called before every commit that has something to commit."""
        super().__init__(commit_interval=COMMIT_LATE_S, consumer_poll_timeout=POLL_S, **settings)
        given = self._processing_context
        self._processing_context = _Context(
            **{field.name: getattr(given, field.name) for field in fields(given) if field.init}
        )
        self._processing_context.before_commit = before_commit
        self._handled_ms = 0
        """When the record that was handled last was written."""

    def take_batches(self, topic: QuixTopic, take: Callable[[list[Message]], None]) -> None:
        """Have `take` handle what is read of the topic; of each record it must call `done`."""
        frame = self.dataframe(topic)
        frame.update(lambda *_: None, stateful=True)  # Quix makes a store for it, and a changelog
        self._stream_id, self._take = frame.stream_id, take

    def store(self, record: Incoming) -> Any:
        """The place of a record's key in the state store, good until the next commit."""
        checkpoint = self._processing_context.checkpoint
        transaction = checkpoint.get_store_transaction(stream_id=self._stream_id, partition=record.partition)
        return transaction.as_state(prefix=record.key or None, timestamp=record.recorded_ms)

    def done(self, record: Incoming) -> None:
        """What follows from the record is written: the next commit is the record's, too."""
        self._processing_context.store_offset(record.topic, record.partition, record.offset)
        self._handled_ms = record.recorded_ms

    def _process_message(self, dataframe_composed: Any) -> None:  # noqa: ARG002 - as Quix calls it
        self._producer.poll(0)
        messages = self._consumer.consume(BATCH, 0) or self._wait()
        if messages:
            self._take([raise_for_msg_error(message) for message in messages])
            self._producer._broker_available()  # type: ignore[no-untyped-call]
            self._consumer._broker_available()  # type: ignore[no-untyped-call]
        # Where partitions were given away while it was read, Quix has committed, and begun another one.
        checkpoint = self._processing_context.checkpoint
        if checkpoint.empty():
            return
        open_s, age_ms = time.monotonic() - checkpoint._created_at, time.time() * 1000 - self._handled_ms
        if not messages or is_due(open_s, age_ms):
            self.commit()

    def _on_lost(self, consumer: Any, partitions: list[TopicPartition]) -> None:
        """End, where anything was not committed: the next start takes state and place from what was.

        Quix goes on, and commits in its next life in the group what it did in the last one, while whoever has the
        partitions by then begins before it: facts would be decided twice. What fails already commits nothing, and is
        to end with its own error, not with what follows from it.
        """
        super()._on_lost(consumer, partitions)
        if not self._failed and not self._processing_context.checkpoint.empty():
            raise PartitionsLost("Kafka did not hear of this worker for a whole session, or knows it no more")

    def _wait(self) -> list[Message]:
        """`consume` would wait until the batch is full."""
        message = self._consumer.poll(IDLE_POLL_S if self._processing_context.checkpoint.empty() else POLL_S)
        return [] if message is None else [message]

    def write(self, records: Iterable[Outgoing], time_ms: int) -> None:
        """Write records in the open transaction. What Kafka refuses of them, the commit raises.

        Past Quix's own wrappers, which ask for deliveries after each record: that takes as long as writing it.
        """
        produce, told = self._producer._producer._producer.produce, self._told
        for topic, key, value, headers in records:
            try:
                produce(topic.name, value, key, on_delivery=told, timestamp=time_ms, headers=headers)
            except BufferError:
                # which waits for room
                self._producer.produce(topic.name, value, key, timestamp=time_ms, headers=headers)

    def _told(self, error: KafkaError | None, message: Message) -> None:
        """Quix is to know what was refused; the places of what was written it needs of its changelogs only."""
        if error is not None:
            self._producer._on_delivery(error, message)

    def commit(self) -> None:
        """Commit what was handled so far; a record that is being handled is not part of it."""
        self._processing_context.commit_checkpoint(force=True)


def assigned(app: Application, topic: str) -> list[TopicPartition]:
    """The partitions of `topic` that this worker has, with the place up to which it has read.

    None while it restores its state. Quix itself does not tell.
    """
    if app._state_manager.recovery_required:
        return []
    return app._consumer.position([place for place in app._consumer.assignment() if place.topic == topic])
