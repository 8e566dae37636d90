"""Quix Streams, imported in one place: it drags in authlib, which insists on a warning that nobody here can act on."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from authlib.deprecate import AuthlibDeprecationWarning
from confluent_kafka import TopicPartition

from streams.records import Outgoing

# authlib shows its warning whatever the filters say, unless one comes after its own.
warnings.filterwarnings("ignore", category=AuthlibDeprecationWarning)

from quixstreams import Application as PlainApplication  # noqa: E402 - after the filter
from quixstreams import message_context  # noqa: E402
from quixstreams.models.serializers.base import Serializer  # noqa: E402
from quixstreams.models.serializers.simple_types import BytesSerializer  # noqa: E402
from quixstreams.processing import ProcessingContext  # noqa: E402

__all__ = [
    "Application",
    "BytesSerializer",
    "PlainApplication",
    "Serializer",
    "assigned",
    "message_context",
]

POLL_S, IDLE_POLL_S = 0.02, 0.2
"""How long to wait for a record: while something is to be committed, and while nothing is."""
COMMIT_SOON_S = 0.1
COMMIT_LATE_S = 1.0
BEHIND_MS = 1_000
"""A worker that handles records older than this is behind: to catch up counts for more than a few milliseconds."""


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
    """Commits as soon as there is nothing more to read, and under load by the age of what it reads.

    A commit waits for the broker as long as a hundred facts take to decide: under load it should come seldom, and
    otherwise at once. Quix itself commits by the clock alone.
    """

    _processing_context: _Context

    def __init__(self, before_commit: Callable[[], None], **settings: Any) -> None:
        """`before_commit` is called before every commit that has something to commit."""
        super().__init__(commit_interval=COMMIT_LATE_S, consumer_poll_timeout=POLL_S, **settings)
        self._when_open = self._config
        self._when_idle = self._config.model_copy(update={"consumer_poll_timeout": IDLE_POLL_S})
        given = self._processing_context
        self._processing_context = _Context(
            **{field.name: getattr(given, field.name) for field in fields(given) if field.init}
        )
        self._processing_context.before_commit = before_commit
        self.recorded_ms = 0
        """When the record that is handled was written; the handler says so."""

    def _process_message(self, dataframe_composed: Any) -> None:
        checkpoint = self._processing_context.checkpoint
        before = checkpoint._total_offsets_processed
        self._config = self._when_idle if checkpoint.empty() else self._when_open
        super()._process_message(dataframe_composed)  # type: ignore[no-untyped-call]
        checkpoint = self._processing_context.checkpoint
        if checkpoint.empty():
            return
        open_s, age_ms = time.monotonic() - checkpoint._created_at, time.time() * 1000 - self.recorded_ms
        if checkpoint._total_offsets_processed == before or is_due(open_s, age_ms):
            self.commit()

    def write(self, record: Outgoing, time_ms: int) -> None:
        """Write a record in the open transaction: at half the time that Quix takes for one that comes as a value."""
        self._producer.produce(record.topic.name, record.value, record.key, record.headers, timestamp=time_ms)

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
