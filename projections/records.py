"""A decoded record and what every projector asks of it: whom it concerns, what it says, which lines it shows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from schemas.catalogue import DECISIONS
from schemas.decisions import AnomalyDetected, AttributionMade, Decision, FactParked, FactSetAside, QuarantineEnded
from schemas.facts import (
    Evidence,
    Fact,
    JobObserved,
    NodeFaultReported,
    ProgressObserved,
    QuarantineLifted,
    SignatureMatched,
)
from schemas.identity import AttemptId
from schemas.records import to_document

FACT, DECISION = 0, 1
"""The stage of a record: facts come before what was decided on them at the same time."""


@dataclass(frozen=True)
class Subject:
    """Whom an event concerns: an exact attempt, or, where only the decider could tell it, what the event knows."""

    cluster: str
    job_id: str
    attempt: AttemptId | None
    index: int | None
    submit_time: int | None

    @property
    def heimdall_job_id(self) -> str | None:
        return None if self.attempt is None else self.attempt.heimdall_job_id


@dataclass(frozen=True)
class Record:
    """One event with its place in Kafka. `timestamp_ms` is the record's, `producer` its CloudEvents source."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    producer: str
    event: Fact | Decision

    @property
    def stage(self) -> int:
        return DECISION if isinstance(self.event, DECISIONS) else FACT

    @cached_property
    def subject(self) -> Subject:
        event = self.event
        match event:
            case JobObserved():
                return Subject(event.cluster, event.job_id, None, event.restart_count, event.submit_time)
            case QuarantineLifted() | QuarantineEnded() | FactSetAside():
                return Subject(event.cluster, event.job_id, None, None, None)
            case FactParked():
                cluster, _, job_id = event.key.partition("/")
                return Subject(cluster, job_id, None, None, None)
            case _:
                attempt = event.attempt
                return Subject(attempt.cluster, attempt.job_id, attempt, attempt.index, None)

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The lines that the event shows, the decisive one first."""
        event = self.event
        if isinstance(event, SignatureMatched):
            return (event.evidence,)
        if isinstance(event, NodeFaultReported):
            return (event.fault.evidence,)
        if isinstance(event, AnomalyDetected):
            return () if event.evidence is None else (event.evidence,)
        if isinstance(event, AttributionMade):
            return (*(() if event.root is None else (event.root,)), *event.secondary)
        return ()

    @property
    def payload(self) -> Mapping[str, Any]:
        """The event as a document, its lines named by digest alone: their text stands in a table of its own."""
        event_class: type = type(self.event)
        document = cast(dict[str, Any], to_document(event_class)(self.event))
        for name in ("evidence", "root"):
            if document.get(name) is not None:
                document[name] = without_text(document[name])
        if "fault" in document:
            document["fault"]["evidence"] = without_text(document["fault"]["evidence"])
        if "secondary" in document:
            document["secondary"] = [without_text(line) for line in document["secondary"]]
        if isinstance(self.event, ProgressObserved):
            document |= {
                name: str(document[name]) for name in ("loss", "seconds_per_step") if _is_no_number(document[name])
            }
        return document


def _is_no_number(value: float | None) -> bool:
    """Whether JSON has no word for it: a run whose loss is NaN must show just that."""
    return value is not None and not math.isfinite(value)


def without_text(line: Mapping[str, Any]) -> dict[str, Any]:
    """A line's document without the line itself."""
    return {name: value for name, value in line.items() if name != "text"}
