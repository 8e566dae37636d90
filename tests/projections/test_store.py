"""Rows and offsets move together, on a real PostgreSQL."""

from __future__ import annotations

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, select

from projections import migrate
from projections.records import Record
from projections.store import Batch, Conflict, Problem, Source, Store, prepare
from projections.tables import EVIDENCE, OFFSETS, PROBLEMS, metadata
from schemas.facts import JobObserved
from tests.histories import gpu_xid_failure, observed_only
from tests.projections.parts import dump
from tests.projections.test_rows_of_an_event import EVENTS

pytestmark = pytest.mark.stack

SOURCE = Source("journal", 0)


def records(count: int | None = None) -> list[Record]:
    recorded = [*gpu_xid_failure().records, *observed_only().records][:count]
    return [
        Record("journal", 0, offset, one.timestamp_ms, one.producer, one.event) for offset, one in enumerate(recorded)
    ]


def place(engine: Engine) -> int:
    with engine.connect() as connection:
        return int(connection.execute(select(OFFSETS.c.next_offset)).scalar_one())


def test_the_migrations_make_exactly_the_tables_of_the_code_and_run_twice(url: str, engine: Engine) -> None:
    migrate.upgrade(url)
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []


def test_one_record_at_a_time_gives_the_same_tables_as_all_at_once(engine: Engine) -> None:
    store, every = Store(engine), records()
    store.offsets({SOURCE: 0})
    store.apply(prepare([Batch(SOURCE, 0, tuple(every))]))
    at_once = dump(engine)
    beside = Store(engine, "beside")
    with engine.begin() as connection:
        for table in reversed(metadata.sorted_tables):
            connection.execute(table.delete())
    beside.offsets({SOURCE: 0})
    for record in every:
        beside.apply(prepare([Batch(SOURCE, record.offset, (record,))]))
    assert dump(engine) == at_once


def test_a_batch_that_somebody_else_applied_is_refused_whole(engine: Engine) -> None:
    ours, theirs = Store(engine), Store(engine)
    first, rest = records(5), records()[5:8]
    other = Source("journal", 1)
    ours.offsets({SOURCE: 0, other: 0})
    theirs.apply(prepare([Batch(SOURCE, 0, tuple(first))]))
    before = dump(engine)
    moved = [Record("journal", 1, record.offset, 0, "", record.event) for record in rest]
    with pytest.raises(Conflict) as conflict:
        ours.apply(prepare([Batch(other, 0, tuple(moved)), Batch(SOURCE, 0, tuple(first))]))
    assert conflict.value.source == SOURCE
    assert dump(engine) == before
    assert ours.offsets({SOURCE: 0, other: 0}) == {SOURCE: 5, other: 0}


def test_a_record_that_postgresql_refuses_is_set_aside_and_the_rest_goes_in(engine: Engine) -> None:
    store, good = Store(engine), records(4)
    look = good[0].event
    assert isinstance(look, JobObserved)
    impossible = JobObserved(**{**vars(look), "event_id": "impossible", "submit_time": 2**70})
    bad = Record("journal", 0, 2, 0, "", impossible)
    batch = (good[0], good[1], bad, Record("journal", 0, 3, 0, "", good[2].event))
    store.offsets({SOURCE: 0})
    store.apply(prepare([Batch(SOURCE, 0, batch)]))
    with engine.connect() as connection:
        [problem] = connection.execute(select(PROBLEMS)).all()
    assert (problem.offset, problem.key) == (2, "impossible")
    assert "out of range" in problem.reason
    assert len(dump(engine)["audit_rows"]) == 3
    assert place(engine) == 4


def test_a_problem_found_while_reading_has_a_row_that_says_what_happens_next(engine: Engine) -> None:
    store = Store(engine)
    store.offsets({SOURCE: 0})
    store.apply(prepare([Batch(SOURCE, 0, (Problem("journal", 0, 0, 7, "local/1", "not \x00 readable"),))]))
    with engine.connect() as connection:
        [row] = connection.execute(select(PROBLEMS)).all()
    assert row.reason == "not \ufffd readable"
    assert "rebuild" in row.next


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(EVENTS, min_size=1, max_size=6))
def test_whatever_an_event_carries_goes_into_the_tables(engine: Engine, events: list[object]) -> None:
    store = Store(engine)
    start = store.offsets({SOURCE: 0})[SOURCE]
    batch = tuple(
        Record("journal", 0, start + i, 1_000, "hypothesis", event)  # type: ignore[arg-type]
        for i, event in enumerate(events)
    )
    store.apply(prepare([Batch(SOURCE, start, batch)]))
    with engine.connect() as connection:
        assert connection.execute(select(PROBLEMS)).all() == []
        assert all("\x00" not in text for text in connection.execute(select(EVIDENCE.c.text)).scalars())
