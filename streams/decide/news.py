"""What a line is to an attempt of which something was told before: news, a repetition, or the reason of it. Pure."""

from __future__ import annotations

from schemas.decisions import Advice
from schemas.frozen import replace
from schemas.vocabulary import AnomalyKind, LineRole, Witness
from streams.decide import advice as advices
from streams.decide import lines
from streams.decide.state import Attempt, Incident, Line
from streams.decide.turn import Turn

MOST_OUTLIVED = 3
"""Incidents of an attempt after which a line of its output that it has outlived is no news any more."""


def explains_silence(attempt: Attempt, line: Line) -> bool:
    """Whether a line says why an attempt stands still, or is slow, against which Advice is open and not acted upon."""
    incident = attempt.incident
    if incident is None or attempt.acted or attempt.final or line.role is not LineRole.CAUSE:
        return False
    silent = incident.kind in (AnomalyKind.HANG, AnomalyKind.STRAGGLER) and not incident.lines
    advice = advices.open_advice(attempt)
    return silent and advice is not None and not advices.is_command(advice)


def is_told_again(turn: Turn, attempt: Attempt, line: Line) -> bool:
    """Whether a running attempt's node, or after some incidents its output, says on and on what it outlives."""
    if attempt.final or advices.is_decided(attempt):
        return False
    if line.witness is Witness.OUTPUT and attempt.incidents < MOST_OUTLIVED:
        return False
    return turn.rules.is_told_again(attempt, line, turn.now_ms)


def says_no_more(turn: Turn, incident: Incident, line: Line) -> bool:
    """Whether what was attributed stands, though the line came after it."""
    if turn.now_ms - incident.last_line_ms > lines.HEARD_MS and line.role is LineRole.CAUSE:
        return False
    return not lines.outweighs(line, incident.lines, turn.rules.root_line)


def still_said(turn: Turn, incident: Incident, line: Line) -> Incident:
    """The incident, which goes on as long as steps are told to have no number."""
    goes_on = line.signature in lines.STEPS_WITHOUT_NUMBER and lines.is_without_number(
        incident.lines, turn.rules.root_line
    )
    return replace(incident, last_line_ms=turn.now_ms) if goes_on else incident


def is_newer(incident: Incident | None, advice: Advice) -> bool:
    """Whether an incident is still to be settled that the Advice does not come from."""
    if incident is None or incident.settled or advices.is_command(advice):
        return False
    return advice.incident_id != incident.incident_id
