"""How rows meet under one key."""

from __future__ import annotations

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from projections.attempts import MOVED, PROGRESSED
from projections.merge import Upsert, Values
from projections.tables import ATTEMPTS, EVIDENCE

FIRST = Upsert("first", EVIDENCE, ("digest",), ("text",))


def moved(moved_ms: int) -> Values:
    fixed = {"heimdall_job_id": "a", "cluster": "c", "job_id": "1", "incarnation": 1, "attempt_index": 0}
    return fixed | {"moved_ms": moved_ms, "state": f"at {moved_ms}", "state_detail": "", "observed_ms": moved_ms}


def progress(step: int, total: int | None) -> Values:
    return {"last_step": step, "last_step_ms": step, "total_steps": total, "first_step_ms": step}


def fold(upsert: Upsert, rows: list[Values]) -> Values:
    result = rows[0]
    for row in rows[1:]:
        result = upsert.merge(result, row)
    return result


@given(st.lists(st.integers(0, 100), min_size=1, max_size=5, unique=True))
def test_the_latest_state_wins_in_any_order(times: list[int]) -> None:
    results = [fold(MOVED, [moved(at) for at in order]) for order in permutations(times)]
    assert all(result == moved(max(times)) for result in results)


def test_of_two_states_at_one_time_the_later_written_wins() -> None:
    second = moved(5) | {"state": "second"}
    assert fold(MOVED, [moved(5), second])["state"] == "second"


@given(st.lists(st.tuples(st.integers(0, 100), st.none() | st.integers(0, 9)), min_size=1, max_size=5))
def test_the_furthest_step_and_the_first_time_stay_in_any_order(steps: list[tuple[int, int | None]]) -> None:
    rows = [progress(step, total) for step, total in steps]
    results = [fold(PROGRESSED, list(order)) for order in permutations(rows)]
    assert all(result == results[0] for result in results)
    assert results[0]["last_step"] == max(step for step, _ in steps)
    assert results[0]["first_step_ms"] == min(step for step, _ in steps)


def test_the_first_text_of_a_digest_stays() -> None:
    rows: list[Values] = [{"digest": "d", "text": "one"}, {"digest": "d", "text": "two"}]
    assert fold(FIRST, rows)["text"] == "one"


def test_every_column_of_an_upsert_belongs_to_its_table() -> None:
    assert set(MOVED.columns) <= {column.name for column in ATTEMPTS.columns}
