"""A line goes to the attempt that wrote it, or to none."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.vocabulary import AttemptState, Mode
from streams.watch.whose.claims import claims_of, windows_of
from streams.watch.whose.ownership import Owner, Unowned, Wait, Window, Written, owner_of
from tests.watch.parts import T0, attempt, attempt_view, claim_on, job_view

MINUTE = 60_000
FIRST = Window(attempt(0), T0, T0 + 10 * MINUTE)
SECOND = Window(attempt(1), T0 + 12 * MINUTE, None)
UNKNOWN = Written(None, None, None, None, T0 + 30 * MINUTE, new_epoch=False)
SKEW = 2_000


def verdict(written: Written, *windows: Window, shared: bool = True) -> Owner | Wait:
    return owner_of(written, windows, shared=shared, skew_ms=SKEW)


def test_the_only_attempt_that_reports_a_path_owns_its_lines() -> None:
    assert verdict(UNKNOWN, Window(attempt(0), T0, None), shared=False) == Owner(attempt(0))


def test_a_line_later_than_the_end_of_the_only_known_attempt_waits_for_its_successor() -> None:
    late = replace(UNKNOWN, own_ms=T0 + 11 * MINUTE)
    assert isinstance(verdict(late, FIRST, shared=False), Wait)
    assert verdict(late, FIRST, replace(SECOND, start_ms=T0 + 11 * MINUTE - 500)) == Owner(attempt(1))


@pytest.mark.parametrize("shared", [False, True])
def test_a_line_older_than_every_known_attempt_is_nobodys_and_no_news_can_change_that(shared: bool) -> None:
    older = replace(UNKNOWN, own_ms=T0 - SKEW - 1)
    assert isinstance(verdict(older, FIRST, shared=shared), Unowned)
    assert isinstance(verdict(older, FIRST, SECOND), Unowned)
    assert verdict(replace(older, own_ms=T0 - SKEW), FIRST, shared=shared) == Owner(attempt(0)), "clocks differ"


def test_a_line_that_was_seen_to_appear_while_the_attempt_ran_is_its_own_whatever_it_says_of_its_time() -> None:
    wrong_zone = replace(UNKNOWN, own_ms=T0 - 120 * MINUTE, absent_ms=T0 + MINUTE, read_ms=T0 + MINUTE + 100)
    assert verdict(wrong_zone, FIRST, shared=False) == Owner(attempt(0))
    unseen = replace(wrong_zone, absent_ms=T0 - 60 * MINUTE)
    assert isinstance(verdict(unseen, FIRST, shared=False), Unowned), "it may have been there before"


def test_a_line_without_a_time_is_of_the_only_attempt_unless_older_lines_stand_around_it() -> None:
    old, own = T0 - 60 * MINUTE, T0 + MINUTE
    assert verdict(replace(UNKNOWN, before_ms=own), FIRST, shared=False) == Owner(attempt(0))
    assert verdict(replace(UNKNOWN, after_ms=own), FIRST, shared=False) == Owner(attempt(0))
    assert isinstance(verdict(replace(UNKNOWN, before_ms=old), FIRST, shared=False), Unowned)
    assert isinstance(verdict(replace(UNKNOWN, after_ms=old, before_ms=own), FIRST, shared=False), Unowned)
    last = verdict(replace(UNKNOWN, after_ms=old), FIRST, shared=False)
    assert isinstance(last, Wait), "the next line with a time tells"
    assert not isinstance(last, Unowned)


def test_a_file_that_begins_anew_waits_for_news_of_who_began_it() -> None:
    anew = replace(UNKNOWN, new_epoch=True)
    assert isinstance(verdict(anew, Window(attempt(0), T0, None), shared=False), Wait)


def test_a_lines_own_time_decides_in_a_shared_file() -> None:
    assert verdict(replace(UNKNOWN, own_ms=T0 + MINUTE), FIRST, SECOND) == Owner(attempt(0))
    assert verdict(replace(UNKNOWN, own_ms=T0 + 13 * MINUTE), FIRST, SECOND) == Owner(attempt(1))


def test_a_time_in_no_window_belongs_to_nobody() -> None:
    assert verdict(replace(UNKNOWN, own_ms=T0 + 11 * MINUTE), FIRST, SECOND) == Wait(
        "its time lies in no attempt's window"
    )


def test_clocks_may_differ_a_little_and_the_exact_window_wins() -> None:
    near = Window(attempt(1), T0 + 10 * MINUTE + 1000, None)
    assert verdict(replace(UNKNOWN, own_ms=T0 + 10 * MINUTE + 500), FIRST, near) == Wait(
        "2 attempts could have written it"
    )
    assert verdict(replace(UNKNOWN, own_ms=T0 + 10 * MINUTE + 1200), FIRST, near) == Owner(attempt(1))


def test_a_line_without_a_time_lies_between_its_neighbours() -> None:
    between = replace(UNKNOWN, after_ms=T0 + MINUTE, before_ms=T0 + 2 * MINUTE)
    assert verdict(between, FIRST, SECOND) == Owner(attempt(0))
    astride = replace(UNKNOWN, after_ms=T0 + MINUTE, before_ms=T0 + 13 * MINUTE)
    assert isinstance(verdict(astride, FIRST, SECOND), Wait)


def test_a_line_without_a_time_that_appeared_under_our_eyes_is_of_who_ran_then() -> None:
    live = replace(UNKNOWN, absent_ms=T0 + 13 * MINUTE, read_ms=T0 + 13 * MINUTE + 100)
    assert verdict(live, FIRST, SECOND) == Owner(attempt(1))
    assert verdict(replace(live, after_ms=T0 + 9 * MINUTE), FIRST, SECOND) == Owner(attempt(1)), (
        "the stamped line before it is of the attempt before"
    )


def test_a_line_without_a_time_that_nobody_saw_appear_belongs_to_nobody() -> None:
    assert isinstance(verdict(UNKNOWN, FIRST, SECOND), Wait)


def test_a_time_from_the_future_is_no_time() -> None:
    live = replace(UNKNOWN, absent_ms=T0 + 13 * MINUTE, read_ms=T0 + 13 * MINUTE + 100, own_ms=T0 + 100 * MINUTE)
    assert verdict(live, FIRST, SECOND) == Owner(attempt(1))


def test_a_time_that_contradicts_what_we_saw_is_given_to_nobody() -> None:
    wrong_zone = replace(UNKNOWN, absent_ms=T0 + 13 * MINUTE, read_ms=T0 + 13 * MINUTE + 100, own_ms=T0 + MINUTE)
    said = verdict(wrong_zone, FIRST, SECOND)
    assert isinstance(said, Wait)
    assert "time_zone" in said.reason


def test_a_time_beyond_the_last_known_end_is_not_made_up_for_by_a_long_look_away() -> None:
    """Watch was stopped while the attempt ended and its successor, not known yet, began to write."""
    later = replace(
        UNKNOWN, own_ms=T0 + 11 * MINUTE, absent_ms=T0 + 10 * MINUTE + 1_000, read_ms=T0 + 11 * MINUTE + 5_000
    )
    waits = Wait("its time lies in no attempt's window")
    assert verdict(later, replace(FIRST, start_ms=T0 - MINUTE), Window(attempt(1), None, None)) == waits


def test_a_time_of_a_wrong_zone_is_made_up_for_by_two_looks_within_one_window() -> None:
    wrong_zone = replace(UNKNOWN, own_ms=T0 - 60 * MINUTE, absent_ms=T0 + 13 * MINUTE, read_ms=T0 + 13 * MINUTE + 100)
    assert verdict(wrong_zone, FIRST, SECOND) == Owner(attempt(1))


def test_an_attempt_that_has_not_started_owns_nothing() -> None:
    pending = Window(attempt(1), None, None)
    assert verdict(replace(UNKNOWN, own_ms=T0 + 13 * MINUTE), FIRST, pending) == Wait(
        "its time lies in no attempt's window"
    )


MOMENTS = st.integers(T0 - 5 * MINUTE, T0 + 40 * MINUTE)
WRITTEN = st.builds(
    Written,
    own_ms=st.none() | MOMENTS,
    after_ms=st.none() | MOMENTS,
    before_ms=st.none() | MOMENTS,
    absent_ms=st.none() | MOMENTS,
    read_ms=MOMENTS,
    new_epoch=st.booleans(),
)


@given(written=WRITTEN, end=st.integers(1, 20), gap=st.integers(0, 10))
def test_whoever_owns_a_stamped_line_ran_at_that_time_or_when_it_appeared(written: Written, end: int, gap: int) -> None:
    windows = (
        Window(attempt(0), T0, T0 + end * MINUTE),
        Window(attempt(1), T0 + (end + gap) * MINUTE, None),
    )
    said = verdict(written, *windows)
    if isinstance(said, Wait):
        return
    window = next(one for one in windows if one.attempt == said.attempt)
    assert window.start_ms is not None
    stamps = [written.own_ms] if written.own_ms is not None else []
    looks = [written.read_ms] if written.absent_ms is not None else []
    moments = stamps + looks or [written.read_ms]
    assert any(window.start_ms - SKEW <= moment for moment in moments)
    if window.end_ms is not None and written.absent_ms is not None:
        assert written.absent_ms <= window.end_ms + SKEW, "seen to appear after its end"


@given(written=WRITTEN)
def test_no_line_of_before_is_given_to_the_only_attempt_unless_it_was_seen_to_appear(written: Written) -> None:
    if isinstance(verdict(written, FIRST, shared=False), Wait):
        return
    assert written.absent_ms is not None or written.own_ms is None or written.own_ms >= T0 - SKEW
    assert written.absent_ms is None or max(written.absent_ms, written.own_ms or T0) >= T0 - SKEW


@given(written=WRITTEN)
def test_the_newest_attempt_is_never_taken_by_default(written: Written) -> None:
    """A line that says nothing of when it was written, and was not seen to appear, could be anybody's."""
    blank = replace(written, own_ms=None, after_ms=None, before_ms=None, absent_ms=None, read_ms=T0 + 30 * MINUTE)
    assert isinstance(verdict(blank, FIRST, SECOND), Wait)


