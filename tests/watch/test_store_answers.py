"""What a log source says of a silent attempt counts, unless it fell silent for several attempts together."""

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
from streams.watch.store_answers import Followed, StoreAnswers
from streams.watch.whose.labelled import Directory
from tests.watch.parts import T0, attempt, attempt_view, job_view

BUDGET_MS = 600_000
NOW = T0 + 3_600_000
PATH, OTHERS = "/logs/slurm-7.out", "/logs/slurm-8.out"


def line_of(job_id: str, path: str, at_ms: int) -> SourceLine:
    return SourceLine(b"hello", at_ms, Labels(job_id, path), "s", 0, 0, 0, "0", "s", 0)


class Store:
    """A source whose newest line of the attempt is of `at_ms`, and of job 8 of `other_ms`."""

    name = "loki:main"

    def __init__(self, at_ms: int | None, other_ms: int | None = None) -> None:
        self.lines = [line_of("7", PATH, at_ms)] if at_ms is not None else []
        self.others = [line_of("8", OTHERS, other_ms)] if other_ms is not None else []

    def query(self, _wanted: Wanted, _limit: int) -> Answer:
        return Answer(tuple(self.lines))

    def follow(self, cursors: Mapping[str, Cursor], since_ms: int, stop: Event) -> Iterator[Batch]:
        raise NotImplementedError

    def sample(self, start_ms: int, end_ms: int, limit: int) -> Answer:
        found = [line for line in [*self.lines, *self.others] if start_ms <= line.at_ms <= end_ms]
        return Answer(tuple(sorted(found, key=lambda line: line.at_ms)[-limit:]))

    def close(self) -> None:
        """Nothing is held."""


def said(at_ms: int | None, followed: Followed, other_ms: int | None = None) -> StoreSaid:
    views = [job_view(attempt_view(0, PATH)), job_view(attempt_view(0, OTHERS, job_id="8"), job_id="8")]
    directories = {"local": Directory.of("local", views)}
    asked = OutputAsked("q", "", attempt(0), 0, (PATH,), T0, None, BUDGET_MS)
    with closing(StoreAnswers([Configured(Store(at_ms, other_ms), "local", 60_000)], 2_000)) as answers:
        assert answers.ask(asked, Position("topic:x/0", 0, 1), directories, NOW)
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            for _asked, _position, [one] in answers.ready(directories, {"loki:main": followed}, NOW):
                return one
            time.sleep(0.005)
    raise AssertionError("no answer")


OWN, OTHER = attempt(0), attempt(0, "8")
SILENT = NOW - BUDGET_MS


@pytest.mark.parametrize(
    ("at_ms", "followed", "last_ms"),
    [
        (SILENT, Followed(NOW - 5_000, {OWN: SILENT, OTHER: NOW - 5_000}, (OWN, OTHER)), SILENT),
        (SILENT, Followed(SILENT, {OWN: SILENT, OTHER: SILENT - 1_000}, (OWN, OTHER)), None),
        (SILENT - 2_000, Followed(SILENT - 1, {OWN: SILENT - 2_000, OTHER: SILENT - 1}, (OWN, OTHER)), None),
        (SILENT - 2_000, Followed(SILENT + 1, {OWN: SILENT - 2_000, OTHER: SILENT + 1}, (OWN, OTHER)), SILENT - 2_000),
        (SILENT, Followed(SILENT, {OWN: SILENT, OTHER: SILENT - BUDGET_MS}, (OWN, OTHER)), SILENT),
        (SILENT, Followed(SILENT, {OWN: SILENT, OTHER: SILENT - 1_000}, (OWN,)), SILENT),
        (SILENT, Followed(SILENT, {OWN: SILENT}, (OWN, OTHER)), SILENT),
        (SILENT, Followed(SILENT, {OWN: SILENT}, (OWN,)), SILENT),
        (NOW - 10_000, Followed(NOW - 10_000, {OWN: NOW - 10_000}, (OWN, OTHER)), NOW - 10_000),
    ],
    ids=[
        "others print",
        "all fell silent together",
        "the other a little later",
        "the other later, and not long ago",
        "the other was silent long before",
        "the other has ended",
        "the other never printed into it",
        "nobody else prints",
        "recent enough to be no question",
    ],
)
def test_silence_is_told_unless_several_that_ran_fell_silent_together(
    at_ms: int, followed: Followed, last_ms: int | None
) -> None:
    one = said(at_ms, followed)
    assert one.last_ms == last_ms
    assert one.dead is (last_ms is None)
    assert ("its collector may have died" in one.problem) is one.dead


def test_a_source_that_never_had_a_line_of_the_attempt_is_not_said_to_be_dead() -> None:
    one = said(None, Followed(0, {}, (OWN, OTHER)))
    assert (one.last_ms, one.dead) == (None, False)
    assert "has no line of this attempt" in one.problem


@pytest.mark.parametrize(
    ("other_ms", "last_ms"),
    [(None, SILENT), (NOW - 5_000, SILENT), (SILENT - 1_000, None), (SILENT - 2 * BUDGET_MS, SILENT)],
    ids=["nobody else prints", "others print", "all fell silent together", "the other was silent long before"],
)
def test_a_watch_that_has_read_nothing_since_it_started_asks_the_source_for_the_lines_of_others(
    other_ms: int | None, last_ms: int | None
) -> None:
    one = said(SILENT, Followed(0, {}, (OWN, OTHER)), other_ms)
    assert (one.last_ms, one.dead) == (last_ms, last_ms is None)
