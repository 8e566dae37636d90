"""The provider's language: what we ask, and what we believe of an answer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.decisions import RequestMade
from schemas.identity import AttemptId
from schemas.vocabulary import FaultClass, Scope
from streams.ask.attribution import NOTHING, Attribution, MalformedAnswer, question, read_answer
from tests.ask.provider import body, naming

REQUEST = RequestMade(
    "r",
    "c",
    AttemptId("local", "7", 1_700_000_000, 2),
    1_700_000_060_000,
    "incident",
    "nightly",
    ("node1", "node2"),
    FaultClass.NCCL_TIMEOUT,
    1_700_000_000_000,
    None,
    1_700_000_050_500,
    5000,
)


def test_the_question_has_the_public_shape() -> None:
    assert question(REQUEST) == {
        "schema_version": "0.1.0",
        "workload_id": REQUEST.attempt.heimdall_job_id,
        "scope": {
            "nodes": ["node1", "node2"],
            "ranks": [],
            "start_time": "2023-11-14T22:13:20.000+00:00",
            "end_time": "2023-11-14T22:14:10.500+00:00",
        },
        "failure_context": {"detected_at": "2023-11-14T22:14:10.500+00:00", "detection_signal": "CRASH"},
        "timeout_ms": 5000,
        "workload_context": {"workflow_id": "nightly", "attempt_index": 2, "job_end_time": None},
        "phase": "fast",
    }


def test_the_most_confident_attribution_counts() -> None:
    answer = body(naming("node1", 0.2), naming("node2", 0.9), naming("node1", 0.5))
    assert read_answer(answer, REQUEST) == Attribution(FaultClass.NVLINK, Scope.NODE, ("node2",), "A tray is bad.")


def test_an_empty_list_is_an_answer_that_names_nothing() -> None:
    assert read_answer(body(), REQUEST) == NOTHING


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("text", "no object"),
        (naming("node1", fault_class="gremlins"), "gremlins"),
        (naming("node1", scope="galaxy"), "galaxy"),
        (naming("node1", fault_class=None), "None"),
        (naming("node9"), "'node9' is none of the attempt's"),
        (naming("node1", nodes="node1"), "no list of names"),
        (naming("node1", nodes=[1]), "no list of names"),
        (naming("node1", explanation=None), "`explanation`"),
        (naming("node1", confidence=1.5), "`confidence`"),
        (naming("node1", confidence=float("nan")), "`confidence`"),
        (naming("node1", confidence=True), "`confidence`"),
        (naming("node1", confidence="high"), "`confidence`"),
    ],
)
def test_anything_else_is_malformed_even_beside_a_good_one(entry: Any, problem: str) -> None:
    with pytest.raises(MalformedAnswer, match=problem):
        read_answer(body(naming("node1"), entry), REQUEST)


@pytest.mark.parametrize("answer", [b"", b"<html>", b"[]", b"{}", b'{"attributions": {}}', b"\xff", b"[" * 100_000])
def test_what_is_no_list_of_attributions_is_malformed(answer: bytes) -> None:
    with pytest.raises(MalformedAnswer):
        read_answer(answer, REQUEST)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
ENTRY = st.fixed_dictionaries(
    {},
    optional={
        "fault_class": st.sampled_from(["nvlink", "x", None]),
        "scope": st.sampled_from(["node", 3]),
        "nodes": st.lists(st.sampled_from(["node1", "node2", "node3"]), max_size=2) | JSON,
        "explanation": JSON,
        "confidence": JSON,
    },
)


@given(st.lists(ENTRY | JSON, max_size=3) | JSON)
def test_no_answer_does_more_than_name_nodes_of_the_attempt_or_be_malformed(entries: Any) -> None:
    try:
        found = read_answer(json.dumps({"attributions": entries}).encode(), REQUEST)
    except MalformedAnswer:
        return
    assert set(found.nodes) <= set(REQUEST.nodes)
