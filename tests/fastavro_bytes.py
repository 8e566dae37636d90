"""What fastavro makes of an event or a state: ours must write the same."""

from __future__ import annotations

import io
from functools import cache
from typing import Any

from fastavro import parse_schema, schemaless_writer

from schemas.records import schema_of, to_document


@cache
def _schema(cls: type) -> Any:
    return parse_schema(schema_of(cls))


def by_fastavro(instance: Any) -> bytes:
    """Return the bytes of an instance of a class that has an Avro schema."""
    cls: type = type(instance)
    buffer = io.BytesIO()
    schemaless_writer(buffer, _schema(cls), to_document(cls)(instance))
    return buffer.getvalue()
