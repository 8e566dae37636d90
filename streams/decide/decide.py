"""The decider's front door: one fact in, the new state and what was concluded out."""

from __future__ import annotations

from collections.abc import Mapping

from schemas.decisions import Emitted, FactParked, QuarantineEnded, TimerCleared
from schemas.facts import (
    ActionEnded,
    ActionIntended,
    ActionRefused,
    AttemptFact,
    AttributionAnswered,
    BlindReported,
    CheckpointLoaded,
    CheckpointSaved,
    CommandGiven,
    Fact,
    JobObserved,
    NodeFaultReported,
    OutputChecked,
    PhaseEntered,
    ProgressObserved,
    QuarantineLifted,
    SignatureMatched,
    TimerFired,
    job_of,
)
from schemas.frozen import replace
from schemas.identity import Position
from schemas.policy import DEFAULT_POLICY, SUPPORTED_LOGIC, Policy
from schemas.vocabulary import Outcome, Refusal, TimerPurpose
from streams.decide import advice as advices
from streams.decide import command, incident, life, lines, stall, straggler
from streams.decide.aside import set_aside
from streams.decide.rules import rules_of
from streams.decide.state import Attempt, JobState, advance, empty
from streams.decide.turn import Turn


class MissingPolicy(LookupError):
    """A fact names a policy document or a logic version that this worker does not have: it must stop, not guess."""


Decided = tuple[JobState, tuple[Emitted, ...]]

# A log is read by one watch at a time, and its facts belong to the attempt; all other sources span the job.
LogFact = SignatureMatched | ProgressObserved | CheckpointSaved | CheckpointLoaded | PhaseEntered | BlindReported


def decide(state: JobState | None, fact: Fact, recorded_ms: int, policies: Mapping[str, Policy]) -> Decided:
    """Return the job's new state and the events concluded from one fact.

    `recorded_ms` is the record's timestamp in the journal; the running maximum of it is the only now. A fact that was
    already taken in changes nothing and concludes nothing. Raises MissingPolicy.
    """
    turn, before, job = _decide(state, fact, recorded_ms, policies)
    life.publish_view(turn, before, job)
    return job, tuple(turn.emitted)


def conclude(state: JobState | None, fact: Fact, recorded_ms: int, policies: Mapping[str, Policy]) -> Decided:
    """What `decide` does, without the views of the job, which follow from the state alone and are in no record."""
    turn, _, job = _decide(state, fact, recorded_ms, policies)
    return job, tuple(turn.emitted)


def _decide(
    state: JobState | None, fact: Fact, recorded_ms: int, policies: Mapping[str, Policy]
) -> tuple[Turn, JobState, JobState]:
    before = empty(*job_of(fact).split("/")) if state is None else state
    digest, logic = (fact.policy, fact.logic) if isinstance(fact, JobObserved) else (before.policy, before.logic)
    now_ms = max(before.now_ms, recorded_ms)
    turn = Turn(fact.event_id, now_ms, _policy(digest, logic, policies), rules_of(logic))
    job = _take(turn, before, fact)  # where it copies the job anyway, the time is set with the rest
    return turn, before, job if job.now_ms == now_ms else replace(job, now_ms=now_ms)


def park(state: JobState | None, key: str, record: tuple[str, int, int], reason: str, recorded_ms: int) -> Decided:
    """Quarantine the job of a record that can't be handled: no new Advice until a person has looked.

    `record` is its topic, partition and offset.
    """
    cluster, _, job_id = key.partition("/")
    job = empty(cluster, job_id) if state is None else state
    before = replace(job, now_ms=max(job.now_ms, recorded_ms))
    job = replace(before, quarantined=True)
    topic, partition, offset = record
    turn = Turn(f"{topic}/{partition}/{offset}", job.now_ms, DEFAULT_POLICY, rules_of(job.logic))
    turn.emit(FactParked(turn.next_id(), turn.cause, key, job.now_ms, topic, partition, offset, reason))
    life.publish_view(turn, before, job)
    return job, tuple(turn.emitted)


def _policy(digest: str, logic: int, policies: Mapping[str, Policy]) -> Policy:
    if logic not in SUPPORTED_LOGIC and (digest or logic):
        raise MissingPolicy(f"logic {logic} is in force and this worker has {sorted(SUPPORTED_LOGIC)}: upgrade it")
    if not digest:
        return DEFAULT_POLICY
    policy = policies.get(digest)
    if policy is None:
        raise MissingPolicy(f"policy {digest} is in force and its document is not in recovery.policies: publish it")
    return policy


