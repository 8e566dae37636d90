"""What watch says when a decider asks whether a silent attempt still prints."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from schemas.decisions import OutputAsked
from schemas.identity import Position
from streams.watch.answers import StoreSaid, answer
from tests.watch.parts import T0, attempt

AT = Position("topic:recovery.requests/0", 0, 5)
BUDGET_MS = 840_000


def asked(*paths: Path) -> OutputAsked:
    return OutputAsked("question", "", attempt(0), T0, tuple(map(str, paths)), T0, T0, BUDGET_MS)


def written(path: Path, at_ms: int) -> Path:
    path.write_text("x\n")
    os.utime(path, ns=(at_ms * 1_000_000, at_ms * 1_000_000))
    return path


def test_the_newest_of_the_attempts_files_counts(tmp_path: Path) -> None:
    old, new = written(tmp_path / "a.out", T0), written(tmp_path / "a.err", T0 + 5_000)
    checked = answer(asked(old, new), AT, lambda _: None, T0 + 60_000)
    assert checked.last_output_ms == T0 + 5_000
    assert checked.error is None
    assert checked.cause == "question"


def test_growth_that_was_seen_counts_where_the_files_clock_is_behind(tmp_path: Path) -> None:
    path = written(tmp_path / "a.out", T0)
    assert answer(asked(path), AT, lambda _: T0 + 50_000, T0 + 60_000).last_output_ms == T0 + 50_000


def test_a_file_that_is_not_there_is_an_error_not_silence(tmp_path: Path) -> None:
    checked = answer(asked(tmp_path / "nowhere.out"), AT, lambda _: None, T0)
    assert checked.last_output_ms is None
    assert checked.error is not None
    assert "nowhere.out" in checked.error


def test_one_readable_file_is_enough_to_see_output(tmp_path: Path) -> None:
    path = written(tmp_path / "a.out", T0)
    checked = answer(asked(tmp_path / "nowhere.out", path), AT, lambda _: None, T0)
    assert checked.last_output_ms == T0
    assert checked.error is None


def test_a_file_that_is_silent_proves_nothing_while_another_is_not_seen(tmp_path: Path) -> None:
    path = written(tmp_path / "a.out", T0)
    checked = answer(asked(tmp_path / "nowhere.err", path), AT, lambda _: None, T0 + BUDGET_MS)
    assert checked.error is not None
    assert "nowhere.err" in checked.error


DOWN = StoreSaid("loki:main", None, 60_000, "loki:main did not answer within 30 s")
DEAD = StoreSaid("loki:main", None, 60_000, "its collector may have died", dead=True)
HALF = StoreSaid("loki:main", T0, 60_000, "loki:main gave too much to look at all of it")
EMPTY = StoreSaid("loki:main", None, 60_000, "loki:main has no line of this attempt", empty=True)
SILENT = StoreSaid("loki:main", T0, 60_000, "")


@pytest.mark.parametrize("store", [DOWN, DEAD, HALF], ids=["down", "dead collector", "half an answer"])
def test_a_file_that_is_silent_proves_nothing_while_a_store_is_not_seen(store: StoreSaid, tmp_path: Path) -> None:
    path = written(tmp_path / "a.out", T0)
    assert answer(asked(path), AT, lambda _: None, T0 + BUDGET_MS, [store]).error == store.problem
    assert answer(asked(path), AT, lambda _: None, T0 + 5_000, [store]).error is None, "recent output is an answer"


def test_a_store_that_has_nothing_of_the_attempt_says_nothing_against_the_silence_of_its_files(tmp_path: Path) -> None:
    path = written(tmp_path / "a.out", T0)
    assert answer(asked(path), AT, lambda _: None, T0 + BUDGET_MS, [EMPTY]).error is None
    nowhere = answer(asked(tmp_path / "nowhere.out"), AT, lambda _: None, T0 + BUDGET_MS, [EMPTY])
    assert nowhere.error is not None
    assert EMPTY.problem in nowhere.error


def test_a_store_stands_for_files_that_watch_has_no_mount_of(tmp_path: Path) -> None:
    checked = answer(asked(tmp_path / "nowhere.out"), AT, lambda _: None, T0 + BUDGET_MS, [SILENT, EMPTY])
    assert (checked.last_output_ms, checked.delay_ms, checked.error) == (T0, 60_000, None)
    checked = answer(asked(tmp_path / "nowhere.out"), AT, lambda _: None, T0 + BUDGET_MS, [SILENT, DOWN])
    assert checked.error == DOWN.problem


def test_what_was_written_before_the_attempt_began_is_no_output_of_it(tmp_path: Path) -> None:
    old, own = written(tmp_path / "a.err", T0 - 1), written(tmp_path / "a.out", T0 + 5_000)
    checked = answer(asked(old), AT, lambda _: None, T0 + BUDGET_MS)
    assert checked.last_output_ms is None
    assert checked.error is not None
    checked = answer(asked(old, own), AT, lambda _: None, T0 + BUDGET_MS)
    assert (checked.last_output_ms, checked.error) == (T0 + 5_000, None)


def test_an_attempt_without_output_files_cannot_be_seen() -> None:
    checked = answer(asked(), AT, lambda _: None, T0)
    assert checked.error is not None


def test_the_same_question_gives_the_same_event() -> None:
    first, second = (answer(asked(), AT, lambda _: None, now) for now in (T0, T0 + 1))
    assert first.event_id == second.event_id
