"""An attempt's story from a history, without a database: entries as the projector makes them, rows by hand."""

from __future__ import annotations

from typing import Any

from gateway.story import Entry, Row, Story
from projections import timeline
from projections.records import Record
from schemas.decisions import AdviceIssued, AdviceResolved, AttemptMoved
from schemas.facts import CheckpointLoaded, JobObserved, ProgressObserved
from tests.history import History


def story_of(history: History, index: int = 0) -> Story:
    """The story of one attempt of the history's job."""
    rows = [attempt_row(history, i) for i in range(history.attempt.index + 1)]
    successor = rows[index + 1] if index + 1 < len(rows) else None
    return Story(
        attempt=rows[index],
        entries=entries_of(history, index),
        advice=advice_rows(history, index),
        successor=successor,
        successor_entries=() if successor is None else entries_of(history, index + 1),
        newest=rows[-1],
    )


def entries_of(history: History, index: int) -> tuple[Entry, ...]:
    found = []
    for recorded in history.records:
        record = Record("t", 0, 0, recorded.timestamp_ms, recorded.producer, recorded.event)
        for row in timeline.rows_for(record):
            told = row.values | {
                "attempt_index": record.subject.index,
                "cause": record.event.cause,
                "payload": record.payload,
            }
            if told["attempt_index"] in (index, None):
                found.append(Entry(**{name: told[name] for name in Entry.__dataclass_fields__}))
    return tuple(sorted(found, key=lambda entry: entry.at_ms))


def attempt_row(history: History, index: int) -> Row:
    """What the attempts view would show."""
    row: dict[str, Any] = {
        "attempt_index": index,
        "job_id": history.job_id,
        "name": "train",
        "user_name": "ada",
        "mode": history.mode,
        "mode_reason": "asked for by the job's APS",
        "start_ms": None,
        "end_ms": None,
        "nodes": [],
        "state": "UNKNOWN",
        "observed_ms": None,
        "loaded_checkpoint_step": None,
        "last_step": None,
        "total_steps": None,
        "first_step_ms": None,
    }
    for recorded in history.records:
        event = recorded.event
        if isinstance(event, JobObserved):
            if event.restart_count == index:
                row |= {"start_ms": event.start_ms or row["start_ms"], "end_ms": event.end_ms}
        elif getattr(event, "attempt", history.attempt).index != index:
            continue
        elif isinstance(event, AttemptMoved):
            row |= {"state": event.after, "observed_ms": event.observed_ms}
            row["nodes"] = list(event.nodes) or row["nodes"]
        elif isinstance(event, ProgressObserved):
            row["first_step_ms"] = row["first_step_ms"] or event.read_ms
            row |= {"last_step": event.step, "total_steps": event.total_steps}
        elif isinstance(event, CheckpointLoaded):
            row["loaded_checkpoint_step"] = event.step
    return row


def advice_rows(history: History, index: int) -> tuple[Row, ...]:
    found: dict[int, dict[str, Any]] = {}
    for recorded in history.records:
        event = recorded.event
        if isinstance(event, AdviceIssued) and event.attempt.index == index:
            found[event.advice.generation] = {
                "generation": event.advice.generation,
                "desired_state": event.advice.desired_state.value,
                "exclude_nodes": list(event.advice.exclude_nodes),
                "disposition": "PENDING",
                "resolution": "UNSPECIFIED",
                "resolution_detail": "",
                "resolved_ms": None,
            }
        elif isinstance(event, AdviceResolved) and event.attempt.index == index:
            found[event.generation] |= {
                "disposition": event.disposition.value,
                "resolution": event.resolution.value,
                "resolution_detail": event.detail,
                "resolved_ms": event.decided_ms,
            }
    return tuple(found[generation] for generation in sorted(found))
