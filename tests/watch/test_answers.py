"""What watch says when a decider asks whether a silent attempt still prints."""

from __future__ import annotations

import os
from pathlib import Path

from schemas.decisions import OutputAsked
from schemas.identity import Position
from streams.watch.answers import answer
from tests.watch.parts import T0, attempt

AT = Position("topic:recovery.requests/0", 0, 5)


def asked(*paths: Path) -> OutputAsked:
    return OutputAsked("question", "", attempt(0), T0, tuple(map(str, paths)), T0, T0, 840_000)


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


def test_an_attempt_without_output_files_cannot_be_seen() -> None:
    checked = answer(asked(), AT, lambda _: None, T0)
    assert checked.error is not None


def test_the_same_question_gives_the_same_event() -> None:
    first, second = (answer(asked(), AT, lambda _: None, now) for now in (T0, T0 + 1))
    assert first.event_id == second.event_id
