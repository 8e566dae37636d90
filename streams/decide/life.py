"""The life of a job's attempts, from what the scheduler shows.

An attempt index is Slurm's restart count. SubmitTime is rewritten at every requeue, so a new incarnation (the job id
used again) begins only where a restart count not above the highest known comes with a later submit time.
"""

from __future__ import annotations

from operator import attrgetter

from schemas.decisions import AttemptMoved, AttemptOpened, AttemptView, JobClosed, JobView
from schemas.facts import JobObserved
from schemas.frozen import replace
from schemas.identity import AttemptId
from schemas.vocabulary import FAILURE_STATES, AttemptState, Disposition, Hold, Refusal, Resolution, TimerPurpose
from streams.decide import advice as advices
from streams.decide import allocation, stall
from streams.decide import incident as incidents
from streams.decide.aside import set_aside
from streams.decide.state import KEPT_ATTEMPTS, NO_PACE, Attempt, JobState, empty
from streams.decide.turn import Turn

# What a view of a job shows; compared at every fact, so as plain tuples. An attempt's are the fields of AttemptView.
_SHOWN_OF_JOB = attrgetter("raw_job_id", "workflow_id", "aps", "mode", "quarantined", "closed")
_SHOWN = attrgetter("id", "submit_time", "start_ms", "end_ms", "state", "nodes", "log_paths")


def observe(turn: Turn, job: JobState, seen: JobObserved) -> JobState:
    """Take in one look of the scheduler controller at this job."""
    attempt_id = _identify(job, seen)
    if isinstance(attempt_id, Refusal):
        text = f"restart count {seen.restart_count}, submitted {seen.submit_time}, is no attempt that may be opened"
        return set_aside(turn, job, attempt_id, text)
    if attempt_id.incarnation != job.incarnation:
        job = _new_incarnation(turn, job, attempt_id)
    latest = job.latest
    if latest is None or attempt_id.index >= latest.id.index:
        job = _described(job, seen)
    known = job.attempt(attempt_id)
    earlier = job.attempts if known is None else ()
    if known is None:
        job, known = _open(turn, job, attempt_id, seen)
    job = _move(turn, job, known, seen)
    for before in earlier:
        if before.incident is not None and job.attempt(before.id) is not None:
            job = incidents.superseded(turn, job, job.current(before))
    attempt = job.attempt(attempt_id)
    return job if attempt is None else advices.reconcile(turn, job, seen, attempt)


def close(turn: Turn, job: JobState) -> JobState:
    """Put a final job's state away, leaving the marker that tells late facts and reused ids apart."""
    latest = job.latest
    if latest is None:
        return job
    for attempt in job.attempts:
        job = advices.resolve(
            turn, job, attempt, Disposition.ABANDONED, Resolution.JOB_LEFT_SCHEDULER, "the job was closed"
        )
    for attempt in job.attempts:
        turn.clear_timers(attempt)
    turn.emit(JobClosed(turn.next_id(), turn.cause, latest.id, turn.now_ms))
    marker = empty(job.cluster, job.job_id)
    return replace(
        marker,
        incarnation=job.incarnation,
        raw_job_id=job.raw_job_id,
        workflow_id=job.workflow_id,
        policy=job.policy,
        logic=job.logic,
        marks=job.marks,
        advice_count=job.advice_count,
        quarantined=job.quarantined,
        highest_index=job.highest_index,
        latest_submit_time=job.latest_submit_time,
        closed=True,
    )


def publish_view(turn: Turn, before: JobState, job: JobState) -> None:
    """Tell watch, the scheduler controller and the node decider what there is now, where it differs."""
    if not (job.attempts or job.closed) or _looks_the_same(before, job):
        return
    turn.emit(
        JobView(
            event_id=turn.next_id(),
            cause=turn.cause,
            cluster=job.cluster,
            job_id=job.job_id,
            raw_job_id=job.raw_job_id,
            workflow_id=job.workflow_id,
            aps=job.aps,
            mode=job.mode,
            attempts=tuple(AttemptView(*_SHOWN(attempt)) for attempt in job.attempts),
            quarantined=job.quarantined,
            closed=job.closed,
            viewed_ms=turn.now_ms,
        )
    )
    allocation.publish(turn, before, job)


