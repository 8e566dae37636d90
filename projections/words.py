"""Events in plain words, for people who never read this code: a title, a detail, and when it happened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from schemas.decisions import (
    AdviceIssued,
    AdviceResolved,
    AdviceWithheld,
    AnomalyDetected,
    AttemptMoved,
    AttemptOpened,
    AttributionMade,
    Decision,
    FactParked,
    FactSetAside,
    JobClosed,
    QuarantineEnded,
    RequestMade,
)
from schemas.facts import (
    ActionEnded,
    ActionIntended,
    ActionRefused,
    AttributionAnswered,
    BlindReported,
    CheckpointLoaded,
    CheckpointSaved,
    CommandGiven,
    Evidence,
    Fact,
    NodeFaultReported,
    QuarantineLifted,
    SignatureMatched,
)
from schemas.vocabulary import AnomalyKind, AttemptState, DesiredState, Disposition, Operation, Outcome, Witness

_OPERATIONS = {
    Operation.REQUEUE_HOLD: "requeue into a held state",
    Operation.UPDATE_CONSTRAINTS: "change of the excluded nodes",
    Operation.RELEASE: "release",
    Operation.CANCEL: "cancellation",
}
_OUTCOMES = {
    Outcome.ACCEPTED: "Slurm accepted",
    Outcome.REFUSED: "Slurm refused",
    Outcome.UNKNOWN: "Slurm did not say what became of",
}
_SYMPTOMS = {
    AnomalyKind.CRASH_LOG: "a crash line",
    AnomalyKind.CRASH_STATE: "a failed scheduler state",
    AnomalyKind.NODE_FAULT: "a fault of a node",
    AnomalyKind.HANG: "a hang",
    AnomalyKind.STRAGGLER: "a slowdown",
}
_WITNESSES = {
    Witness.OUTPUT: "The output on",
    Witness.NODE_LOG: "The log of",
    Witness.NODE_METRIC: "A metric of",
}
_DESIRED = {
    DesiredState.RESTARTED: "restart it",
    DesiredState.TERMINATED: "terminate it",
    DesiredState.RELEASED: "release it",
}


@dataclass(frozen=True)
class Words:
    """How an event reads. `at_ms` is when it happened by our own processes' clocks; `times` are further ones."""

    kind: str
    at_ms: int
    title: str
    detail: str = ""
    times: Mapping[str, int | None] = field(default_factory=dict)


def words_of(event: Fact | Decision) -> Words | None:
    """How the event reads; None for what no timeline shows: single looks, progress lines and timers."""
    return _of_decision(event) or _of_action(event) or _of_fact(event)


def _of_decision(event: Fact | Decision) -> Words | None:
    match event:
        case AttemptOpened():
            title = f"Attempt {event.attempt.index} was seen for the first time"
            return Words("opened", event.decided_ms, title, f"mode {event.mode}: {event.mode_reason}")
        case AttemptMoved():
            where = f" on {', '.join(event.nodes)}" if event.nodes else ""
            times = {"observedMs": event.observed_ms, "decidedMs": event.decided_ms}
            return Words(
                "state",
                event.observed_ms,
                f"The attempt is {event.after}{where}"
                if event.before is AttemptState.UNKNOWN
                else f"The attempt went from {event.before} to {event.after}{where}",
                event.detail,
                times,
            )
        case AnomalyDetected():
            seen = _SYMPTOMS[event.kind]
            return Words(
                "anomaly",
                event.decided_ms,
                f"An incident opened by {seen}: {event.detail}",
                f"fault class {event.fault_class}",
                _line_times(event.evidence),
            )
        case AttributionMade():
            where = f" on {', '.join(event.nodes)}" if event.nodes else ""
            return Words(
                "attribution",
                event.decided_ms,
                f"The cause was found: {event.fault_class}{where}",
                f"{event.explanation} ({event.lines_seen} lines seen, confidence {event.confidence:g},"
                f" by {event.provider})",
                _line_times(event.root),
            )
    return _of_advice(event)


def _of_advice(event: Fact | Decision) -> Words | None:
    match event:
        case AdviceIssued():
            advice = event.advice
            without = f" without {', '.join(advice.exclude_nodes)}" if advice.exclude_nodes else ""
            return Words(
                "advice",
                event.decided_ms,
                f"Advice {advice.generation}: {_DESIRED[advice.desired_state]}{without}, because {advice.reason}",
                f"{advice.explanation} (policy {advice.policy}, logic {advice.logic})",
                {"validUntilMs": advice.valid_until_ms},
            )
        case AdviceResolved():
            end = "converged" if event.disposition is Disposition.CONVERGED else "was abandoned"
            return Words(
                "resolution", event.decided_ms, f"Advice {event.generation} {end}: {event.resolution}", event.detail
            )
        case AdviceWithheld():
            return Words("withheld", event.decided_ms, f"No (further) Advice: {event.reason}", event.detail)
        case RequestMade():
            return Words(
                "request",
                event.decided_ms,
                "An attribution provider was asked for the cause",
                f"{event.deadline_ms} ms are allowed for the answer",
            )
    return _of_job(event)


