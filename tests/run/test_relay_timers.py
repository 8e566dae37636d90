"""Which timers are due, without a clock."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from schemas.decisions import TimerSet
from schemas.vocabulary import TimerPurpose
from streams.run.relay_timers import LONGEST_REPEAT_MS, Timers
from tests.decide.story import attempt

TIMER = TimerSet("id-1", "cause", attempt(), TimerPurpose.INCIDENT_QUIET, 1, 1000)


def read(*timers: TimerSet) -> Timers:
    held = Timers()
    held.begin(0)
    for timer in timers:
        held.take(0, timer.event_id, timer)
    held.read_to_end(0)
    return held


def test_nothing_fires_before_the_partition_was_read_to_its_end() -> None:
    held = Timers()
    held.begin(0)
    held.begin(1)
    held.take(0, "a", TIMER)
    held.read_to_end(1)
    assert (held.due(5000), held.next_ms(), held.unread) == ([], None, 1)
    held.read_to_end(0)
    assert (held.due(5000), held.unread) == ([TIMER], 0)


def test_a_tombstone_read_before_the_end_means_that_it_never_fires() -> None:
    held = Timers()
    held.begin(0)
    held.take(0, "a", TIMER)
    held.take(0, "a", None)
    held.read_to_end(0)
    assert (held.due(10**9), len(held)) == ([], 0)


def test_it_fires_when_due_and_not_before() -> None:
    held = read(TIMER)
    assert held.due(999) == []
    assert held.next_ms() == 1000
    assert held.due(1000) == [TIMER]


def test_it_fires_again_later_and_later_until_it_is_withdrawn() -> None:
    held = read(TIMER)
    times = []
    for _ in range(8):
        now = held.next_ms()
        assert now is not None
        assert held.due(now) == [TIMER]
        times.append(now)
    pauses = [after - before for before, after in pairwise(times)]
    assert pauses == [2000, 4000, 8000, 16000, 30000, 30000, 30000]
    assert pauses[-1] == LONGEST_REPEAT_MS
    held.take(0, TIMER.event_id, None)
    assert held.next_ms() is None


def test_a_rearm_takes_the_place_of_the_older_generation() -> None:
    held = read(TIMER)
    assert held.due(1000) == [TIMER]
    later = replace(TIMER, event_id="id-2", generation=2, due_ms=9000)
    held.take(0, TIMER.event_id, later)
    assert held.due(8999) == []
    assert held.due(9000) == [later]


def test_a_lost_partition_takes_its_timers_along() -> None:
    held = read(TIMER)
    held.drop(0)
    assert (held.due(10**9), len(held), held.unread) == ([], 0, 0)


@given(st.lists(st.tuples(st.integers(0, 3), st.one_of(st.none(), st.integers(0, 5000))), max_size=40))
def test_what_fires_is_what_a_reader_of_the_compacted_topic_would_find_due(
    history: list[tuple[int, int | None]],
) -> None:
    held, current = Timers(), dict[str, TimerSet]()
    held.begin(0)
    held.read_to_end(0)
    for number, (key, due_ms) in enumerate(history):
        timer = None if due_ms is None else replace(TIMER, event_id=f"{number}", generation=number, due_ms=due_ms)
        held.take(0, str(key), timer)
        current.pop(str(key), None)
        if timer is not None:
            current[str(key)] = timer
    expected = {timer.event_id for timer in current.values() if timer.due_ms <= 2500}
    assert {timer.event_id for timer in held.due(2500)} == expected
