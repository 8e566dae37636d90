"""A line of a store counts once, whenever it comes and however often its window is read."""

from __future__ import annotations

import pytest

from schemas.identity import Position
from streams.decide.state import advance
from streams.sources.lines import Batch, Cursor, Labels
from streams.sources.windows import NS, Entry, lines_of
from streams.watch import given
from streams.watch.records import Records
from tests.watch.parts import T0, reading

FILE, OTHER = Labels("7", "/logs/slurm-7.out"), Labels("8", "/logs/slurm-8.out")
STORE = "loki:main"


class Decider:
    """Counts each line as a decider does: those above the mark of their stream."""

    def __init__(self) -> None:
        self.marks: tuple[Position, ...] = ()
        self.counted: list[int] = []
        self.start()

    def start(self) -> None:
        """Another process reads on from the cursor."""
        self.records = Records(reading())

    def read(self, *seconds: int, low: int = 0, labels: Labels = FILE) -> None:
        """Read lines of these seconds; those from `low` on may be given again."""
        entries = [
            Entry((T0 + second * 1_000) * NS, f"step {second} RuntimeError: CUDA error: unknown error".encode(), labels)
            for second in seconds
        ]
        batch = Batch(lines_of(STORE, entries), (Cursor(STORE, offset=(T0 + low * 1_000) * NS),))
        for said in self.records.said(batch, T0 + 600_000):
            marks = advance(self.marks, said.line.position(0))
            if marks is not None:
                self.marks = marks
                self.counted.append((said.record.at_ms - T0) // 1_000)


def test_lines_that_come_late_count_and_those_given_again_do_not() -> None:
    decider = Decider()
    decider.read(10, 60)
    decider.read(10, 50, 55, 60)
    assert decider.counted == [10, 60, 50, 55]
    decider.read(70)
    decider.read(50, 60, 65, 70)
    assert decider.counted == [10, 60, 50, 55, 70, 65]


def test_a_late_line_of_one_stream_has_nothing_to_do_with_others() -> None:
    decider = Decider()
    decider.read(60)
    decider.read(50, labels=OTHER)
    decider.read(55)
    assert decider.counted == [60, 50, 55]


def test_after_a_restart_nothing_counts_twice() -> None:
    decider = Decider()
    decider.read(10, 60)
    decider.read(10, 50, 60)
    decider.start()
    decider.read(10, 50, 60)
    decider.read(70)
    assert decider.counted == [10, 60, 50, 70]


def test_what_the_cursor_has_passed_is_forgotten_and_would_count_as_told() -> None:
    decider = Decider()
    decider.read(10, 60)
    decider.read(70, low=65)
    decider.read(10, 60, low=65)
    assert decider.counted == [10, 60, 70]


def test_more_lines_than_are_remembered_never_count_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(given, "MOST_LINES", 10)
    decider = Decider()
    decider.read(*range(0, 40, 2))
    decider.read(*range(39))
    assert len(set(decider.counted)) == len(decider.counted)
    assert set(decider.counted) > set(range(0, 40, 2)), "some of the late ones count, too"