def _looks_the_same(before: JobState, job: JobState) -> bool:
    return (
        _SHOWN_OF_JOB(job) == _SHOWN_OF_JOB(before)
        and len(job.attempts) == len(before.attempts)
        and all(a is b or _SHOWN(a) == _SHOWN(b) for a, b in zip(job.attempts, before.attempts, strict=True))
    )


def _identify(job: JobState, seen: JobObserved) -> AttemptId | Refusal:
    """Which attempt Slurm shows, or why it can't be one."""
    same = AttemptId(job.cluster, job.job_id, job.incarnation, seen.restart_count)
    if seen.restart_count <= job.highest_index:
        known = job.attempt(same)
        if known is not None and (known.submit_time == seen.submit_time or _not_yet_rewritten(job, known)):
            return known.id
        if seen.submit_time <= job.latest_submit_time:
            return Refusal.LATE
        return replace(same, incarnation=seen.submit_time) if seen.in_controller else Refusal.LATE
    if not seen.in_controller or seen.submit_time < job.latest_submit_time:
        return Refusal.LATE
    return replace(same, incarnation=job.incarnation or seen.submit_time)


def _not_yet_rewritten(job: JobState, known: Attempt) -> bool:
    """Slurm was seen between raising the restart count and rewriting SubmitTime: the later time is a correction."""
    before = next((a for a in job.attempts if a.id.index == known.id.index - 1), None)
    return before is not None and before.submit_time == known.submit_time


def _new_incarnation(turn: Turn, job: JobState, attempt_id: AttemptId) -> JobState:
    """The job id was used again: nothing is inherited but the positions, which belong to the sources."""
    for attempt in job.attempts:
        job = advices.resolve(
            turn,
            job,
            attempt,
            Disposition.ABANDONED,
            Resolution.ATTEMPT_SUPERSEDED,
            "the job id was used again for another job",
        )
    for attempt in job.attempts:
        turn.clear_timers(attempt)
    fresh = empty(job.cluster, job.job_id)
    return replace(
        fresh,
        incarnation=attempt_id.incarnation,
        marks=job.marks,
        advice_count=job.advice_count,
        quarantined=job.quarantined,
    )


def _described(job: JobState, seen: JobObserved) -> JobState:
    return replace(
        job,
        raw_job_id=seen.raw_job_id,
        name=seen.name,
        user=seen.user,
        partition=seen.partition,
        workflow_id=seen.workflow_id,
        aps=seen.aps,
        mode=seen.mode,
        mode_reason=seen.aps_error or seen.mode_reason,
        requeueable=seen.requeue and seen.batch,
        policy=seen.policy,
        logic=seen.logic,
        closed=False,
    )


def _open(turn: Turn, job: JobState, attempt_id: AttemptId, seen: JobObserved) -> tuple[JobState, Attempt]:
    for earlier in job.attempts:
        job = _supersede(turn, job, earlier, seen)
    turn.emit(
        AttemptOpened(
            turn.next_id(),
            turn.cause,
            attempt_id,
            turn.now_ms,
            seen.submit_time,
            seen.name,
            seen.user,
            seen.partition,
            seen.workflow_id,
            seen.mode,
            seen.aps_error or seen.mode_reason,
        )
    )
    opened = Attempt(
        id=attempt_id,
        submit_time=seen.submit_time,
        state=AttemptState.UNKNOWN,
        hold=Hold.NONE,
        start_ms=None,
        end_ms=None,
        exit_code=None,
        nodes=(),
        log_paths=(),
        marks=(),
        step=None,
        progress_ms=None,
        checkpoint_step=None,
        stall=None,
        pace=NO_PACE,
        failure_counted=False,
        acted=False,
        incidents=0,
        incident=None,
        heard=(),
        advice=None,
        timers=(),
        timer_generation=0,
    )
    for dropped in job.attempts[: -KEPT_ATTEMPTS + 1]:
        turn.clear_timers(dropped)
    job = replace(
        job,
        incarnation=attempt_id.incarnation,
        attempts=(*job.attempts[-KEPT_ATTEMPTS + 1 :], opened),
        highest_index=attempt_id.index,
        latest_submit_time=seen.submit_time,
    )
    return job, opened


