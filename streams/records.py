"""Kafka records as the shells of deciders, relay and ask pass them around."""

from __future__ import annotations

from dataclasses import dataclass

from schemas.codec import Headers
from schemas.topics import Topic


@dataclass(frozen=True)
class Incoming:
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


@dataclass(frozen=True)
class Outgoing:
    """A record to write. A value of None is a tombstone."""

    topic: Topic
    key: bytes
    value: bytes | None
    headers: Headers
