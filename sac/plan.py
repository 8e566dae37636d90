"""What to do next for one job: at most one command, or the reason for none. Pure.

Level-triggered: what Slurm shows now is compared with the Advice, and whatever already holds is skipped, so the same
question asked again after the effect was seen gives nothing more. Advice for attempt n is acted on only where Slurm
shows restart count n with its SubmitTime, or n+1 and our own requeuehold of n is on record. After a command of
unknown outcome nothing at all is done for the job until its effect can no longer arrive.

An empty plan means: nothing to do, or nothing yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from sac.ledger import Ledger, action_id, refusal_id
from sac.mode import Granted, permission
from sac.steps import Intent, Refused, Situation, Step
from schemas.decisions import Advice
from schemas.facts import JobObserved
from schemas.identity import AttemptId
from schemas.vocabulary import (
    FAILURE_STATES,
    FINAL_STATES,
    AttemptState,
    DesiredState,
    Hold,
    Mode,
    Operation,
    Outcome,
    Refusal,
)

SETTLE_TIMEOUTS = 3
"""The effect of an unanswered command can arrive for this many command timeouts."""
RECENT_MS = 60_000
"""An early hold is for an attempt that has just failed; an older failure was somebody's to see."""
RELAUNCH_MS = 2_000
"""No release before this long after the requeue: a job relaunched on a node within the second in which its last
credential was revoked there fails with no output."""
RETRY_MS = 10_000
RETRY_MAX_MS = 300_000
HOLD_TRIES_AT_ONCE = 2

RESTARTABLE = FAILURE_STATES | {AttemptState.RUNNING, AttemptState.SUSPENDED, AttemptState.TIMEOUT}
WAITING = frozenset({AttemptState.COMPLETING, AttemptState.CONFIGURING})


class CommandLimits(Protocol):
    """How long a Slurm command may take."""

    @property
    def command_timeout_s(self) -> float: ...


class PlanSettings(Protocol):
    """The settings that planning depends on."""

    @property
    def sac(self) -> Granted: ...

    @property
    def slurm(self) -> CommandLimits: ...


def plan(situation: Situation, ledger: Ledger, settings: PlanSettings, now_ms: int) -> list[Step]:
    """Return the next step for one job: one Intent, or one Refused that is not on record yet, or nothing."""
    advice = situation.open_advice
    step = _for_advice(situation, advice, ledger, settings, now_ms) if advice is not None else None
    if advice is None:
        step = _early_hold(situation, ledger, settings, now_ms)
    if step is None or (isinstance(step, Refused) and ledger.refused(step.action_id, step.reason)):
        return []
    return [step]


def _for_advice(s: Situation, advice: Advice, ledger: Ledger, settings: PlanSettings, now_ms: int) -> Step | None:
    seen = s.observed
    first = {
        DesiredState.RESTARTED: Operation.REQUEUE_HOLD,
        DesiredState.TERMINATED: Operation.CANCEL,
        DesiredState.RELEASED: Operation.RELEASE,
    }[advice.desired_state]
    allowed = permission(seen.aps, seen.aps_error, seen.partition, settings.sac)
    if allowed.refusal is not None or seen.mode is not Mode.ACT:
        return _refuse(advice, first, allowed.refusal or Refusal.OBSERVE_MODE, f"would do {first}: {allowed.reason}")
    if ledger.observed_only(advice.attempt, advice.generation):
        return _refuse(advice, first, Refusal.STALE, "this generation was issued while the job was only observed")
    if "+" in seen.job_id and not seen.job_id.endswith("+0"):
        return _refuse(advice, first, Refusal.NOT_REQUEUEABLE, "a heterogeneous component acts with its leader")
    if not _settled(ledger, advice.attempt, settings, now_ms):
        return None
    if seen.restart_count == advice.attempt.index and seen.submit_time == advice.submit_time:
        if advice.valid_until_ms is not None and now_ms > advice.valid_until_ms:
            return _refuse(advice, first, Refusal.STALE, "the Advice has expired and was not renewed")
        return _on_source(seen, advice, ledger, now_ms)
    if seen.restart_count == advice.attempt.index + 1 and _is_ours(seen, advice, ledger):
        return _on_successor(s, advice, ledger, now_ms)
    if seen.state in WAITING:  # between two attempts Slurm shows the new restart count with the old SubmitTime
        return None
    return _refuse(
        advice,
        first,
        Refusal.OTHER_ATTEMPT,
        f"the Advice is for restart count {advice.attempt.index}, submitted {advice.submit_time}; Slurm shows"
        f" {seen.restart_count}, submitted {seen.submit_time}",
    )


