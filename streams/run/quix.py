"""Quix Streams, imported in one place: it drags in authlib, which insists on a warning that nobody here can act on."""

from __future__ import annotations

import warnings

from authlib.deprecate import AuthlibDeprecationWarning
from confluent_kafka import TopicPartition

# authlib shows its warning whatever the filters say, unless one comes after its own.
warnings.filterwarnings("ignore", category=AuthlibDeprecationWarning)

from quixstreams import Application, message_context  # noqa: E402 - after the filter
from quixstreams.models import Topic as QuixTopic  # noqa: E402
from quixstreams.models.serializers.base import Serializer  # noqa: E402
from quixstreams.models.serializers.simple_types import BytesSerializer  # noqa: E402

__all__ = ["Application", "BytesSerializer", "QuixTopic", "Serializer", "assigned", "message_context"]


def assigned(app: Application, topic: str) -> list[TopicPartition]:
    """The partitions of `topic` that this worker has, with the place up to which it has read.

    None while it restores its state. Quix itself does not tell.
    """
    if app._state_manager.recovery_required:
        return []
    return app._consumer.position([place for place in app._consumer.assignment() if place.topic == topic])
