"""How long a running attempt that printed a fault may take to show that it goes on. Pure."""

from __future__ import annotations

from schemas.vocabulary import Phase
from streams.decide import lines
from streams.decide.roots import CERTAIN
from streams.decide.state import Attempt, Incident, JobState
from streams.decide.turn import Turn

RHYTHMS = 1.5
"""A running attempt that printed a fault may still show within this many of its longest normal gaps that it goes on."""


def grace_s(turn: Turn, job: JobState) -> float:
    """How long a running attempt may be silent: long enough for two progress facts, which watch throttles."""
    kept_every_ms = job.aps.progress_kept_every_ms if job.aps is not None else 0
    return max(turn.policy.running_grace_s, 2.5 * kept_every_ms / 1000)


def waits_until_ms(turn: Turn, job: JobState, attempt: Attempt, incident: Incident) -> int:
    """Until when a running attempt may be silent after a fault, by its own rhythm and by what it says that it does.

    Steps that come each five minutes can't show within one that training goes on; nor can an evaluation, or a job that
    its launcher started anew in place and that reads its checkpoint. Broken hardware gets no time to evaluate.
    """
    stall = attempt.stall
    if stall is None or job.aps is None or lines.is_without_number(incident.lines, turn.rules.root_line):
        return incident.last_line_ms
    silence_ms = job.aps.silence_ms(in_loop=stall.in_loop)
    rhythm_ms = min(int(RHYTHMS * stall.gap_ms), silence_ms)
    reloads = not stall.in_loop and stall.moved_ms > incident.last_line_ms
    elsewhere = stall.phase in (Phase.CHECKPOINT, Phase.EVALUATION) or reloads
    if elsewhere and turn.rules.root_line(incident.lines).precedence < CERTAIN:
        rhythm_ms = silence_ms
    # Not for ever: a job that crashes in place, again and again, loads its checkpoint each time.
    return min(max(incident.last_line_ms, stall.moved_ms) + rhythm_ms, incident.opened_ms + 2 * silence_ms)
