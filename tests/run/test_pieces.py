"""A state written piece by piece has the bytes that fastavro gives for it as a whole, whatever was written before."""

from __future__ import annotations

import io
from dataclasses import replace
from functools import cache
from typing import Any

from fastavro import parse_schema, schemaless_writer
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.decisions import Advice
from schemas.identity import AttemptId
from schemas.records import schema_of, to_avro
from streams.decide.state import JobState
from streams.run.pieces import Pieces
from streams.run.state_codec import KEPT, STEADY
from tests.any_event import any_of
from tests.decide.test_any_history import histories, told


@cache
def schema(cls: type) -> Any:
    return parse_schema(schema_of(cls))


def whole(cls: type, instance: Any) -> bytes:
    buffer = io.BytesIO()
    schemaless_writer(buffer, schema(cls), to_avro(cls)(instance))
    return buffer.getvalue()


@settings(max_examples=30, deadline=None)
@given(histories)
def test_a_states_pieces_in_a_row_are_the_state(history: list[tuple[object, ...]]) -> None:
    pieces = Pieces(JobState, KEPT, STEADY)
    story = told(history)
    assert story.state is not None
    for state in (story.state, replace(story.state, now_ms=1), story.state):
        assert pieces(state) == whole(JobState, state)


@settings(max_examples=50, deadline=None)
@given(st.lists(any_of(Advice), min_size=1, max_size=4), st.integers(0, 100))
def test_a_part_that_is_kept_is_never_taken_for_another(advice: list[Advice], index: int) -> None:
    pieces = Pieces(Advice, frozenset({AttemptId}), {Advice: frozenset({"reason", "explanation"})})
    for one in (*advice, *advice):
        assert pieces(one) == whole(Advice, one)
        other = replace(one, attempt=replace(one.attempt, index=index))
        assert pieces(other) == whole(Advice, other)