def _on_source(seen: JobObserved, advice: Advice, ledger: Ledger, now_ms: int) -> Step | None:
    """Slurm shows the very attempt that the Advice is for."""
    if seen.state in WAITING:
        return None
    if advice.desired_state is DesiredState.RESTARTED:
        step = _requeue_hold(seen, advice.attempt, advice.generation, advice.event_id)
        if isinstance(step, Refused) or _may_be_held_at_once(ledger, step):
            return step
        return _act(ledger, now_ms, step)
    if advice.desired_state is DesiredState.TERMINATED:
        if seen.state in FINAL_STATES:
            return None
        return _act(ledger, now_ms, _intent(seen, advice, Operation.CANCEL))
    return _release(seen, advice, ledger, now_ms, (Hold.REQUEUE, Hold.USER))


def _on_successor(s: Situation, advice: Advice, ledger: Ledger, now_ms: int) -> Step | None:
    """Slurm shows the successor that we made and held; it still belongs to the Advice until it is released."""
    seen = s.observed
    if seen.state is not AttemptState.HELD:
        if advice.desired_state is DesiredState.RESTARTED or seen.state in WAITING | FINAL_STATES:
            return None
        return _refuse(advice, Operation.CANCEL, Refusal.OTHER_ATTEMPT, "the successor is no longer held")
    if advice.desired_state is DesiredState.RELEASED:
        return _refuse(advice, Operation.RELEASE, Refusal.OTHER_ATTEMPT, "the attempt to release was requeued")
    if advice.desired_state is DesiredState.TERMINATED:
        if seen.hold is not Hold.REQUEUE or _released(ledger, advice.attempt):
            return _refuse(advice, Operation.CANCEL, Refusal.FOREIGN_HOLD, f"the successor's hold is {seen.hold}")
        return _act(ledger, now_ms, _intent(seen, advice, Operation.CANCEL))
    if seen.hold is not Hold.REQUEUE:
        return _refuse(advice, Operation.RELEASE, Refusal.FOREIGN_HOLD, f"the successor's hold is {seen.hold}")
    if advice.exclude_nodes:
        if s.known_nodes is None:
            return None
        for part in s.components or (seen,):
            wanted = tuple(sorted({*part.excluded_nodes, *advice.exclude_nodes} & s.known_nodes))
            if not set(wanted) <= set(part.excluded_nodes):
                return _act(ledger, now_ms, _intent(part, advice, Operation.UPDATE_CONSTRAINTS, nodes=wanted))
    return _release(seen, advice, ledger, now_ms, (Hold.REQUEUE,))


def _requeue_hold(seen: JobObserved, attempt: AttemptId, generation: int, cause: str) -> Step:
    """Requeue the attempt into a hold: one effective action in its life, whatever the generation."""
    operation = Operation.REQUEUE_HOLD
    identity = refusal_id(attempt, operation, generation)

    def refused(reason: Refusal, detail: str) -> Refused:
        return Refused(attempt, operation, generation, cause, identity, reason, detail)

    if not (seen.batch and seen.requeue):
        return refused(Refusal.NOT_REQUEUEABLE, "Slurm requeues only batch jobs that were not submitted --no-requeue")
    if seen.state not in RESTARTABLE:
        return refused(Refusal.UNKNOWN_STATE, f"an attempt that is {seen.state} is not requeued")
    return Intent(
        attempt=attempt,
        operation=operation,
        generation=generation,
        cause=cause,
        action_id=action_id(attempt, operation, 0),
        target=target_of(seen),
        nodes=(),
        restart_count=seen.restart_count,
        state=seen.state,
        start_now=False,
    )


def _may_be_held_at_once(ledger: Ledger, intent: Intent) -> bool:
    """Slurm refuses the hold of an attempt that ends at that very moment, and takes it a moment later."""
    known = ledger.action(intent.action_id)
    return known is not None and known.outcome is Outcome.REFUSED and known.tries < HOLD_TRIES_AT_ONCE


def _release(seen: JobObserved, advice: Advice, ledger: Ledger, now_ms: int, liftable: Sequence[Hold]) -> Step | None:
    if seen.state is not AttemptState.HELD:
        return None
    if seen.hold not in liftable:
        return _refuse(advice, Operation.RELEASE, Refusal.FOREIGN_HOLD, f"the hold is {seen.hold}: not ours to lift")
    requeued = seen.restart_count > 0 and seen.hold is Hold.REQUEUE
    if requeued and now_ms < seen.submit_time * 1000 + RELAUNCH_MS:
        return None
    return _act(ledger, now_ms, _intent(seen, advice, Operation.RELEASE, start_now=requeued))


