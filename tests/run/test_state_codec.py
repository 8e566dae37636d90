"""The decider's state survives as bytes, and a version that nobody knows stops the worker."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings

from streams.decide.nodes import NODE_STATE_VERSION
from streams.decide.state import STATE_VERSION
from streams.run.state_codec import JOB_STATES, NODE_STATES, StateCodec, UnknownState
from tests.corpus.make_states import CORPUS, SAMPLES
from tests.corpus.written import as_written
from tests.decide.test_any_history import histories, told
from tests.decide.test_nodes import Nodes, came, fault, went
from tests.fastavro_bytes import by_fastavro


@pytest.mark.parametrize(("states", "version"), [(JOB_STATES, STATE_VERSION), (NODE_STATES, NODE_STATE_VERSION)])
def test_the_newest_committed_schema_is_what_the_state_class_gives(states: StateCodec[Any], version: int) -> None:
    committed = (states.folder / f"{version}.avsc").read_text()
    assert committed == states.schema_text(), f"raise the version and commit its schema in {states.folder}"


@settings(max_examples=40, deadline=None)
@given(histories)
def test_any_state_comes_back_as_it_was(history: list[tuple[object, ...]]) -> None:
    state = told(history).state
    assert state is not None
    for one in (state, replace(state, now_ms=1), state):  # parts of it keep their bytes
        data = JOB_STATES.dump(one)
        assert data[1:] == by_fastavro(one)
        assert JOB_STATES.load(data) == one


def test_a_nodes_state_comes_back_as_it_was() -> None:
    nodes = Nodes()
    nodes.take(fault(1, 5_000), came(1, 0), came(2, 0), went(2, 0, 9_000))
    state = nodes.states["node1"]
    data = NODE_STATES.dump(state)
    assert data[1:] == by_fastavro(state)
    assert NODE_STATES.load(data) == state


def test_the_committed_bytes_of_each_version_are_still_read() -> None:
    seen = set()
    for line in CORPUS.read_text().splitlines():
        entry = json.loads(line)
        states, _, _ = SAMPLES[entry["kind"]]
        schema = json.loads((states.folder / f"{entry['version']}.avsc").read_text())
        assert as_written(states.load(bytes.fromhex(entry["bytes"])), schema) == entry["state"]
        seen.add((entry["kind"], entry["version"]))
    assert seen == {("job", n) for n in range(1, STATE_VERSION + 1)} | {
        ("node", n) for n in range(1, NODE_STATE_VERSION + 1)
    }


def test_bytes_that_another_code_wrote_under_this_version_are_refused_in_words() -> None:
    with pytest.raises(UnknownState, match="another code wrote it"):
        JOB_STATES.load(bytes([STATE_VERSION]) + b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")


def test_an_unknown_version_is_said_not_guessed() -> None:
    with pytest.raises(UnknownState, match="version 200"):
        JOB_STATES.load(bytes([200]) + b"anything")
