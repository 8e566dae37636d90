"""Rows of Advice, one for each attempt and generation, and of the incidents behind them."""

from __future__ import annotations

from collections.abc import Iterator

from projections.merge import Row, Upsert, Values
from projections.records import Record
from projections.tables import ADVICE, INCIDENTS
from schemas.decisions import AdviceIssued, AdviceResolved, AnomalyDetected, AttributionMade
from schemas.identity import AttemptId

_KEY = ("heimdall_job_id", "generation")
_IDENTITY = ("cluster", "job_id", "incarnation", "attempt_index")

ISSUED = Upsert(
    "issued",
    ADVICE,
    _KEY,
    _IDENTITY,
    order="issued_ms",
    latest=(
        "event_id",
        "desired_state",
        "exclude_nodes",
        "reason",
        "explanation",
        "incident_id",
        "workflow_id",
        "valid_until_ms",
        "policy",
        "logic",
    ),
)
RESOLVED = Upsert(
    "resolved", ADVICE, _KEY, _IDENTITY, order="resolved_ms", latest=("disposition", "resolution", "resolution_detail")
)
DETECTED = Upsert(
    "detected",
    INCIDENTS,
    ("incident_id",),
    ("heimdall_job_id",),
    order="detected_ms",
    latest=("kind", "symptom_class", "symptom"),
)
ATTRIBUTED = Upsert(
    "attributed",
    INCIDENTS,
    ("incident_id",),
    ("heimdall_job_id",),
    order="attributed_ms",
    latest=(
        "fault_class",
        "scope",
        "remedy",
        "nodes",
        "signature",
        "lines_seen",
        "confidence",
        "provider",
        "explanation",
    ),
)

UPSERTS = (ISSUED, RESOLVED, DETECTED, ATTRIBUTED)


def rows_for(record: Record) -> Iterator[Row]:
    """The rows that one event adds to or changes in these tables."""
    event = record.event
    if isinstance(event, AdviceIssued):
        yield Row(ISSUED, _advice(event.attempt, event.advice.generation) | _issued(event))
    elif isinstance(event, AdviceResolved):
        values = {
            "resolved_ms": event.decided_ms,
            "disposition": event.disposition,
            "resolution": event.resolution,
            "resolution_detail": event.detail,
        }
        yield Row(RESOLVED, _advice(event.attempt, event.generation) | values)
    elif isinstance(event, AnomalyDetected):
        values = {
            "detected_ms": event.decided_ms,
            "kind": event.kind,
            "symptom_class": event.fault_class,
            "symptom": event.detail,
        }
        yield Row(DETECTED, _incident(event.incident_id, event.attempt) | values)
    elif isinstance(event, AttributionMade):
        yield Row(ATTRIBUTED, _incident(event.incident_id, event.attempt) | _attributed(event))


def _advice(attempt: AttemptId, generation: int) -> Values:
    return {
        "heimdall_job_id": attempt.heimdall_job_id,
        "generation": generation,
        "cluster": attempt.cluster,
        "job_id": attempt.job_id,
        "incarnation": attempt.incarnation,
        "attempt_index": attempt.index,
    }


def _incident(incident_id: str, attempt: AttemptId) -> Values:
    return {"incident_id": incident_id, "heimdall_job_id": attempt.heimdall_job_id}


def _issued(event: AdviceIssued) -> Values:
    advice = event.advice
    return {
        "issued_ms": event.decided_ms,
        "event_id": event.event_id,
        "desired_state": advice.desired_state,
        "exclude_nodes": list(advice.exclude_nodes),
        "reason": advice.reason,
        "explanation": advice.explanation,
        "incident_id": advice.incident_id,
        "workflow_id": advice.workflow_id,
        "valid_until_ms": advice.valid_until_ms,
        "policy": advice.policy,
        "logic": advice.logic,
    }


def _attributed(event: AttributionMade) -> Values:
    return {
        "attributed_ms": event.decided_ms,
        "fault_class": event.fault_class,
        "scope": event.scope,
        "remedy": event.remedy,
        "nodes": list(event.nodes),
        "signature": event.signature,
        "lines_seen": event.lines_seen,
        "confidence": event.confidence,
        "provider": event.provider,
        "explanation": event.explanation,
    }
