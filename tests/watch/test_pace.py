"""How long watch waits between two turns: little for few files, and never so little that it takes the machine."""

from __future__ import annotations

import pytest

from streams.watch.process import MOST_WAIT_S, wait_s


@pytest.mark.parametrize(
    ("worked_s", "waited_s"),
    [(0.0, 0.1), (0.01, 0.1), (0.04, 0.36), (1.0, MOST_WAIT_S)],
)
def test_the_wait_grows_with_what_a_turn_took(worked_s: float, waited_s: float) -> None:
    assert wait_s(0.1, worked_s) == pytest.approx(waited_s)


def test_what_an_operator_asks_for_is_never_cut() -> None:
    assert wait_s(5, 0.01) == 5
