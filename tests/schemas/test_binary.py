"""The bytes that we write are fastavro's, whatever is in an event and whatever parts of it were written before."""

from __future__ import annotations

import io
from dataclasses import asdict
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_writer
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.binary import Writer, long
from schemas.catalogue import EVENTS
from schemas.decisions import Advice
from schemas.frozen import replace
from schemas.identity import AttemptId
from schemas.records import schema_of
from tests.any_event import any_of

WRITERS = {cls: Writer(cls) for cls in EVENTS.values()}
SCHEMAS = {cls: parse_schema(schema_of(cls)) for cls in EVENTS.values()}


def fastavros(event: Any) -> bytes:
    buffer = io.BytesIO()
    schemaless_writer(buffer, SCHEMAS[type(event)], _lists(asdict(event)))
    return buffer.getvalue()


def _lists(value: Any) -> Any:
    """Tuples as lists: in a union fastavro takes a tuple for (type, value)."""
    if isinstance(value, dict):
        return {name: _lists(inner) for name, inner in value.items()}
    return [_lists(inner) for inner in value] if isinstance(value, list | tuple) else value


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(EVENTS)).flatmap(lambda name: any_of(EVENTS[name])))
def test_an_event_has_fastavros_bytes(event: Any) -> None:
    assert WRITERS[type(event)](event) == fastavros(event)


@settings(max_examples=50, deadline=None)
@given(st.lists(any_of(Advice), min_size=1, max_size=4), st.integers(0, 100))
def test_a_part_that_is_kept_is_never_taken_for_another(advice: list[Advice], index: int) -> None:
    keeping = Writer(Advice, frozenset({AttemptId}))
    for one in (*advice, *advice):
        assert keeping(one) == WRITERS[Advice](one)
        other = replace(one, attempt=replace(one.attempt, index=index))
        assert keeping(other) == WRITERS[Advice](other)


@pytest.mark.parametrize("number", [1 << 63, -(1 << 63) - 1])
def test_a_number_that_does_not_fit_is_refused(number: int) -> None:
    with pytest.raises(OverflowError, match=str(number)):
        long(number)
