"""The decider's state survives as bytes, and a version that nobody knows stops the worker."""

from __future__ import annotations

from importlib.resources import files

import pytest
from hypothesis import given, settings

from streams.decide.state import STATE_VERSION
from streams.run.state_codec import UnknownState, dump, load, state_schema_text
from tests.decide.test_any_history import histories, told


def test_the_newest_committed_schema_is_what_the_state_class_gives() -> None:
    committed = (files("streams.run") / "states" / f"{STATE_VERSION}.avsc").read_text()
    assert committed == state_schema_text(), "raise STATE_VERSION and commit its schema under streams/run/states"


@settings(max_examples=40, deadline=None)
@given(histories)
def test_any_state_comes_back_as_it_was(history: list[tuple[object, ...]]) -> None:
    state = told(history).state
    assert state is not None
    assert load(dump(state)) == state


def test_an_unknown_version_is_said_not_guessed() -> None:
    with pytest.raises(UnknownState, match="version 200"):
        load(bytes([200]) + b"anything")
