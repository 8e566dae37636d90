"""Facts that can't count are set aside: recorded with the reason, never acted on."""

from __future__ import annotations

from schemas.decisions import FactSetAside
from schemas.vocabulary import Refusal
from streams.decide.state import JobState
from streams.decide.turn import Turn


def set_aside(turn: Turn, job: JobState, reason: Refusal, detail: str) -> JobState:
    """Record that the fact of this turn does not count."""
    turn.emit(FactSetAside(turn.next_id(), turn.cause, job.cluster, job.job_id, turn.now_ms, reason, detail))
    return job
