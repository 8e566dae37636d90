"""Quix Streams, imported in one place: it drags in authlib, which insists on a warning that nobody here can act on."""

from __future__ import annotations

import warnings
from typing import Any

from authlib.deprecate import AuthlibDeprecationWarning
from confluent_kafka import TopicPartition

# authlib shows its warning whatever the filters say, unless one comes after its own.
warnings.filterwarnings("ignore", category=AuthlibDeprecationWarning)

from quixstreams import Application as PlainApplication  # noqa: E402 - after the filter
from quixstreams import message_context  # noqa: E402
from quixstreams.models import Topic as QuixTopic  # noqa: E402
from quixstreams.models.serializers.base import Serializer  # noqa: E402
from quixstreams.models.serializers.simple_types import BytesSerializer  # noqa: E402

__all__ = [
    "Application",
    "BytesSerializer",
    "PlainApplication",
    "QuixTopic",
    "Serializer",
    "assigned",
    "message_context",
]


class Application(PlainApplication):
    """Commits as soon as there is nothing more to read, and at the latest after its commit interval.

    A commit waits for the broker as long as a hundred facts take to decide: under load it should come seldom, and
    otherwise at once. Quix itself commits by the clock alone.
    """

    def _process_message(self, dataframe_composed: Any) -> None:
        before = self._processing_context.checkpoint._total_offsets_processed
        super()._process_message(dataframe_composed)  # type: ignore[no-untyped-call]
        checkpoint = self._processing_context.checkpoint
        if checkpoint._total_offsets_processed == before and not checkpoint.empty():
            self.commit()

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
