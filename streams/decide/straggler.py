"""Stragglers: steps that became slower, for good, than the attempt's own steps were.

All-reduce makes every rank as slow as the slowest, so step time names no node. By default a straggler is recorded;
restarting it must be enabled separately.
"""

from __future__ import annotations

from schemas.decisions import AdviceWithheld, AnomalyDetected
from schemas.frozen import replace
from schemas.identity import derived_id
from schemas.vocabulary import AnomalyKind, AttemptState, Disposition, FaultClass, Refusal, Resolution
from streams.decide import advice as advices
from streams.decide import incident as incidents
from streams.decide.state import Attempt, JobState
from streams.decide.turn import Turn

BASELINE_FROM = 5
"""Step times from which the first baseline is taken, their median: the first steps compile and warm up."""
DRIFT = 0.05
"""Weight of a normal step time in the baseline, so that it follows slow, legitimate change."""


def stepped(turn: Turn, job: JobState, attempt: Attempt, seconds: float | None, *, in_phase: bool) -> JobState:
    """Take in one step time. One that includes a save or an evaluation says nothing."""
    if seconds is None or seconds <= 0 or in_phase or attempt.state is not AttemptState.RUNNING:
        return job
    pace = attempt.pace
    if pace.baseline is None:
        first = (*pace.first, seconds)
        baseline = sorted(first)[BASELINE_FROM // 2] if len(first) >= BASELINE_FROM else None
        return job.with_attempt(replace(attempt, pace=replace(pace, first=first[:BASELINE_FROM], baseline=baseline)))
    slow = seconds > turn.policy.straggler_factor * pace.baseline
    pace = replace(
        pace,
        baseline=pace.baseline if slow else (1 - DRIFT) * pace.baseline + DRIFT * seconds,
        slow=pace.slow + 1 if slow else 0,
        normal=0 if slow else pace.normal + 1,
    )
    attempt = replace(attempt, pace=pace)
    if not pace.reported and pace.slow >= turn.policy.straggler_samples:
        return _found(turn, job, replace(attempt, pace=replace(pace, reported=True)), seconds)
    if pace.reported and pace.normal >= turn.policy.straggler_samples:
        return _over(turn, job, replace(attempt, pace=replace(pace, reported=False)))
    return job.with_attempt(attempt)


def _found(turn: Turn, job: JobState, attempt: Attempt, seconds: float) -> JobState:
    baseline = attempt.pace.baseline or seconds
    text = f"steps take {seconds:.3g} s, {seconds / baseline:.1f} times this attempt's own {baseline:.3g} s"
    incident = attempt.incident
    busy = (incident is not None and not incident.settled) or attempt.advice is not None
    if turn.policy.straggler_recovery and not busy:
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
    return advices.resolve(
        turn, job, attempt, Disposition.ABANDONED, Resolution.PROGRESS_RESUMED, "the attempt's pace is normal again"
    )
