"""Of many lines few facts are kept, whatever clocks they have; and of steps those that show movement."""

from __future__ import annotations

from pathlib import Path

import pytest

from schemas.facts import ProgressObserved
from streams.decide.stall import after_step, moves
from streams.decide.state import Stall, empty
from streams.watch.source import Source
from streams.watch.throttle import MOST_OF_ORIGIN, RENEWED_MS, Throttle
from tests.watch.parts import T0, attempt, attempt_view, claim_on, everything, job_view, reading
from tests.watch.test_source import append

HOUR_MS, INTERVAL_MS = 3_600_000, 60_000
STEP = " iteration {step:8d}/  500000 | elapsed time per iteration (ms): 500.0 |\n"


@pytest.mark.parametrize("reading_s", [0, 1_000])
def test_lines_of_two_clocks_are_thinned_too(reading_s: int) -> None:
    throttle, faults, steps = Throttle(), 0, 0
    for number in range(10_000):
        at_ms = T0 + number * 100 - HOUR_MS * (number % 2)
        read_ms = T0 + number * reading_s // 10
        faults += throttle.keeps_fault("job", "xid", None, None, at_ms, read_ms)
        steps += throttle.keeps_progress(attempt(0), number, at_ms, read_ms, INTERVAL_MS)
    renewed = 1 + 1_000_000 // RENEWED_MS
    assert faults <= 4 * MOST_OF_ORIGIN * renewed
    assert steps <= 3 + 2 * 1_000_000 // INTERVAL_MS


def test_a_backlog_that_is_read_in_one_go_is_thinned_by_its_own_times() -> None:
    """Also where its clock goes back by an hour once, as in a night in autumn."""
    throttle = Throttle()
    times = [T0 + second * 1_000 for second in range(3_600)]
    kept = [
        at_ms
        for number, at_ms in enumerate([*times, *times])
        if throttle.keeps_progress(attempt(0), number, at_ms, T0 + HOUR_MS, INTERVAL_MS)
    ]
    assert kept == [T0 + minute * INTERVAL_MS for minute in range(60)] * 2


def told(path: Path, printed: list[int], every_s: int, hours: int) -> list[ProgressObserved]:
    """What is told of a program that prints these steps again and again, without a time."""
    path.touch()
    source, claim, facts = Source(str(path), reading()), claim_on(path, job_view(attempt_view(0, path))), []
    for number in range(hours * 3_600 // every_s):
        append(path, STEP.format(step=printed[number % len(printed)]))
        facts += everything(source, T0 + 10_000 + number * every_s * 1_000, claim)
    return [fact for fact in facts if isinstance(fact, ProgressObserved)]


def longest_still_ms(facts: list[ProgressObserved]) -> int:
    """For how long the hang detector sees no movement at most."""
    stall: Stall | None = None
    still_ms = 0
    for fact in facts:
        if moves(stall, fact.step):
            still_ms = max(still_ms, 0 if stall is None else fact.read_ms - stall.moved_ms)
            stall = after_step(empty("local", "7"), stall, fact, fact.read_ms)
    return max(still_ms, facts[-1].read_ms - (facts[0].read_ms if stall is None else stall.moved_ms))


@pytest.mark.parametrize("first", [0, 1, 50, 110])
def test_a_program_that_counts_anew_in_each_epoch_moves_however_long_its_epochs_are(tmp_path: Path, first: int) -> None:
    path = tmp_path / "slurm-7.out"
    epoch = [*range(first, 120, 10), *range(first % 10, first, 10)]
    assert longest_still_ms(told(path, epoch, 60 // len(epoch), hours=1)) <= 2 * INTERVAL_MS


@pytest.mark.parametrize("printed", [[500], [500, 499], [500, 499, 500, 500]])
def test_a_program_that_stands_still_is_not_told_more_often_and_does_not_move(
    tmp_path: Path, printed: list[int]
) -> None:
    facts = told(tmp_path / "slurm-7.out", printed, 5, hours=1)
    assert len(facts) <= 62
    assert longest_still_ms(facts) >= HOUR_MS - 4 * INTERVAL_MS
