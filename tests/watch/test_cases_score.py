"""Published failures and look-alikes, scored as a careful expert would: is the diagnosis among the answers accepted?

`cases.jsonl` and `reports.jsonl` are public reports, `kinds.jsonl` further wordings of the same kinds. What is scored
here is what decides: the decider weighs an incident's lines by the same rules.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from schemas.vocabulary import FaultClass, Remedy
from streams.diagnose.account import Account
from streams.diagnose.matching import general_matcher
from streams.diagnose.reading import Piece
from streams.diagnose.verdict import Diagnosis, conclude

DATA = Path(__file__).parent / "data"
NOW_MS = 1_785_578_400_000
FILES = ["cases.jsonl", "kinds.jsonl", "reports.jsonl"]
STOPS = {Remedy.TERMINATE_NO_RETRY, Remedy.RESTART_EXCLUDING_NODE}


@dataclass(frozen=True)
class Scored:
    """One case and what was said of it."""

    case: dict[str, Any]
    said: Diagnosis
    root: int | None
    """Index of the root line among the case's lines."""

    @property
    def right(self) -> dict[str, bool]:
        told = {
            "action": self.said.remedy in self.case["accept_actions"],
            "class": self.said.fault_class in self.case["accept_classes"],
            "scope": self.said.scope in self.case["accept_scopes"],
        }
        if self.case.get("root_line") is not None:
            told["root line"] = self.root == self.case["root_line"]
        return told

    def __str__(self) -> str:
        said = self.said
        wrong = [name for name, right in self.right.items() if not right]
        return (
            f"{self.case['id']}: {', '.join(wrong)} ({said.fault_class}, {said.scope}, {said.remedy}, line {self.root})"
        )


def diagnosed(lines: list[str]) -> Diagnosis:
    account = Account("log", NOW_MS)
    account.take(Piece("".join(f"{line}\n" for line in lines).encode(), 0, 1), general())
    account.end()
    return conclude([account])


@cache
def general() -> Any:
    return general_matcher()


@cache
def scored(file: str) -> tuple[Scored, ...]:
    found = []
    for text in (DATA / file).read_text(encoding="utf-8").splitlines():
        case = json.loads(text)
        said = diagnosed(case["symptom_lines"])
        owners = [number for number, line in enumerate(case["symptom_lines"]) for _ in line.split("\n")]
        found.append(Scored(case, said, None if said.root is None else owners[said.root.evidence.line_no - 1]))
    return tuple(found)


def decidable(file: str) -> list[Scored]:
    return [one for one in scored(file) if one.case["decidable"]]


def share(cases: list[Scored], what: str) -> float:
    told = [one.right[what] for one in cases if what in one.right]
    return sum(told) / len(told)


def table(cases: list[Scored]) -> str:
    """Labelled class by row, diagnosed class by column; what is accepted counts as the label."""
    counts = Counter(
        (one.case["fault_class"], one.case["fault_class"] if one.right["class"] else str(one.said.fault_class))
        for one in cases
    )
    rows = []
    for label in sorted({label for label, _said in counts}):
        told = ", ".join(f"{said} {count}" for (own, said), count in sorted(counts.items()) if own == label)
        rows.append(f"  {label:18} {told}")
    return "\n".join(rows)


@pytest.mark.parametrize("file", FILES)
def test_decidable_failures_are_judged_as_a_careful_expert_would(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    cases = decidable(file)
    with capsys.disabled():
        print(f"\n{file}: {len(cases)} decidable cases, labelled class and diagnosed class\n{table(cases)}")
        for one in cases:
            if not all(one.right.values()):
                print(f"  wrong: {one}")
    assert share(cases, "action") >= 0.97
    assert share(cases, "class") >= 0.95
    assert share(cases, "scope") >= 0.95
    assert share(cases, "root line") >= 0.95


@pytest.mark.parametrize("file", FILES)
def test_no_look_alike_is_taken_for_a_fault(file: str) -> None:
    silent = [one for one in decidable(file) if one.case["accept_actions"] == ["ignore"]]
    assert len(silent) > 10
    assert [str(one) for one in silent if one.said.remedy is not Remedy.IGNORE] == []


@pytest.mark.parametrize("file", FILES)
def test_a_run_is_stopped_only_where_a_stop_is_accepted(file: str) -> None:
    stopped = [one for one in decidable(file) if one.said.remedy is Remedy.TERMINATE_NO_RETRY]
    assert len(stopped) > 10
    assert [str(one) for one in stopped if not one.right["action"]] == []


def test_what_can_t_be_decided_is_never_stopped_and_excludes_no_node() -> None:
    unsure = [one for file in FILES for one in scored(file) if not one.case["decidable"]]
    assert len(unsure) > 5
    assert [str(one) for one in unsure if one.said.remedy in STOPS] == []


def test_what_is_said_is_of_the_public_vocabulary() -> None:
    for one in (one for file in FILES for one in scored(file)):
        assert one.said.fault_class is not FaultClass.UNKNOWN, one
        assert one.said.explanation
