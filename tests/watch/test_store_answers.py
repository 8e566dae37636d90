"""What a log source says of a silent attempt counts only where the source itself is not silent."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from threading import Event

import pytest

from schemas.decisions import OutputAsked
from schemas.identity import Position
from streams.sources.configured import Configured
from streams.sources.lines import Answer, Batch, Cursor, Labels, SourceLine, Wanted
from streams.watch.answers import StoreSaid
from streams.watch.labelled import Directory
from streams.watch.store_answers import StoreAnswers
from tests.watch.parts import T0, attempt, attempt_view, job_view

BUDGET_MS = 600_000
NOW = T0 + 3_600_000
PATH = "/logs/slurm-7.out"


class Store:
    """A source whose newest line of the attempt is of `at_ms`."""

    name = "loki:main"

    def __init__(self, at_ms: int | None) -> None:
        self.at_ms = at_ms

    def query(self, _wanted: Wanted, _limit: int) -> Answer:
        if self.at_ms is None:
            return Answer(())
        labels = Labels("7", PATH)
        return Answer((SourceLine(b"hello", self.at_ms, labels, "s", 0, 0, 0, "0", "s", 0),))

    def follow(self, cursors: Mapping[str, Cursor], since_ms: int, stop: Event) -> Iterator[Batch]:
        raise NotImplementedError

    def sample(self, start_ms: int, end_ms: int, limit: int) -> Answer:
        raise NotImplementedError

    def close(self) -> None:
        """Nothing is held."""


def said(at_ms: int | None, heard_ms: int) -> StoreSaid:
    directories = {"local": Directory.of("local", [job_view(attempt_view(0, PATH))])}
    asked = OutputAsked("q", "", attempt(0), 0, (PATH,), T0, None, BUDGET_MS)
    with closing(StoreAnswers([Configured(Store(at_ms), "local", 60_000)], 2_000)) as answers:
        assert answers.ask(asked, Position("topic:x/0", 0, 1), directories, NOW)
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            for _asked, _position, [one] in answers.ready(directories, {"loki:main": heard_ms}, NOW):
                return one
            time.sleep(0.005)
    raise AssertionError("no answer")


@pytest.mark.parametrize(
    ("at_ms", "heard_ms", "last_ms"),
    [
        (NOW - BUDGET_MS, NOW - 5_000, NOW - BUDGET_MS),  # others print: this one is silent
        (NOW - BUDGET_MS, NOW - BUDGET_MS, None),  # nobody prints any more
        (NOW - BUDGET_MS, 0, None),  # a follower that has seen nothing yet
        (NOW - 10_000, NOW - 10_000, NOW - 10_000),  # recent enough to be no question
    ],
)
def test_silence_is_told_only_by_a_source_that_gave_later_lines_of_anybody(
    at_ms: int, heard_ms: int, last_ms: int | None
) -> None:
    one = said(at_ms, heard_ms)
    assert one.last_ms == last_ms
    assert one.dead is (last_ms is None)
    assert ("its collector may have died" in one.problem) is one.dead


def test_a_source_that_never_had_a_line_of_the_attempt_is_not_said_to_be_dead() -> None:
    one = said(None, 0)
    assert (one.last_ms, one.dead) == (None, False)
    assert "has no line of this attempt" in one.problem