def _of_job(event: Fact | Decision) -> Words | None:
    match event:
        case FactSetAside():
            return Words("set_aside", event.decided_ms, f"A fact did not count: {event.reason}", event.detail)
        case FactParked():
            return Words(
                "parked",
                event.decided_ms,
                "A record could not be handled and waits; the job gets no new Advice",
                f"{event.topic} partition {event.partition} offset {event.offset}: {event.reason}",
            )
        case QuarantineLifted():
            return Words("quarantine", event.lifted_ms, f"{event.by} lifted the quarantine", event.reason)
        case QuarantineEnded():
            return Words("quarantine", event.decided_ms, "The job may have new Advice again", event.reason)
        case JobClosed():
            return Words("closed", event.decided_ms, "The job was closed; what still comes counts as late")
    return None


def _of_action(event: Fact | Decision) -> Words | None:
    match event:
        case ActionIntended():
            whose = f"for Advice {event.generation}" if event.generation else "as an early hold, before any Advice"
            return Words(
                "action",
                event.intended_ms,
                f"A {_OPERATIONS[event.operation]} is sent to Slurm, {whose}",
                event.command,
            )
        case ActionEnded():
            title = f"{_OUTCOMES[event.outcome]} the {_OPERATIONS[event.operation]}"
            return Words("action_ended", event.ended_ms, title, event.detail)
        case ActionRefused():
            title = f"A {_OPERATIONS[event.operation]} was considered and not done: {event.reason}"
            return Words("action_refused", event.refused_ms, title, event.detail)
    return None


def _of_fact(event: Fact | Decision) -> Words | None:
    match event:
        case SignatureMatched():
            node = event.evidence.node
            title = f"A line of the output shows {event.detail or event.signature}{f' on {node}' if node else ''}"
            detail = f"signature {event.signature}, fault class {event.fault_class}, as a {event.role}"
            return Words("signature", event.evidence.read_ms, title, detail, _line_times(event.evidence))
        case NodeFaultReported():
            fault = event.fault
            title = f"{_WITNESSES[fault.witness]} {fault.node} shows {fault.detail or fault.signature}"
            detail = f"signature {fault.signature}, fault class {fault.fault_class}, {_distance(event.distance_ms)}"
            times = {**_line_times(fault.evidence), "toldMs": event.told_ms}
            return Words("node_fault", fault.evidence.read_ms, title, detail, times)
        case CheckpointSaved():
            times = {"lineMs": event.line_ms, "readMs": event.read_ms}
            title = f"A checkpoint of step {event.step} was saved"
            return Words("checkpoint_saved", event.read_ms, title, event.path or "", times)
        case CheckpointLoaded():
            times = {"lineMs": event.line_ms, "readMs": event.read_ms}
            title = f"The attempt resumed from the checkpoint of step {event.step}"
            return Words("checkpoint_loaded", event.read_ms, title, event.path or "", times)
        case BlindReported():
            title = f"Watch sees this attempt again: {event.kind}" if event.ended else f"Watch is blind: {event.detail}"
            detail = event.detail if event.ended else event.advice
            return Words("blind", event.reported_ms, title, detail, {"sinceMs": event.since_ms})
        case AttributionAnswered():
            title = f"{event.provider} answered" if event.error is None else f"{event.provider} gave no answer"
            times = {"askedMs": event.asked_ms, "answeredMs": event.answered_ms}
            return Words("answer", event.answered_ms, title, event.error or event.explanation, times)
        case CommandGiven():
            return Words("command", event.given_ms, f"{event.by} asked for: {event.kind}", event.reason)
    return None


def _distance(distance_ms: int) -> str:
    """Where a node's fault stands beside the attempt's time on the node."""
    if distance_ms == 0:
        return "while the attempt was there"
    side = "before its start" if distance_ms < 0 else "after its end"
    return f"{abs(distance_ms) / 1000:g} s {side}"


def _line_times(line: Evidence | None) -> Mapping[str, int | None]:
    return {} if line is None else {"lineMs": line.line_ms, "readMs": line.read_ms}
