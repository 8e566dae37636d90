"""From an incident's first line to each milestone: once each, and never from history that is only read again."""

from __future__ import annotations

from projections.latencies import FRESH_MS, Latencies
from projections.records import Record
from tests.histories import gpu_xid_failure, observed_only
from tests.history import History


def records(history: History) -> list[Record]:
    return [Record("t", 0, i, one.timestamp_ms, one.producer, one.event) for i, one in enumerate(history.records)]


def measured(history: History, *, times: int = 1, later_ms: int = 0) -> list[tuple[str, float]]:
    said: list[tuple[str, float]] = []
    latencies = Latencies(lambda name, seconds: said.append((name, seconds)))
    for _ in range(times):
        latencies.take(records(history), history.now_ms + later_ms)
    return said


def test_each_milestone_of_a_recovery_counts_once_and_in_order() -> None:
    said = measured(gpu_xid_failure())
    assert [name for name, _ in said] == ["anomaly", "advice", "action", "convergence"]
    seconds = [value for _, value in said]
    assert seconds == sorted(seconds)
    assert seconds[-1] > seconds[0] >= 0


def test_what_is_read_twice_counts_once() -> None:
    assert measured(gpu_xid_failure(), times=2) == measured(gpu_xid_failure())


def test_history_that_is_read_again_says_nothing_of_now() -> None:
    assert measured(gpu_xid_failure(), later_ms=2 * FRESH_MS) == []


def test_what_was_refused_is_no_action_and_what_was_abandoned_no_convergence() -> None:
    assert [name for name, _ in measured(observed_only())] == ["anomaly", "advice"]
