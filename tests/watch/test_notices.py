"""A line that reads like Slurm's notice takes nothing from an attempt that lives on, or only for a while."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from schemas.vocabulary import AttemptState
from streams.watch.source import Source
from streams.watch.whose.claims import Claim
from streams.watch.whose.notices import RECENT_MS, TEAR_DOWN_MS
from tests.watch.parts import T0, attempt_view, claim_on, everything, job_view, reading, running
from tests.watch.test_source import ECC, NOTICE, REQUEUED, append, noticed, owners

TAKEN_MS = T0 + 300_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "slurm-7.out"


def successor(path: Path) -> Claim:
    """Attempt 0 was taken away at 10:05, attempt 1 runs since 10:10."""
    return claim_on(
        path,
        job_view(
            attempt_view(0, path, end_ms=TAKEN_MS, state=AttemptState.PREEMPTED),
            attempt_view(1, path, start_ms=T0 + 600_000, submit_time=TAKEN_MS // 1000 + 1),
            shared=True,
        ),
    )


@pytest.mark.parametrize("quoted_ms", [700_000, 1_200_000], ids=["some time later", "whole quarters of an hour later"])
def test_a_notice_of_an_earlier_attempt_that_its_successor_prints_is_none_of_its_own(
    path: Path, quoted_ms: int
) -> None:
    path.write_text("the next attempt begins\n")
    source, claim, now_ms = Source(str(path), reading()), successor(path), T0 + quoted_ms
    everything(source, now_ms - 1_000, claim)
    append(path, REQUEUED)
    everything(source, now_ms, claim)
    everything(source, now_ms + 60_000, claim)  # its own time is of attempt 0, the moment of attempt 1
    append(path, ECC)
    everything(source, now_ms + 99_000, claim)
    append(path, ECC)
    assert list(owners(everything(source, now_ms + 100_000, claim))) == [1]


def test_a_notice_of_some_time_ago_that_is_printed_takes_nothing_from_the_attempt(path: Path) -> None:
    path.write_text("hello\n")
    source = Source(str(path), reading())
    everything(source, TAKEN_MS + 411_000, running(path))
    append(path, REQUEUED)
    everything(source, TAKEN_MS + 412_000, running(path))
    everything(source, TAKEN_MS + 599_000, running(path))
    append(path, ECC)
    assert list(owners(everything(source, TAKEN_MS + 600_000, running(path)))) == [0]


def test_after_a_time_limit_no_other_attempt_comes_by_itself_however_long_the_job_may_still_save(path: Path) -> None:
    source = noticed(path, NOTICE.format(job=7, why="TIME LIMIT"))
    everything(source, TAKEN_MS + 99_000, running(path))
    append(path, ECC)
    assert list(owners(everything(source, TAKEN_MS + 100_000, running(path)))) == [0]


@pytest.mark.parametrize(("seen_after_ms", "owned"), [(TEAR_DOWN_MS, []), (TEAR_DOWN_MS + 2_001, [0])])
def test_a_job_that_is_seen_to_run_after_it_was_torn_down_was_not(
    path: Path, seen_after_ms: int, owned: list[int]
) -> None:
    source = noticed(path)
    seen = claim_on(path, replace(job_view(attempt_view(0, path)), viewed_ms=TAKEN_MS + seen_after_ms))
    everything(source, TAKEN_MS + 99_000, seen)
    append(path, ECC)
    assert list(owners(everything(source, TAKEN_MS + 100_000, seen))) == owned


def test_a_notice_holds_no_longer_than_views_need(path: Path) -> None:
    source = noticed(path)
    everything(source, TAKEN_MS + RECENT_MS - 30_000, running(path))
    append(path, ECC)
    assert everything(source, TAKEN_MS + RECENT_MS, running(path)) == []
    assert list(owners(everything(source, TAKEN_MS + RECENT_MS + 1, running(path)))) == [0]
