"""Frozen dataclasses, copied at the speed of a dict."""

from __future__ import annotations

import dataclasses

import pytest

from schemas.frozen import build, replace
from schemas.identity import AttemptId, Position

ATTEMPT = AttemptId("local", "7", 1_700_000_000, 0)


def test_a_copy_is_what_dataclasses_would_give() -> None:
    position = Position("file:/a", 0, 10)
    assert replace(position, offset=20) == dataclasses.replace(position, offset=20) == Position("file:/a", 0, 20)
    assert hash(replace(position, offset=20)) == hash(Position("file:/a", 0, 20))
    assert position.offset == 10


def test_a_copy_is_as_frozen_as_its_original() -> None:
    copy = replace(ATTEMPT, index=1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        copy.index = 2  # type: ignore[misc]


def test_what_a_cached_property_holds_does_not_go_along() -> None:
    attempt = replace(ATTEMPT, index=3)
    assert attempt.key == "local/7@1700000000/3"
    assert replace(attempt, index=4).key == "local/7@1700000000/4"
    assert replace(attempt, index=4).heimdall_job_id != attempt.heimdall_job_id


def test_a_change_of_no_field_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match="speed"):
        replace(ATTEMPT, speed=3)  # type: ignore[call-arg]


def test_building_from_values_gives_the_same_object() -> None:
    assert build(AttemptId, dataclasses.asdict(ATTEMPT)) == ATTEMPT
