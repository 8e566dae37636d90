"""Kafka records as the shells of deciders, relay and ask pass them around.

Named tuples, for several are made of each record that is read: a frozen dataclass takes five times as long to make.
"""

from __future__ import annotations

from typing import NamedTuple

from schemas.codec import Headers
from schemas.topics import Topic


class Incoming(NamedTuple):
    """A record that was read, as it is."""

    topic: str
    partition: int
    offset: int
    key: bytes
    value: bytes | None
    headers: Headers
    recorded_ms: int

    @property
    def place(self) -> str:
        return f"{self.topic}/{self.partition}/{self.offset}"


class Outgoing(NamedTuple):
    """A record to write. A value of None is a tombstone."""

    topic: Topic
    key: bytes
    value: bytes | None
    headers: Headers
