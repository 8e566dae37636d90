"""Advice: issued by the decider alone, with a rising generation, and resolved only by a fresh observation."""

from __future__ import annotations

from schemas.decisions import Advice, AdviceIssued, AdviceResolved
from schemas.facts import JobObserved
from schemas.frozen import replace
from schemas.vocabulary import (
    FAILURE_STATES,
    FINAL_STATES,
    AttemptState,
    DesiredState,
    Disposition,
    Hold,
    Resolution,
    TimerPurpose,
)
from streams.decide.retry import Verdict
from streams.decide.state import Attempt, JobState
from streams.decide.turn import Turn

EPOCH_SHIFT = 32
RENEW_AT = 0.8
"""Advice against a running attempt is renewed after this share of its validity, so that it never lapses by lateness."""

PENDING_STATES = frozenset({AttemptState.PENDING, AttemptState.HELD})


def open_advice(attempt: Attempt) -> Advice | None:
    """The attempt's Advice while it is neither converged nor abandoned."""
    advice = attempt.advice
    return advice if advice is not None and advice.disposition is Disposition.PENDING else None


def is_decided(attempt: Attempt) -> bool:
    """Whether Advice says what becomes of the attempt: it is open, or did not end with the attempt's going on."""
    advice = attempt.advice
    if advice is None or advice.desired_state is DesiredState.RELEASED:
        return False
    return advice.resolution is not Resolution.PROGRESS_RESUMED


def is_command(advice: Advice) -> bool:
    """Whether a person asked for it: then no observation takes it back."""
    return not advice.incident_id


def is_busy(attempt: Attempt) -> bool:
    """Whether something is being decided about the attempt: an incident that will be settled by itself, or open Advice.

    One that waits for the attempt's end, for no progress was ever seen, is not.
    """
    incident = attempt.incident
    settles = incident is not None and not incident.settled
    if settles and incident is not None and incident.finding is not None:
        settles = attempt.timer(TimerPurpose.INCIDENT_QUIET) is not None
    return settles or open_advice(attempt) is not None


def issue(turn: Turn, job: JobState, attempt: Attempt, verdict: Verdict, incident_id: str) -> JobState:
    """Issue the next generation of the attempt's Advice; an open one is abandoned as superseded."""
    if verdict.desired is None:
        raise ValueError("a verdict without a desired state gives no Advice")
    if open_advice(attempt) is not None:
        job = resolve(turn, job, attempt, Disposition.ABANDONED, Resolution.SUPERSEDED, "a newer generation follows")
        attempt = job.current(attempt)
    running = attempt.state not in FINAL_STATES and attempt.state not in PENDING_STATES
    event_id = turn.next_id()
    advice = Advice(
        event_id=event_id,
        attempt=attempt.id,
        submit_time=attempt.submit_time,
        generation=(turn.policy.cluster_epoch << EPOCH_SHIFT) + job.advice_count + 1,
        desired_state=verdict.desired,
        exclude_nodes=verdict.exclude_nodes,
        disposition=Disposition.PENDING,
        resolution=Resolution.UNSPECIFIED,
        reason=verdict.reason,
        explanation=verdict.explanation,
        incident_id=incident_id,
        workflow_id=job.workflow_id,
        issued_ms=turn.now_ms,
        resolved_ms=None,
        valid_until_ms=turn.after(turn.policy.advice_valid_s) if running else None,
        policy=job.policy,
        logic=job.logic,
    )
    turn.emit(AdviceIssued(event_id, turn.cause, attempt.id, turn.now_ms, advice))
    turn.emit(advice)
    attempt = replace(attempt, advice=advice)
    if running:
        attempt = turn.set_timer(
            attempt, TimerPurpose.ADVICE_RENEWAL, turn.after(turn.policy.advice_valid_s * RENEW_AT)
        )
    excluded = tuple(sorted({*job.excluded, *verdict.exclude_nodes}))
    return replace(job, advice_count=job.advice_count + 1, excluded=excluded).with_attempt(attempt)


def renew(turn: Turn, job: JobState, attempt: Attempt) -> JobState:
    """Issue an open Advice anew: for a running attempt with a later validity, for an ended one without any."""
    advice = open_advice(attempt)
    if advice is None or advice.valid_until_ms is None:
        return job
    again = Verdict(advice.desired_state, advice.reason, advice.explanation, advice.exclude_nodes)
    return issue(turn, job, attempt, again, advice.incident_id)


