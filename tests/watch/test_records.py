"""Lines of a store are judged by the lines before them, also where a window is looked at again."""

from __future__ import annotations

import pytest

from streams.sources.lines import Batch, Cursor, Labels
from streams.sources.windows import NS, Entry, lines_of
from streams.watch.records import Records
from tests.watch.parts import T0, matcher, reading

FILE = Labels("7", "/logs/slurm-7.out")
STORE = "loki:main"
BEFORE = ("Exception in thread Thread-3 (run):", "Traceback (most recent call last):", '  File "a.py", line 3, in run')
LAST = "ValueError: bad heartbeat answer"
"""Of a thread beside the training it means nothing."""


class Reader:
    def __init__(self) -> None:
        self.records = Records(reading())

    def faults(self, second: float, *texts: str) -> list[tuple[str, str]]:
        """What the lines tell that begin at this second, a millisecond apart; all of them may be given again."""
        first_ns = (T0 + int(second * 1_000)) * NS
        entries = [Entry(first_ns + number * NS, text.encode(), FILE) for number, text in enumerate(texts)]
        said = self.records.said(Batch(lines_of(STORE, entries), (Cursor(STORE, offset=T0 * NS),)), T0 + 600_000)
        return [
            (one.line.found.line.decode(), one.line.found.fault.signature.id) for one in said if one.line.found.fault
        ]


def test_a_window_that_is_looked_at_again_tells_nothing_that_the_lines_before_it_made_mean_nothing() -> None:
    reader = Reader()
    assert reader.faults(10, *BEFORE) == []
    assert reader.faults(20, LAST, "next line") == []
    assert reader.faults(60, *(f"all is well {number}, nothing to see here" for number in range(300))) == []
    late = "NVRM: Xid (PCI:0000:06:00): 79, GPU has fallen off the bus."
    [told] = reader.faults(20, LAST, late)
    assert told[0] == late, "which the lines before it do not matter for"


def test_a_window_that_is_looked_at_again_is_no_part_of_what_stands_before_new_lines() -> None:
    reader = Reader()
    assert reader.faults(60, "hello") == []
    assert reader.faults(90, *BEFORE) == []
    assert reader.faults(60, "hello", "a line that came late") == []
    assert reader.faults(91, LAST) == []


@pytest.mark.parametrize(("before", "told"), [(b"", True), (None, False)])
def test_what_lines_before_decide_is_left_open_where_they_are_not_known(before: bytes | None, told: bool) -> None:
    found = matcher().scan(f"{LAST}\n".encode(), before)
    assert any(one.fault is not None for one in found) is told


def test_where_enough_lines_are_known_nothing_is_left_open() -> None:
    text = "all is well, nothing to see here\n" * 300
    [found] = matcher().scan(f"{text}{LAST}\n".encode(), None)
    assert found.fault is not None
