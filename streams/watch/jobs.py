"""The views of jobs and the positions of sources, as Kafka has them."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Mapping
from typing import TypeVar

import structlog
from confluent_kafka import Message

from schemas.bookkeeping import SourceRead
from schemas.codec import Codec, UnreadableRecord
from schemas.decisions import JobView
from schemas.topics import JOBS, POSITIONS
from streams.kafka import TopicView, decode, place, reader
from streams.watch.whose.claims import Claim, claims_of

log = structlog.get_logger(__name__)

T = TypeVar("T")

FRESH_S = 1.0
"""Less than a restart takes: Slurm alone needs longer to start a requeued job."""
CATCH_UP_S = 10.0


class Jobs:
    """Follows `recovery.jobs`: what is claimed of which path. Not thread-safe."""

    def __init__(self, bootstrap: str, codec: Codec) -> None:
        self._codec = codec
        self._views: dict[str, JobView] = {}
        self._changed = True
        self._claims: Mapping[str, Claim] = {}
        self._looked_s = -math.inf
        self.version = 0
        """Rises with every change of the views."""
        self._consumer = reader(bootstrap, "recovery-watch-jobs")
        self._topic = TopicView(self._consumer, (JOBS,), self._take, reader="recovery-watch")

    def read_to_stable_end(self) -> int:
        """Read all views that there are and return how many. Raises KafkaUnavailable."""
        self._topic.read_to_stable_end()
        return len(self._views)

    def claims(self) -> Mapping[str, Claim]:
        """Take the news that has come and return the claim on each path.

        It does not wait, unless nobody looked for a while (this process was stopped, a file system or Kafka hung): a
        later attempt may have begun since, whose lines would be taken for its predecessor's. Then all news is read
        first. Raises KafkaUnavailable: nothing should be read by what was known before.
        """
        if self.old:
            self._topic.read_to_stable_end(timeout_s=CATCH_UP_S)
        else:
            self._topic.poll(0)
        self._looked_s = time.monotonic()
        if self._changed:
            self._claims, self._changed = claims_of(self._views.values()), False
        return self._claims

    @property
    def old(self) -> bool:
        """Whether what `claims` returned last is too old to tell whose line is read now."""
        return time.monotonic() - self._looked_s > FRESH_S

    @property
    def views(self) -> Collection[JobView]:
        """The views of all jobs that are not closed, as they are now."""
        return self._views.values()

    def close(self) -> None:
        self._consumer.close()

    def _take(self, message: Message) -> None:
        key = _key(message)
        view = _event(self._codec, message, JobView)
        if view is None or view.closed:
            self._views.pop(key, None)
        else:
            self._views[key] = view
        self._changed = True
        self.version += 1


def read_positions(bootstrap: str, codec: Codec) -> dict[str, SourceRead]:
    """Return the last position of each source. Raises KafkaUnavailable."""
    positions: dict[str, SourceRead] = {}

    def take(message: Message) -> None:
        read = _event(codec, message, SourceRead)
        if read is not None:
            positions[_key(message)] = read
        elif message.value() is None:
            positions.pop(_key(message), None)

    consumer = reader(bootstrap, "recovery-watch-positions")
    try:
        TopicView(consumer, (POSITIONS,), take).read_to_stable_end()
    finally:
        consumer.close()
    return positions


def _event(codec: Codec, message: Message, kind: type[T]) -> T | None:
    """The event in a message; None for a tombstone, and for bytes that can't be read (the next record replaces them).

    Raises UnknownSchema: this code is too old to know what to follow.
    """
    if message.value() is None:
        return None
    try:
        event = decode(codec, message)
    except UnreadableRecord as error:
        log.error("unreadable record", record=place(message), error=str(error), next="wait for the next of its key")
        return None
    return event if isinstance(event, kind) else None


def _key(message: Message) -> str:
    return (message.key() or b"").decode("utf-8", "replace")