def test_an_attempt_ends_at_the_latest_when_its_successor_was_submitted() -> None:
    view = job_view(
        attempt_view(0, "/out", state=AttemptState.REQUEUED),
        attempt_view(1, "/out", start_ms=None, state=AttemptState.HELD, submit_time=T0 // 1000 + 300),
    )
    assert [(window.start_ms, window.end_ms) for window in windows_of(view)] == [(T0, T0 + 300_999), (None, None)]


def test_a_path_of_two_jobs_is_shared_and_one_of_a_disabled_or_closed_job_is_left_alone() -> None:
    one = job_view(attempt_view(0, "/out"))
    other = job_view(attempt_view(0, "/out", job_id="8"), job_id="8")
    assert not claim_on("/out", one).shared
    assert claim_on("/out", one, other).shared
    assert claims_of([job_view(attempt_view(0, "/out"), mode=Mode.DISABLED)]) == {}
    assert claims_of([replace(one, closed=True)]) == {}


def test_a_path_is_over_once_all_its_attempts_have_ended() -> None:
    ended = attempt_view(0, "/out", end_ms=T0 + 1, state=AttemptState.FAILED)
    assert claim_on("/out", job_view(ended)).over
    assert not claim_on("/out", job_view(ended, attempt_view(1, "/out", start_ms=T0 + 2))).over
    assert claims_of([job_view(attempt_view(0, "/out", start_ms=None, state=AttemptState.PENDING))]) == {}
