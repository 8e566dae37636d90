"""Rows of the timeline: what happened to an attempt, in plain words, each with its event, cause and evidence."""

from __future__ import annotations

from collections.abc import Iterator

from projections.merge import Row, Upsert
from projections.records import Record, without_text
from projections.tables import TIMELINE
from projections.words import words_of
from schemas.facts import Evidence
from schemas.records import to_document

_LINE = to_document(Evidence)

TOLD = Upsert(
    "told",
    TIMELINE,
    ("event_id",),
    (
        "heimdall_job_id",
        "cluster",
        "job_id",
        "attempt_index",
        "at_ms",
        "stage",
        "partition",
        "offset",
        "kind",
        "title",
        "detail",
        "cause",
        "times",
        "evidence",
        "payload",
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
        "attempt_index": subject.index,
        "at_ms": words.at_ms,
        "stage": record.stage,
        "partition": record.partition,
        "offset": record.offset,
        "kind": words.kind,
        "title": words.title,
        "detail": words.detail,
        "cause": record.event.cause,
        "times": dict(words.times),
        "evidence": [without_text(_LINE(line)) for line in record.evidence],
        "payload": record.payload,
    }
    yield Row(TOLD, values)
