"""Stragglers: steps that became slower, for good, than the attempt's own steps were.

All-reduce makes every rank as slow as the slowest, so step time names no node. By default a straggler is recorded;
restarting it must be enabled separately.
"""

from __future__ import annotations

from schemas.decisions import AdviceWithheld, AnomalyDetected
from schemas.frozen import replace
from schemas.identity import derived_id
from schemas.policy import Policy
from schemas.vocabulary import AnomalyKind, AttemptState, FaultClass, Refusal
from streams.decide import advice as advices
from streams.decide import incident as incidents
from streams.decide.state import Attempt, JobState, Pace
from streams.decide.turn import Turn

BASELINE_FROM = 5
"""Step times from which the first baseline is taken, their median: the first steps compile and warm up."""
DRIFT = 0.05
"""Weight of a normal step time in the baseline, so that it follows slow, legitimate change."""


def pace_after(attempt: Attempt, seconds: float | None, policy: Policy) -> Pace:
    """The attempt's pace with one step time more. One that includes a save or an evaluation says nothing."""
    after_phase = attempt.stall is not None and not attempt.stall.stepped
    if seconds is None or seconds <= 0 or after_phase or attempt.state is not AttemptState.RUNNING:
        return attempt.pace
    return paced(attempt.pace, seconds, policy)


def judged(turn: Turn, job: JobState, before: Pace, attempt: Attempt, seconds: float | None) -> JobState | None:
    """Tell of an attempt whose pace became that of a straggler, or is no longer; None where neither is so."""
    if attempt.pace.reported == before.reported or seconds is None:
        return None
    return _found(turn, job, attempt, seconds) if attempt.pace.reported else _over(turn, job, attempt)


def paced(pace: Pace, seconds: float, policy: Policy) -> Pace:
    """What is known of the pace after one more step time; `reported` while it is that of a straggler."""
    if pace.baseline is None:
        first = (*pace.first, seconds)
        baseline = sorted(first)[BASELINE_FROM // 2] if len(first) >= BASELINE_FROM else None
        return replace(pace, first=first[:BASELINE_FROM], baseline=baseline)
    if seconds > policy.straggler_factor * pace.baseline:
        slow = pace.slow + 1
        return replace(pace, slow=slow, normal=0, reported=pace.reported or slow >= policy.straggler_samples)
    normal = pace.normal + 1
    return replace(
        pace,
        baseline=(1 - DRIFT) * pace.baseline + DRIFT * seconds,
        slow=0,
        normal=normal,
        reported=pace.reported and normal < policy.straggler_samples,
    )


def _found(turn: Turn, job: JobState, attempt: Attempt, seconds: float) -> JobState:
    """Restart it where that is enabled; while something else is decided about the attempt, the next slow step may."""
    baseline = attempt.pace.baseline or seconds
    text = f"steps take {seconds:.3g} s, {seconds / baseline:.1f} times this attempt's own {baseline:.3g} s"
    if turn.policy.straggler_recovery and advices.is_busy(attempt):
        return job.with_attempt(replace(attempt, pace=replace(attempt.pace, reported=False)))
    if turn.policy.straggler_recovery:
        return incidents.open_without_line(turn, job, attempt, AnomalyKind.STRAGGLER, FaultClass.STRAGGLER, text)
    incident_id = derived_id("straggler", attempt.id.key, turn.cause)
    turn.emit(
        AnomalyDetected(
            turn.next_id(),
            turn.cause,
            attempt.id,
            turn.now_ms,
            incident_id,
            AnomalyKind.STRAGGLER,
            FaultClass.STRAGGLER,
            text,
            None,
        )
    )
    why = f"The attempt became slow: {text}. Restarting stragglers is not enabled, so this is recorded only."
    turn.emit(
        AdviceWithheld(turn.next_id(), turn.cause, attempt.id, turn.now_ms, incident_id, Refusal.RECORDED_ONLY, why)
    )
    return job.with_attempt(attempt)


def _over(turn: Turn, job: JobState, attempt: Attempt) -> JobState:
    """The pace is normal again: Advice that the straggler brought is withdrawn."""
    incident = attempt.incident
    job = job.with_attempt(attempt)
    if incident is None or incident.kind is not AnomalyKind.STRAGGLER:
        return job
    return advices.withdraw(turn, job, attempt, "the attempt's pace is normal again")
