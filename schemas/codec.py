"""Events to bytes and back: Confluent's wire format, CloudEvents headers, and the schema's fingerprint.

The registry is asked once, at start-up, for the id of each schema; the fingerprint header lets the committed schemas
read any record alone, so history outlives the registry.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha256
from typing import Any, NamedTuple, Protocol, cast

from fastavro import parse_schema, schemaless_reader

from schemas.aps import Aps
from schemas.binary import Write, Writers
from schemas.catalogue import EVENTS, SchemaVersion, committed, current_text
from schemas.identity import AttemptId
from schemas.records import Convert, from_avro

Header = tuple[str, bytes]
Headers = list[Header]
MAGIC = b"\x00"
PREFIX = struct.Struct(">bI")
FINGERPRINT = "schema_fingerprint"
SPECVERSION: Header = ("ce_specversion", b"1.0")


class UnreadableRecord(ValueError):
    """Bytes that are no event of ours; the message says which part can't be read."""


class UnknownSchema(LookupError):
    """A record was written with a schema that this code does not have: upgrade it; never guess."""


class SchemaDrift(RuntimeError):
    """A class has changed without a new schema."""


class SchemaIds(Protocol):
    """Gives the registry's id of a committed schema."""

    def id_of(self, version: SchemaVersion) -> int: ...

    def fingerprint_of(self, schema_id: int) -> str | None:
        """The fingerprint of the committed schema with this id; None if it has another, unknown schema."""
        ...


class FixedIds:
    """Ids without a registry, for exports and for tests: numbered in catalogue order from 1."""

    def __init__(self) -> None:
        versions = [version for history in committed().values() for version in history]
        self._ids = {version.fingerprint: number for number, version in enumerate(versions, start=1)}
        self._fingerprints = {number: fingerprint for fingerprint, number in self._ids.items()}

    def id_of(self, version: SchemaVersion) -> int:
        return self._ids[version.fingerprint]

    def fingerprint_of(self, schema_id: int) -> str | None:
        return self._fingerprints.get(schema_id)


class Encoded(NamedTuple):
    """An event ready for Kafka."""

    value: bytes
    headers: Headers


@dataclass(frozen=True)
class _Written:
    """How the events of one class are written."""

    prefix: bytes
    write: Write
    type_header: Header
    fingerprint_header: Header


class Codec:
    """Encodes and decodes every event of the catalogue. Safe to share between threads."""

    def __init__(self, ids: SchemaIds) -> None:
        """Raise SchemaDrift where a class is not what its newest committed schema says: it would be written wrongly."""
        self._ids = ids
        self._writers: dict[type, _Written] = {}
        self._readers: dict[bytes, tuple[type, Convert, Any, Any]] = {}
        writers = Writers(kept={AttemptId, Aps})
        for name, history in committed().items():
            cls = EVENTS[name]
            if history[-1].text != current_text(name):
                raise SchemaDrift(f"{name} is not what schemas/avro/{name} says: commit its schema with a new number")
            parsed = [parse_schema(version.schema) for version in history]
            newest = parsed[-1]
            for version, schema in zip(history, parsed, strict=True):
                # fastavro would compare two schemas deeply, at each record.
                self._readers[version.fingerprint.encode()] = (
                    cls,
                    from_avro(cls),
                    schema,
                    None if schema is newest else newest,
                )
            prefix = PREFIX.pack(0, ids.id_of(history[-1]))
            self._writers[cls] = _Written(
                prefix,
                writers.of(cls),
                ("ce_type", f"recovery.{name}".encode()),
                (FINGERPRINT, history[-1].fingerprint.encode()),
            )

    def encode(self, event: Any, *, source: str, time_ms: int, subject: str, traceparent: str | None = None) -> Encoded:
        """Return the record value and headers of an event. Raises LookupError for a class outside the catalogue."""
        written = self._writers[type(event)]
        headers: Headers = [
            SPECVERSION,
            ("ce_id", event.event_id.encode()),
            written.type_header,
            ("ce_source", source.encode()),
            _time_header(time_ms),
            ("ce_subject", subject.encode()),
            ("traceparent", (traceparent or traceparent_of(event)).encode()),
            written.fingerprint_header,
        ]
        return Encoded(self.encode_value(event), headers)

    def encode_value(self, event: Any) -> bytes:
        """Return the record value alone."""
        written = self._writers[type(event)]
        return written.prefix + written.write(event)

    def payload(self, event: Any) -> bytes:
        """The Avro payload without the registry's id: what a replay compares byte for byte."""
        return self._writers[type(event)].write(event)

    def decode(self, value: bytes, headers: Sequence[tuple[str, bytes | None]] | None = None) -> Any:
        """Return the event in a record value. Raises UnreadableRecord and UnknownSchema."""
        if len(value) < PREFIX.size or value[:1] != MAGIC:
            raise UnreadableRecord("not Confluent's wire format: it starts with a zero byte and a schema id")
        fingerprint = _fingerprint(headers)
        if fingerprint is None:
            schema_id = cast(int, PREFIX.unpack_from(value)[1])
            known = self._ids.fingerprint_of(schema_id)
            if known is None:
                raise UnknownSchema(f"schema id {schema_id} is none of the committed schemas")
            fingerprint = known.encode()
        reader = self._readers.get(fingerprint)
        if reader is None:
            raise UnknownSchema(
                f"schema fingerprint {fingerprint.decode('ascii', 'replace')} is none of the committed schemas"
            )
        cls, convert, written, into = reader
        stream = io.BytesIO(value)
        stream.seek(PREFIX.size)
        try:
            record = schemaless_reader(stream, written, into)
            event = convert(cast(dict[str, Any], record))
        except (ValueError, EOFError, IndexError, TypeError, OverflowError, MemoryError, KeyError) as error:
            raise UnreadableRecord(f"{cls.__name__}: {error!r}") from error
        if stream.read(1):
            raise UnreadableRecord(f"{cls.__name__}: bytes are left after the record")
        return event


def _fingerprint(headers: Sequence[tuple[str, bytes | None]] | None) -> bytes | None:
    for name, value in reversed(headers or ()):  # where we write it last
        if name == FINGERPRINT and value is not None:
            return value
    return None


@lru_cache(maxsize=1024)
def _time_header(time_ms: int) -> Header:
    """The time as CloudEvents has it; all that is concluded from one fact has the same."""
    return "ce_time", datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds").encode()


def traceparent_of(event: Any) -> str:
    """A W3C trace context derived from the attempt, so that all of one recovery is one trace."""
    attempt = getattr(event, "attempt", None)
    if attempt is not None:
        trace = _trace_id(attempt.cluster, attempt.job_id, attempt.incarnation)
    else:
        trace = _trace_id(getattr(event, "cluster", ""), getattr(event, "job_id", ""))
    return f"00-{trace}-{event.event_id.replace('-', '')[:16]}-01"


@lru_cache(maxsize=4096)
def _trace_id(cluster: str, job_id: str, incarnation: int | None = None) -> str:
    name = f"{cluster}/{job_id}" if incarnation is None else f"{cluster}/{job_id}@{incarnation}"
    return sha256(name.encode()).hexdigest()[:32]
