"""A decider's state as bytes: a version byte and Avro, so that a state written by an older class is still read."""

from __future__ import annotations

import io
import json
from functools import cached_property
from importlib.resources import files
from typing import Any, Generic, TypeVar, cast

from fastavro import parse_schema, schemaless_reader

from schemas.aps import Aps
from schemas.binary import Writers
from schemas.catalogue import canonical
from schemas.decisions import Advice
from schemas.identity import AttemptId
from schemas.records import from_avro, schema_of
from streams.decide.nodes import NODE_STATE_VERSION, NodeState
from streams.decide.state import STATE_VERSION, Attempt, Incident, JobState, Line

State = TypeVar("State")


KEPT = frozenset({Attempt, AttemptId, Incident, Line, Advice, Aps})
"""The parts of a state that a fact mostly leaves as they were: their bytes are kept."""


class UnknownState(LookupError):
    """State of a version that this code does not have: upgrade it; a state is never guessed."""


class StateCodec(Generic[State]):
    """The bytes of one state class. Its schemas are committed in the folder `folder` beside this module."""

    def __init__(self, cls: type[State], version: int, folder: str) -> None:
        self._cls: type = cls
        self._write = Writers(KEPT).of(cls)
        self._version = version
        self.folder = files("streams.run") / folder

    def schema_text(self) -> str:
        """The schema that the state class gives now, as it is committed under the newest version."""
        return canonical(schema_of(self._cls))

    def dump(self, state: State) -> bytes:
        """Return the state's bytes."""
        return bytes([self._version]) + self._write(state)

    def load(self, data: bytes) -> State:
        """Return the state in `data`. Raises UnknownState."""
        written = self._schemas.get(data[0])
        if written is None:
            raise UnknownState(f"state version {data[0]}; this code reads {sorted(self._schemas)}")
        newest = self._schemas[self._version]
        stream = io.BytesIO(data)
        stream.seek(1)
        try:
            record = schemaless_reader(stream, written, newest if written is not newest else None)
            return cast(State, from_avro(self._cls)(cast(dict[str, Any], record)))
        except (ValueError, EOFError, IndexError, TypeError, OverflowError, MemoryError, KeyError) as error:
            raise UnknownState(
                f"state of version {data[0]} that its schema can't read ({error!r}): another code wrote it under the"
                " same number; run that code, or start anew with another data folder"
            ) from error

    @cached_property
    def _schemas(self) -> dict[int, Any]:
        return {
            int(entry.name.removesuffix(".avsc")): parse_schema(json.loads(entry.read_text()))
            for entry in self.folder.iterdir()
            if entry.name.endswith(".avsc")
        }


JOB_STATES = StateCodec(JobState, STATE_VERSION, "states")
NODE_STATES = StateCodec(NodeState, NODE_STATE_VERSION, "node_states")