def resolve(
    turn: Turn, job: JobState, attempt: Attempt, disposition: Disposition, resolution: Resolution, detail: str
) -> JobState:
    """Bring the attempt's open Advice to its end."""
    advice = open_advice(attempt)
    if advice is None:
        return job
    turn.emit(
        AdviceResolved(
            turn.next_id(), turn.cause, attempt.id, turn.now_ms, advice.generation, disposition, resolution, detail
        )
    )
    ended = replace(advice, disposition=disposition, resolution=resolution, resolved_ms=turn.now_ms)
    turn.emit(ended)
    attempt = turn.clear_timer(replace(attempt, advice=ended), TimerPurpose.ADVICE_RENEWAL)
    return job.with_attempt(attempt)


def withdraw(turn: Turn, job: JobState, attempt: Attempt, detail: str) -> JobState:
    """Training moves on: what was concluded of the attempt was wrong, and excludes no node.

    Not what a person asked for, nor what the scheduler is already doing: of that a late step says nothing.
    """
    advice = open_advice(attempt)
    if advice is None or is_command(advice) or attempt.acted:
        return job
    job = resolve(turn, job, attempt, Disposition.ABANDONED, Resolution.PROGRESS_RESUMED, detail)
    return replace(job, excluded=tuple(node for node in job.excluded if node not in advice.exclude_nodes))


def reconcile(turn: Turn, job: JobState, seen: JobObserved, seen_attempt: Attempt) -> JobState:
    """Hold every open Advice of the job against what the scheduler shows now."""
    for attempt in job.attempts:
        advice = open_advice(attempt)
        if advice is None:
            continue
        ending = _ending(advice, attempt, seen, seen_attempt)
        if ending is not None:
            job = resolve(turn, job, attempt, *ending)
    return job


Ending = tuple[Disposition, Resolution, str]


def _ending(advice: Advice, attempt: Attempt, seen: JobObserved, seen_attempt: Attempt) -> Ending | None:
    later = seen_attempt.id.index - attempt.id.index
    if seen_attempt.id.incarnation != attempt.id.incarnation or later > 1:
        return _abandoned(Resolution.ATTEMPT_SUPERSEDED, f"Slurm shows attempt {seen_attempt.id.index}")
    if later < 0:
        return None
    if later == 0:
        return _ending_on_source(advice, attempt, seen)
    return _ending_on_successor(advice, attempt, seen)


def _ending_on_source(advice: Advice, attempt: Attempt, seen: JobObserved) -> Ending | None:
    """What a look at the source attempt itself concludes."""
    if seen.state in FINAL_STATES:
        if advice.desired_state is DesiredState.TERMINATED:
            return _converged(advice, attempt, seen, f"attempt {attempt.id.index} is {seen.state}")
        restartable = advice.desired_state is DesiredState.RESTARTED and seen.state in FAILURE_STATES
        if not restartable:
            return _abandoned(Resolution.ATTEMPT_ENDED, f"attempt {attempt.id.index} is {seen.state}")
        if not seen.in_controller:
            return _abandoned(Resolution.JOB_LEFT_SCHEDULER, "slurmctld no longer shows the job")
        return None
    if advice.desired_state is DesiredState.RELEASED and seen.hold is Hold.NONE:
        return _converged(advice, attempt, seen, f"attempt {attempt.id.index} is not held")
    return None


def _ending_on_successor(advice: Advice, attempt: Attempt, seen: JobObserved) -> Ending | None:
    """What a look at the next attempt concludes about Advice for this one."""
    if seen.state is AttemptState.CANCELLED:
        if advice.desired_state is DesiredState.TERMINATED:
            return _converged(advice, attempt, seen, f"attempt {seen.restart_count}, which was held, is cancelled")
        return _abandoned(Resolution.ATTEMPT_ENDED, f"attempt {seen.restart_count} was cancelled")
    if seen.hold is not Hold.NONE:
        return None
    if advice.desired_state is not DesiredState.RESTARTED:
        return _abandoned(Resolution.ATTEMPT_SUPERSEDED, f"attempt {seen.restart_count} runs or may run")
    missing = sorted(set(advice.exclude_nodes) - set(seen.excluded_nodes))
    if missing:
        return _abandoned(
            Resolution.ATTEMPT_SUPERSEDED,
            f"attempt {seen.restart_count} may run and {', '.join(missing)} is not excluded from it",
        )
    return _converged(advice, attempt, seen, f"attempt {seen.restart_count} is {seen.state} and not held")


def _converged(advice: Advice, attempt: Attempt, seen: JobObserved, detail: str) -> Ending | None:
    """Only a look that had this generation in view proves anything about it."""
    if seen.advice_generation != advice.generation:
        return None
    acted = attempt.acted
    return (
        Disposition.CONVERGED,
        Resolution.DESIRED_STATE_OBSERVED if acted else Resolution.ALREADY_SATISFIED,
        detail,
    )


def _abandoned(resolution: Resolution, detail: str) -> Ending:
    return Disposition.ABANDONED, resolution, detail
