"""What we write is what fastavro writes, whatever was written before."""

from __future__ import annotations

from dataclasses import dataclass, make_dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.binary import KEPT_PARTS, Writers
from schemas.catalogue import EVENTS
from schemas.codec import Codec, FixedIds
from schemas.decisions import Advice
from schemas.identity import AttemptId
from schemas.records import UnsupportedType
from schemas.vocabulary import AttemptState
from tests.any_event import any_of
from tests.fastavro_bytes import by_fastavro

CODEC = Codec(FixedIds())


@pytest.mark.parametrize("name", sorted(EVENTS))
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_every_event_has_the_bytes_that_fastavro_gives_it(name: str, data: st.DataObject) -> None:
    event = data.draw(any_of(EVENTS[name]))
    assert Writers().of(EVENTS[name])(event) == CODEC.payload(event) == by_fastavro(event)


@settings(max_examples=50, deadline=None)
@given(st.lists(any_of(Advice), min_size=1, max_size=4), st.integers(0, 100))
def test_a_part_that_is_kept_is_never_taken_for_another(advice: list[Advice], index: int) -> None:
    write = Writers(kept={AttemptId}).of(Advice)
    for one in (*advice, *advice):
        assert write(one) == by_fastavro(one)
        other = replace(one, attempt=replace(one.attempt, index=index))
        assert write(other) == by_fastavro(other)


def test_parts_are_forgotten_when_there_are_too_many_and_written_again() -> None:
    writers = Writers(kept={AttemptId})
    write = writers.of(_OfAnAttempt)
    for index in range(KEPT_PARTS + 10):
        one = _OfAnAttempt(AttemptId("c", "1", 1, index))
        assert write(one) == write(one) == by_fastavro(one)


@pytest.mark.parametrize("field", ["name", "nodes", "submit_time", "state", "attempt"])
def test_a_value_that_is_none_of_its_type_is_refused(field: str) -> None:
    moved = _Moved(AttemptId("c", "1", 1, 0), "train", 1_700_000_000, AttemptState.RUNNING, ("node1",))
    wrong: dict[str, Any] = {field: None}
    with pytest.raises((AttributeError, KeyError, TypeError)):
        Writers().of(_Moved)(replace(moved, **wrong))


@dataclass(frozen=True)
class _Moved:
    attempt: AttemptId
    name: str
    submit_time: int
    state: AttemptState
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class _OfAnAttempt:
    attempt: AttemptId


@pytest.mark.parametrize("kind", [int | str, list[int], tuple[int], tuple[int, str], dict[str, int], object])
def test_a_type_that_has_no_avro_form_is_refused_at_once(kind: Any) -> None:
    with pytest.raises(UnsupportedType, match="no Avro type"):
        Writers().of(make_dataclass("Odd", [("value", kind)], frozen=True))
