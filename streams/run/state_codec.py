"""The decider's state as bytes: a version byte and Avro, so that a state written by an older class is still read."""

from __future__ import annotations

import io
import json
from functools import cache
from importlib.resources import files
from typing import Any, cast

from fastavro import parse_schema, schemaless_reader, schemaless_writer

from schemas.catalogue import canonical
from schemas.records import from_avro, schema_of, to_avro
from streams.decide.state import STATE_VERSION, JobState


class UnknownState(LookupError):
    """State of a version that this code does not have: upgrade it; a state is never guessed."""


def state_schema_text() -> str:
    """The schema that the state class gives now, as it is committed under `states/`."""
    return canonical(schema_of(JobState))


@cache
def _schemas() -> dict[int, Any]:
    folder = files("streams.run") / "states"
    return {
        int(entry.name.removesuffix(".avsc")): parse_schema(json.loads(entry.read_text()))
        for entry in folder.iterdir()
        if entry.name.endswith(".avsc")
    }


def dump(state: JobState) -> bytes:
    """Return the state's bytes."""
    buffer = io.BytesIO()
    buffer.write(bytes([STATE_VERSION]))
    schemaless_writer(buffer, _schemas()[STATE_VERSION], to_avro(JobState)(state))
    return buffer.getvalue()


def load(data: bytes) -> JobState:
    """Return the state in `data`. Raises UnknownState."""
    written = _schemas().get(data[0])
    if written is None:
        raise UnknownState(f"state version {data[0]}; this code reads {sorted(_schemas())}")
    newest = _schemas()[STATE_VERSION]
    stream = io.BytesIO(data)
    stream.seek(1)
    record = schemaless_reader(stream, written, newest if written is not newest else None)
    return cast(JobState, from_avro(JobState)(cast(dict[str, Any], record)))