def _early_hold(s: Situation, ledger: Ledger, settings: PlanSettings, now_ms: int) -> Step | None:
    """Preserve an attempt that has just failed while the recovery decision is made."""
    seen, attempt = s.observed, s.attempt
    if attempt is None or s.policy is None or s.quarantined or seen.aps is None or seen.end_ms is None:
        return None
    eligible = (
        seen.mode is Mode.ACT
        and permission(seen.aps, seen.aps_error, seen.partition, settings.sac).refusal is None
        and seen.aps.auto_resume_mode == "requeue"
        and seen.state in FAILURE_STATES
        and seen.batch
        and seen.requeue
        and ("+" not in seen.job_id or seen.job_id.endswith("+0"))
        and abs(now_ms - seen.end_ms) <= RECENT_MS
        and not any(advice.attempt == attempt for advice in s.advice)
        and seen.restart_count < s.policy.restart_limit(seen.aps.max_requeue_times)
        and ledger.action(action_id(attempt, Operation.REQUEUE_HOLD, 0)) is None
        and _settled(ledger, attempt, settings, now_ms)
    )
    return _requeue_hold(seen, attempt, 0, "") if eligible else None


def target_of(seen: JobObserved) -> str:
    """The id that Slurm's commands take: a heterogeneous component by its raw id (requeuehold refuses `200+0`)."""
    return str(seen.raw_job_id) if "+" in seen.job_id else seen.job_id


def _act(ledger: Ledger, now_ms: int, intent: Intent) -> Step | None:
    """The intent, unless it is on record: accepted is never repeated, refused only after a while."""
    known = ledger.action(intent.action_id)
    if known is None or (known.outcome is Outcome.UNKNOWN):  # settled, and this look shows no effect
        return intent
    if known.outcome is Outcome.ACCEPTED:
        return _withheld(
            intent, Refusal.UNKNOWN_STATE, "Slurm accepted it, but it does not show; it is not asked again"
        )
    wait = min(RETRY_MS * 2 ** min(known.tries - 1, 10), RETRY_MAX_MS)
    if now_ms >= known.last_ms + wait:
        return intent
    said = known.ended.detail if known.ended is not None else ""
    return _withheld(
        intent, Refusal.SCHEDULER_REFUSED, f"Slurm refused it, to be tried again in {wait // 1000} s: {said}"
    )


def _withheld(intent: Intent, reason: Refusal, detail: str) -> Refused:
    identity = refusal_id(intent.attempt, intent.operation, intent.generation)
    return Refused(intent.attempt, intent.operation, intent.generation, intent.cause, identity, reason, detail)


def _intent(
    seen: JobObserved, advice: Advice, operation: Operation, *, nodes: tuple[str, ...] = (), start_now: bool = False
) -> Intent:
    return Intent(
        attempt=advice.attempt,
        operation=operation,
        generation=advice.generation,
        cause=advice.event_id,
        action_id=action_id(advice.attempt, operation, advice.generation, target_of(seen)),
        target=target_of(seen),
        nodes=nodes,
        restart_count=seen.restart_count,
        state=seen.state,
        start_now=start_now,
    )


def _refuse(advice: Advice, operation: Operation, reason: Refusal, detail: str) -> Refused:
    identity = refusal_id(advice.attempt, operation, advice.generation)
    return Refused(advice.attempt, operation, advice.generation, advice.event_id, identity, reason, detail)


def _settled(ledger: Ledger, attempt: AttemptId, settings: PlanSettings, now_ms: int) -> bool:
    settle_ms = int(SETTLE_TIMEOUTS * settings.slurm.command_timeout_s * 1000)
    return all(action.settled(now_ms, settle_ms) for action in ledger.of_job(attempt.job))


def _is_ours(seen: JobObserved, advice: Advice, ledger: Ledger) -> bool:
    """Whether the successor that Slurm shows is the one that our requeuehold made."""
    return ledger.our_hold(advice.attempt) is not None and seen.submit_time >= advice.submit_time


def _released(ledger: Ledger, attempt: AttemptId) -> bool:
    return any(
        action.intent.operation is Operation.RELEASE and action.outcome is Outcome.ACCEPTED
        for action in ledger.of(attempt)
    )
