"""The decider, told the lines of the published cases one by one, names the same kinds as diagnose."""

from __future__ import annotations

import json
from typing import Any

import pytest

from schemas.decisions import AdviceIssued, AttributionMade
from schemas.vocabulary import AttemptState
from streams.watch.whose.origin import named_nodes, origin_of
from tests.decide.story import Story
from tests.watch.parts import matcher
from tests.watch.test_cases_score import DATA

# Two are logs of more than one run, of which the decider is told one attempt each; two have no line of a fault.
ELSEWHERE = {"host_oom-003", "node_lost-002", "hang_no_log-001", "straggler-002"}


def cases(*, silent: bool) -> list[dict[str, Any]]:
    known = [json.loads(text) for text in (DATA / "cases.jsonl").read_text(encoding="utf-8").splitlines()]
    return [
        one
        for one in known
        if one["decidable"] and (one["accept_actions"] == ["ignore"]) is silent and one["id"] not in ELSEWHERE
    ]


def told(case: dict[str, Any]) -> Story:
    """A running attempt of which watch tells what it found in the case's lines."""
    block = "".join(f"{line}\n" for line in case["symptom_lines"]).encode()
    nodes = tuple(dict.fromkeys(node for line in block.split(b"\n") for node in named_nodes(line))) or ("node1",)
    story = Story()
    story.observe(AttemptState.RUNNING, nodes=nodes)
    for found in matcher().scan(block):
        story.now_ms += 10
        if found.fault is not None:
            kind = found.fault.signature
            story.line(
                found.line.decode("utf-8", "replace"),
                node=found.fault.node if found.fault.node in nodes else origin_of(found.line, nodes).node,
                fault_class=kind.fault_class,
                scope=kind.scope,
                remedy=kind.remedy,
                role=kind.role,
                precedence=kind.precedence,
                peer=found.fault.peer,
                blamed_rank=found.fault.blamed_rank,
                sequence=found.fault.sequence,
                signature=kind.id,
            )
        if found.progress is not None:
            story.progress(found.progress.step, loss=found.progress.loss(found.line))
        if found.phase is not None:
            story.enter(found.phase)
    story.wait(2)
    return story


@pytest.mark.parametrize("case", cases(silent=False), ids=lambda case: case["id"])
def test_a_failed_attempt_is_attributed_to_an_accepted_kind(case: dict[str, Any]) -> None:
    story = told(case)
    nodes = story.state.attempts[0].nodes if story.state is not None else ()
    story.observe(AttemptState.FAILED, nodes=nodes)
    story.wait(600)
    made = story.events(AttributionMade)[-1]
    assert made.fault_class in case["accept_classes"]
    assert made.remedy in case["accept_actions"] or (made.remedy == "restart" and len(nodes) > 1)


@pytest.mark.parametrize("case", cases(silent=True), ids=lambda case: case["id"])
def test_an_attempt_that_completes_is_never_advised_for_what_looks_like_a_fault(case: dict[str, Any]) -> None:
    story = told(case)
    story.observe(AttemptState.COMPLETED)
    story.wait(60)
    assert story.events(AdviceIssued) == []
