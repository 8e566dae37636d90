"""Rows of the audit trail: every fact and every decision, once, as it was first recorded."""

from __future__ import annotations

from collections.abc import Iterator

from projections.merge import Row, Upsert
from projections.records import Record
from projections.tables import AUDIT, EVIDENCE
from schemas.decisions import (
    AdviceWithheld,
    AnomalyDetected,
    AttributionMade,
    FactParked,
    FactSetAside,
)
from schemas.facts import ActionEnded, ActionRefused, AttributionAnswered, SignatureMatched
from schemas.vocabulary import Outcome

INFO, WARNING, ERROR = "INFO", "WARNING", "ERROR"

RECORDED = Upsert(
    "recorded",
    AUDIT,
    ("event_id",),
    (
        "produced_us",
        "stage",
        "partition",
        "offset",
        "topic",
        "type",
        "level",
        "producer",
        "heimdall_job_id",
        "cluster",
        "job_id",
        "attempt_index",
        "submit_time",
        "cause",
        "payload",
    ),
)
SHOWN = Upsert("shown", EVIDENCE, ("digest",), ("text",))

UPSERTS = (RECORDED, SHOWN)

_WARNINGS = (SignatureMatched, AnomalyDetected, AttributionMade, AdviceWithheld, FactSetAside, ActionRefused)


def rows_for(record: Record) -> Iterator[Row]:
    """The rows that one event adds to these tables."""
    event, subject = record.event, record.subject
    values = {
        "event_id": event.event_id,
        "produced_us": record.timestamp_ms * 1000,
        "stage": record.stage,
        "partition": record.partition,
        "offset": record.offset,
        "topic": record.topic,
        "type": type(event).__name__,
        "level": level_of(record),
        "producer": record.producer,
        "heimdall_job_id": subject.heimdall_job_id,
        "cluster": subject.cluster,
        "job_id": subject.job_id,
        "attempt_index": subject.index,
        "submit_time": subject.submit_time,
        "cause": event.cause,
        "payload": record.payload,
    }
    yield Row(RECORDED, values)
    for line in record.evidence:
        yield Row(SHOWN, {"digest": line.digest, "text": line.text})


def level_of(record: Record) -> str:
    """INFO, WARNING or ERROR: how much a person should care."""
    event = record.event
    if isinstance(event, FactParked):
        return ERROR
    if isinstance(event, ActionEnded):
        return INFO if event.outcome is Outcome.ACCEPTED else ERROR
    if isinstance(event, AttributionAnswered):
        return INFO if event.error is None else WARNING
    return WARNING if isinstance(event, _WARNINGS) else INFO