def _take(turn: Turn, job: JobState, fact: Fact) -> JobState:
    if isinstance(fact, LogFact):
        return _take_log_fact(turn, job, fact)
    if isinstance(fact, TimerFired):
        return _take_timer(turn, job, fact)
    marks = advance(job.marks, fact.position)
    if marks is None:
        return job
    job = replace(job, marks=marks, now_ms=turn.now_ms)
    if isinstance(fact, JobObserved):
        return life.observe(turn, job, fact)
    if isinstance(fact, QuarantineLifted):
        turn.emit(
            QuarantineEnded(turn.next_id(), turn.cause, job.cluster, job.job_id, turn.now_ms, fact.by, fact.reason)
        )
        return replace(job, quarantined=False)
    attempt = job.attempt(fact.attempt)
    if attempt is None:
        return _unknown_attempt(turn, job, fact)
    if isinstance(fact, CommandGiven):
        return command.given(turn, job, attempt, fact)
    if isinstance(fact, AttributionAnswered):
        return incident.answered(turn, job, attempt, fact)
    if isinstance(fact, NodeFaultReported):
        return incident.node_fault_reported(turn, job, attempt, fact)
    if isinstance(fact, OutputChecked):
        return stall.answered(turn, job, attempt, fact)
    if isinstance(fact, ActionIntended):
        return job.with_attempt(replace(attempt, acted=True))
    assert isinstance(fact, ActionEnded | ActionRefused)
    refused = isinstance(fact, ActionEnded) and fact.outcome is Outcome.REFUSED
    return job.with_attempt(replace(attempt, acted=False)) if refused and attempt.acted else job


def _unknown_attempt(turn: Turn, job: JobState, fact: AttemptFact) -> JobState:
    reason = Refusal.LATE if job.closed else Refusal.OTHER_ATTEMPT
    return set_aside(turn, job, reason, f"{type(fact).__name__} for {fact.attempt}, which is not open here")


def _take_log_fact(turn: Turn, job: JobState, fact: LogFact) -> JobState:
    attempt = job.attempt(fact.attempt)
    if attempt is None:
        return _unknown_attempt(turn, job, fact)
    marks = advance(attempt.marks, fact.position)
    if marks is None:
        return job
    if isinstance(fact, ProgressObserved):
        return _take_progress(turn, job, attempt, marks, fact)
    attempt = replace(attempt, marks=marks)
    if isinstance(fact, CheckpointSaved):
        best = fact.step if attempt.checkpoint_step is None else max(attempt.checkpoint_step, fact.step)
        attempt = replace(attempt, checkpoint_step=best)
        return stall.saved(turn, job, attempt)
    if isinstance(fact, SignatureMatched):
        return incident.line_matched(turn, job, attempt, fact)
    job = job.with_attempt(attempt)
    if isinstance(fact, BlindReported):
        return job.with_attempt(replace(attempt, blind=bool(fact.kinds)))
    if isinstance(fact, PhaseEntered):
        return stall.phase_entered(turn, job, attempt, fact)
    return stall.loaded(turn, job, attempt)


def _take_progress(
    turn: Turn, job: JobState, attempt: Attempt, marks: tuple[Position, ...], fact: ProgressObserved
) -> JobState:
    """What most facts are: so the attempt is copied once, and put into the job once."""
    before, moved = attempt, stall.moves(attempt.stall, fact.step)
    attempt = replace(
        before,
        marks=marks,
        step=fact.step,
        progress_ms=turn.now_ms,
        pace=straggler.pace_after(before, fact.seconds_per_step, turn.policy),
        stall=stall.after_step(job, before.stall, fact, turn.now_ms) if moved else before.stall,
    )
    if moved and attempt.heard:
        attempt = lines.outlive(attempt, fact, turn.now_ms)
    judged = straggler.judged(turn, job, before.pace, attempt, fact.seconds_per_step)
    if judged is not None:
        job, attempt = judged, judged.current(attempt)
    if moved:
        attempt = stall.moved_on(turn, job, attempt)
    job = replace(job, now_ms=turn.now_ms, attempts=job.attempts_with(attempt))
    return incident.progressed(turn, job, attempt, fact) if moved and attempt.incident is not None else job


def _take_timer(turn: Turn, job: JobState, fact: TimerFired) -> JobState:
    """A firing of the pending generation is due by definition. What nobody waits for any more is withdrawn."""
    attempt = job.attempt(fact.attempt)
    pending = attempt.timer(fact.purpose) if attempt is not None else None
    if attempt is None or pending is None:
        turn.emit(TimerCleared(fact.attempt, fact.purpose))
        return job
    if pending.generation != fact.generation:
        return job
    attempt = replace(attempt, timers=tuple(timer for timer in attempt.timers if timer is not pending))
    job = _fire(turn, job.with_attempt(attempt), attempt, fact)
    after = job.attempt(fact.attempt)
    if after is None or after.timer(fact.purpose) is None:
        turn.emit(TimerCleared(fact.attempt, fact.purpose))
    return job


def _fire(turn: Turn, job: JobState, attempt: Attempt, fact: TimerFired) -> JobState:
    if fact.purpose is TimerPurpose.INCIDENT_QUIET:
        return incident.quiet_timer_fired(turn, job, attempt, fact)
    if fact.purpose is TimerPurpose.CRASH_FALLBACK:
        return incident.fallback_timer_fired(turn, job, attempt)
    if fact.purpose is TimerPurpose.ATTRIBUTION:
        return incident.attribution_timer_fired(turn, job, attempt)
    if fact.purpose is TimerPurpose.STALL:
        return stall.timer_fired(turn, job, attempt, fact)
    if fact.purpose is TimerPurpose.STALL_ANSWER:
        return stall.answer_timer_fired(turn, job, attempt)
    if fact.purpose is TimerPurpose.ADVICE_RENEWAL:
        return advices.renew(turn, job, attempt)
    return life.close(turn, job)
