"""Why did it fail, and where? Rules from an incident's lines, the scheduler's state, and a provider's answer.

Unsure means restart without exclusion: a wrong exclusion costs a healthy node, a wrong stop costs the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from schemas.vocabulary import AnomalyKind, AttemptState, FaultClass, Phase, Remedy, Scope
from streams.decide.blame import Places
from streams.decide.cause import Earlier, Scene
from streams.decide.rules import Rules
from streams.decide.state import Answer, Attempt, Finding, Incident, Line

STATE_CLASSES = {
    AttemptState.NODE_FAIL: (FaultClass.NODE_LOST, "Slurm lost a node of the allocation"),
    AttemptState.BOOT_FAIL: (FaultClass.NODE_LOST, "Slurm could not boot a node of the allocation"),
    AttemptState.OUT_OF_MEMORY: (FaultClass.HOST_OOM, "Slurm reports that the job ran out of host memory"),
}


BY_KIND = {
    AnomalyKind.HANG: (FaultClass.HANG_NO_LOG, "The attempt stands still without a word of why"),
    AnomalyKind.STRAGGLER: (FaultClass.STRAGGLER, "The attempt became slow for good, and no line says why"),
}


@dataclass(frozen=True)
class Attribution:
    """A finding with the lines it rests on."""

    finding: Finding
    root: Line | None
    secondary: tuple[Line, ...]
    confidence: float
    provider: str


def attribute(rules: Rules, attempt: Attempt, incident: Incident, before: Sequence[Attempt] = ()) -> Attribution:
    """Return the one attribution of an incident; `before`: the job's attempts before this one."""
    own = _from_lines(rules, attempt, incident, before) if incident.lines else _from_kind(attempt, incident)
    return own if incident.answer is None else _with_answer(own, attempt, incident.answer)


def _from_lines(rules: Rules, attempt: Attempt, incident: Incident, before: Sequence[Attempt]) -> Attribution:
    stall = attempt.stall
    ended = stall is not None and stall.phase is Phase.FINISHING and not stall.stepped
    done = ended and stall is not None and stall.moved_ms < incident.opened_ms
    cause = rules.weigh(
        incident.lines,
        Scene(
            nodes=attempt.nodes,
            step=attempt.step,
            finished=done,
            earlier=tuple(one for earlier in before for one in _failure(rules, earlier)),
            places=_places(rules, incident.lines),
        ),
    )
    nodes = tuple(node for node in cause.nodes if node in attempt.nodes)
    remedy = cause.remedy
    if remedy is Remedy.RESTART_EXCLUDING_NODE and len(attempt.nodes) == 1:
        nodes = attempt.nodes  # no line needs to say where: there is only one
    if remedy is Remedy.RESTART_EXCLUDING_NODE and not nodes:
        remedy = Remedy.RESTART
    explanation = cause.explanation
    if len(incident.lines) > 1:
        others = incident.lines_seen - 1
        lines_are = (
            "line is its consequence or a weaker sign" if others == 1 else "lines are its consequences or weaker signs"
        )
        explanation += f"; {others} other matching {lines_are}"
    return Attribution(
        Finding(cause.fault_class, cause.scope, remedy, nodes, explanation + "."),
        cause.root,
        tuple(line for line in incident.lines if line is not cause.root),
        cause.confidence,
        "rules",
    )


def _places(rules: Rules, lines: Sequence[Line]) -> Places:
    """Which nodes the lines mean, looked for only where one needs it: it takes longer than all other rules."""
    if not any(rules.means_by_number(line) for line in lines):
        return Places()
    return rules.places_of((line.evidence.text for line in lines), lines)


def _failure(rules: Rules, attempt: Attempt) -> Iterator[Earlier]:
    """What an earlier attempt failed of, where lines said so."""
    incident = attempt.incident
    if incident is not None and incident.finding is not None and incident.lines and attempt.failure_counted:
        yield Earlier(rules.root_line(incident.lines).signature, attempt.step)


def _from_kind(attempt: Attempt, incident: Incident) -> Attribution:
    if incident.kind in BY_KIND:
        fault_class, explanation = BY_KIND[incident.kind]
        return Attribution(
            Finding(fault_class, Scope.UNKNOWN, Remedy.RESTART, (), explanation + "."), None, (), 0.5, "rules"
        )
    return _from_state(attempt)


def _from_state(attempt: Attempt) -> Attribution:
    fault_class, explanation = STATE_CLASSES.get(
        attempt.state, (FaultClass.UNKNOWN, f"Slurm reports {attempt.state} and no line of the output says why")
    )
    scope = Scope.NODE if fault_class is FaultClass.NODE_LOST else Scope.UNKNOWN
    return Attribution(Finding(fault_class, scope, Remedy.RESTART, (), explanation + "."), None, (), 0.3, "scheduler")


def _with_answer(own: Attribution, attempt: Attempt, answer: Answer) -> Attribution:
    """Adopt a provider's answer. It may name nodes of the allocation; it can't turn a restart into a stop."""
    nodes = tuple(node for node in answer.nodes if node in attempt.nodes)
    remedy = own.finding.remedy
    if nodes and remedy is Remedy.RESTART:
        remedy = Remedy.RESTART_EXCLUDING_NODE
    finding = Finding(
        answer.fault_class,
        answer.scope,
        remedy,
        nodes or own.finding.nodes,
        answer.explanation or own.finding.explanation,
    )
    return Attribution(finding, own.root, own.secondary, max(own.confidence, 0.8), answer.provider)
