"""What one event adds to the tables, with no database about."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from projections.merge import json_text
from projections.projectors import UPSERTS, rows_for
from projections.records import Record
from projections.tables import ATTEMPTS, AUDIT, EVIDENCE, LOOKS, TIMELINE
from schemas.catalogue import DECISIONS, FACTS
from schemas.facts import BlindReported, JobObserved, ProgressObserved, SignatureMatched, TimerFired
from schemas.identity import AttemptId, Position
from schemas.vocabulary import BlindKind, TimerPurpose
from tests.any_event import any_of
from tests.histories import XID_LINE, gpu_xid_failure

EVENTS = st.sampled_from([*FACTS, *DECISIONS]).flatmap(any_of)
RECORDS = st.builds(Record, st.just("t"), st.integers(0, 7), st.integers(0), st.integers(0, 2**40), st.text(), EVENTS)

ATTEMPT = AttemptId("local", "42", 1, 0)
TIMER = TimerFired("id", "cause", ATTEMPT, Position("relay:x", 0, 1), TimerPurpose.JOB_CLOSE, 1, 10, 11)


def story() -> list[Record]:
    return [
        Record("t", 0, offset, recorded.timestamp_ms, recorded.producer, recorded.event)
        for offset, recorded in enumerate(gpu_xid_failure().records)
    ]


@given(RECORDS)
def test_every_event_has_rows_and_each_row_is_complete(record: Record) -> None:
    rows = list(rows_for(record))
    assert [row.values["event_id"] for row in rows if row.upsert.table is AUDIT] == [record.event.event_id]
    for row in rows:
        assert row.upsert in UPSERTS
        assert set(row.values) == set(row.upsert.columns)
        missing = [c.name for c in row.upsert.table.columns if not c.nullable and row.values.get(c.name) is None]
        assert missing == []


def test_a_line_of_output_stands_in_the_evidence_table_alone() -> None:
    rows = [row for record in story() for row in rows_for(record)]
    shown = [row.values["text"] for row in rows if row.upsert.table is EVIDENCE]
    assert XID_LINE in shown
    others = [row.values for row in rows if row.upsert.table is not EVIDENCE]
    assert "fallen off the bus" not in json.dumps(others)


def test_being_blind_stands_on_the_attempt_and_in_its_timeline_until_it_ends() -> None:
    absent = BlindReported(
        event_id="begin",
        cause="",
        attempt=ATTEMPT,
        position=Position("blind:absent", 0, 0),
        kind=BlindKind.ABSENT,
        ended=False,
        detail="not there: /logs/slurm-42.out",
        advice="Mount it.",
        kinds=(BlindKind.ABSENT,),
        since_ms=1,
        reported_ms=2,
    )
    end = Position("blind:absent", 0, 1)
    ended = replace(absent, event_id="end", position=end, ended=True, kinds=(), reported_ms=3)
    told = []
    for event in (absent, ended):
        rows = {row.upsert.table: row.values for row in rows_for(Record("t", 0, 0, 0, "", event))}
        told.append((rows[ATTEMPTS]["blind"], rows[ATTEMPTS]["blind_ms"], rows[TIMELINE]["title"]))
    assert told == [
        (["absent"], 2, "Watch is blind: not there: /logs/slurm-42.out"),
        ([], 3, "Watch sees this attempt again: absent"),
    ]


@pytest.mark.parametrize("kind", [JobObserved, ProgressObserved, TimerFired])
def test_single_looks_progress_and_timers_are_in_the_audit_trail_but_in_no_timeline(kind: type) -> None:
    events = [TIMER, *(record.event for record in story())]
    event = next(event for event in events if type(event) is kind)
    tables = {row.upsert.table for row in rows_for(Record("t", 0, 0, 0, "", event))}
    assert AUDIT in tables
    assert TIMELINE not in tables


def test_a_look_that_only_accounting_can_give_says_nothing_of_holds_and_log_paths() -> None:
    event = next(record.event for record in story() if isinstance(record.event, JobObserved))
    gone = Record("t", 0, 0, 0, "", JobObserved(**{**vars(event), "in_controller": False}))
    columns = [set(row.values) for row in rows_for(gone) if row.upsert.table is LOOKS]
    assert columns
    assert all("hold" not in names and "log_paths" not in names for names in columns)


def test_a_line_is_told_at_the_time_it_was_read_whatever_its_own_clock_says() -> None:
    record = next(record for record in story() if isinstance(record.event, SignatureMatched))
    assert isinstance(record.event, SignatureMatched)
    [told] = [row.values for row in rows_for(record) if row.upsert.table is TIMELINE]
    assert told["at_ms"] == record.event.evidence.read_ms
    assert told["times"]["lineMs"] == record.event.evidence.line_ms


def test_only_an_attempt_itself_is_keyed_by_its_stable_id() -> None:
    ids = {row.values["heimdall_job_id"] for r in story() for row in rows_for(r) if row.upsert.table is ATTEMPTS}
    assert len(ids) == 2


@settings(max_examples=50)
@given(
    st.recursive(
        st.text() | st.floats() | st.integers() | st.none(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    )
)
def test_documents_are_json_that_postgresql_takes(value: Any) -> None:
    text = json_text(value)
    assert "\\u0000" not in text.replace("\\\\", "")
    json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
