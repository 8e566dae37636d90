"""Rows of the timeline: what happened to an attempt, in plain words; the events themselves stand in the audit trail."""

from __future__ import annotations

from collections.abc import Iterator

from projections.merge import Row, Upsert
from projections.records import Record
from projections.tables import TIMELINE
from projections.words import words_of

TOLD = Upsert(
    "told",
    TIMELINE,
    ("event_id",),
    (
        "heimdall_job_id",
        "cluster",
        "job_id",
        "at_ms",
        "kind",
        "title",
        "detail",
        "times",
    ),
)

UPSERTS = (TOLD,)


def rows_for(record: Record) -> Iterator[Row]:
    """The row that one event adds; none for single looks, progress lines and timers."""
    words = words_of(record.event)
    if words is None:
        return
    subject = record.subject
    values = {
        "event_id": record.event.event_id,
        "heimdall_job_id": subject.heimdall_job_id,
        "cluster": subject.cluster,
        "job_id": subject.job_id,
        "at_ms": words.at_ms,
        "kind": words.kind,
        "title": words.title,
        "detail": words.detail,
        "times": dict(words.times),
    }
    yield Row(TOLD, values)
