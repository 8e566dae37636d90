"""What a person asks for becomes Advice like any other, under the same gates and in the same record.

Retry limits are not asked: the person who gives the command has, and says so in its reason.
"""

from __future__ import annotations

from schemas.decisions import AdviceWithheld
from schemas.facts import CommandGiven
from schemas.vocabulary import CommandKind, DesiredState, Mode, Refusal
from streams.decide import advice as advices
from streams.decide.retry import Verdict
from streams.decide.state import Attempt, JobState
from streams.decide.turn import Turn

DESIRED = {
    CommandKind.RESTART: DesiredState.RESTARTED,
    CommandKind.TERMINATE: DesiredState.TERMINATED,
    CommandKind.RELEASE: DesiredState.RELEASED,
}


def given(turn: Turn, job: JobState, attempt: Attempt, fact: CommandGiven) -> JobState:
    """Issue what was commanded for the job's latest attempt, or say why not."""
    refusal = _refusal(job, attempt)
    if refusal is not None:
        turn.emit(AdviceWithheld(turn.next_id(), turn.cause, attempt.id, turn.now_ms, "", *refusal))
        return job
    text = f"{fact.by} asked to {fact.kind} this attempt: {fact.reason}"
    return advices.issue(turn, job, attempt, Verdict(DESIRED[fact.kind], "command", text), "")


def _refusal(job: JobState, attempt: Attempt) -> tuple[Refusal, str] | None:
    if job.latest is not None and attempt.id != job.latest.id:
        return Refusal.OTHER_ATTEMPT, f"Attempt {job.latest.id.index} has taken this one's place."
    if job.aps is None or job.mode is Mode.DISABLED:
        return Refusal.APS, f"The job is not managed by recovery: {job.mode_reason}."
    if job.quarantined:
        return Refusal.QUARANTINED, "A record of this job is parked; lift its quarantine first."
    return None