def _supersede(turn: Turn, job: JobState, earlier: Attempt, seen: JobObserved) -> JobState:
    """A later attempt exists: an earlier one that was not final has been requeued."""
    for purpose in (TimerPurpose.JOB_CLOSE, TimerPurpose.STALL, TimerPurpose.STALL_ANSWER):
        earlier = turn.clear_timer(earlier, purpose)
    if earlier.final:
        return job.with_attempt(earlier)
    turn.emit(
        AttemptMoved(
            turn.next_id(),
            turn.cause,
            earlier.id,
            turn.now_ms,
            earlier.state,
            AttemptState.REQUEUED,
            earlier.nodes,
            f"Slurm shows restart count {seen.restart_count}",
            seen.position.offset,
        )
    )
    ended = earlier.end_ms if earlier.end_ms is not None else seen.submit_time * 1000
    return job.with_attempt(replace(earlier, state=AttemptState.REQUEUED, end_ms=ended))


def _move(turn: Turn, job: JobState, known: Attempt, seen: JobObserved) -> JobState:
    """Bring the attempt to what Slurm shows, and say what follows from a change of state."""
    if known.final and seen.state is AttemptState.REQUEUED:
        return job
    attempt = replace(
        known,
        submit_time=seen.submit_time,
        state=seen.state,
        hold=seen.hold,
        start_ms=seen.start_ms if seen.start_ms is not None else known.start_ms,
        end_ms=seen.end_ms if seen.end_ms is not None else known.end_ms,
        exit_code=seen.exit_code,
        nodes=seen.nodes or known.nodes,
        log_paths=seen.log_paths or known.log_paths,
    )
    if seen.submit_time > job.latest_submit_time:
        job = replace(job, latest_submit_time=seen.submit_time)
    if attempt.state is known.state:
        return job.with_attempt(attempt)
    turn.emit(
        AttemptMoved(
            turn.next_id(),
            turn.cause,
            attempt.id,
            turn.now_ms,
            known.state,
            attempt.state,
            attempt.nodes,
            _detail(seen),
            seen.position.offset,
        )
    )
    if not attempt.final:
        attempt = turn.clear_timer(attempt, TimerPurpose.JOB_CLOSE)
        job = job.with_attempt(attempt)
        begins = attempt.stall is None and attempt.incident is None
        if attempt.state is not AttemptState.RUNNING or begins:
            return job
        job = stall.runs(turn, job, job.current(attempt), suspended=known.state is AttemptState.SUSPENDED)
        return incidents.resumed(turn, job, job.current(attempt))
    attempt = turn.clear_timer(turn.clear_timer(attempt, TimerPurpose.STALL), TimerPurpose.STALL_ANSWER)
    if attempt.id.index == job.highest_index:
        attempt = turn.set_timer(attempt, TimerPurpose.JOB_CLOSE, turn.after(turn.policy.job_close_s))
    job = job.with_attempt(attempt)
    if attempt.state in FAILURE_STATES:
        return incidents.attempt_failed(turn, job, attempt)
    return incidents.attempt_ended_otherwise(turn, job, attempt)


def _detail(seen: JobObserved) -> str:
    words = [word for word in (seen.state_reason, seen.state_description) if word and word != "None"]
    if seen.exit_code:
        signal, status = seen.exit_code & 0x7F, seen.exit_code >> 8
        words.append(f"killed by signal {signal}" if signal else f"exit code {status}")
    return ", ".join(words)
