"""The attribution provider's language: a request of ours as its question, its answer as something we may believe.

The question follows the public WorkloadAttributionRequest. The answer's schema is not public; what is accepted is in
`docs/decisions/0007-attribution-response.md`, and anything else is malformed, never half understood.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from schemas.decisions import RequestMade
from schemas.vocabulary import FaultClass, Scope

SCHEMA_VERSION = "0.1.0"
EXPLANATION_LENGTH = 1000
WORKFLOW_LENGTH = 256
_SIGNALS = {FaultClass.HANG_NO_LOG: "HANG", FaultClass.STRAGGLER: "STRAGGLER"}


class MalformedAnswer(ValueError):
    """The provider's answer is not what we accept; the message says where."""


@dataclass(frozen=True)
class Attribution:
    """What a provider says failed. `fault_class` None: it answered that it knows nothing."""

    fault_class: FaultClass | None
    scope: Scope | None
    nodes: tuple[str, ...]
    explanation: str


NOTHING = Attribution(None, None, (), "The provider names no cause.")


def question(request: RequestMade) -> dict[str, Any]:
    """Return the body of the provider's POST /v1/attribution. Times are UTC with an offset."""
    end = _time(request.end_ms)
    return {
        "schema_version": SCHEMA_VERSION,
        "workload_id": request.attempt.heimdall_job_id,
        "scope": {
            "nodes": list(request.nodes),
            "ranks": [],
            "start_time": _time(request.start_ms),
            "end_time": end or _time(request.anomaly_ms),
        },
        "failure_context": {
            "detected_at": _time(request.anomaly_ms),
            "detection_signal": _SIGNALS.get(request.fault_class, "CRASH"),
        },
        "timeout_ms": request.deadline_ms,
        "workload_context": {
            "workflow_id": request.workflow_id[:WORKFLOW_LENGTH],
            "attempt_index": request.attempt.index,
            "job_end_time": end,
        },
        "phase": "fast",
    }


def read_answer(body: bytes, request: RequestMade) -> Attribution:
    """Return the attribution of highest confidence, or NOTHING. Raises MalformedAnswer."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise MalformedAnswer(f"not JSON: {str(error)[:100]}") from error
    entries = answer.get("attributions") if isinstance(answer, dict) else None
    if not isinstance(entries, list):
        raise MalformedAnswer("there is no list `attributions`")
    found = [_attribution(entry, request) for entry in entries]
    return max(found, key=lambda one: one[0])[1] if found else NOTHING


def _attribution(entry: Any, request: RequestMade) -> tuple[float, Attribution]:
    if not isinstance(entry, dict):
        raise MalformedAnswer("an attribution is no object")
    try:
        fault_class, scope = FaultClass(str(entry.get("fault_class"))), Scope(str(entry.get("scope")))
    except ValueError as error:
        raise MalformedAnswer(str(error)) from error
    nodes, explanation, confidence = (entry.get(name) for name in ("nodes", "explanation", "confidence"))
    if not isinstance(nodes, list) or not all(isinstance(node, str) for node in nodes):
        raise MalformedAnswer("`nodes` is no list of names")
    strange = sorted(set(nodes) - set(request.nodes))
    if strange:
        raise MalformedAnswer(f"node {strange[0][:100]!r} is none of the attempt's")
    if not isinstance(explanation, str):
        raise MalformedAnswer("`explanation` is no text")
    if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0 <= confidence <= 1:
        raise MalformedAnswer("`confidence` is no number from 0 to 1")
    text = explanation[:EXPLANATION_LENGTH]
    return float(confidence), Attribution(fault_class, scope, tuple(dict.fromkeys(nodes)), text)


def _time(ms: int | None) -> str | None:
    return None if ms is None else datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")
