"""Hangs: an attempt that moved, and does not move any more.

Armed by the first sign of progress, never before. The budget of silence is what the job's policy allows, or less once
the attempt's own steps have shown what is normal. When it is spent nothing is concluded yet: watch is asked whether
the attempt still prints. Recent output speaks against a hang, for several times the configured budget, whatever was
learned: that steps are rare now is no standstill; no answer means no action.
"""

from __future__ import annotations

from typing import Any

from schemas.decisions import AdviceWithheld, OutputAsked
from schemas.facts import REMEMBERED_STEPS, OutputChecked, PhaseEntered, ProgressObserved, TimerFired
from schemas.frozen import replace
from schemas.vocabulary import AnomalyKind, AttemptState, FaultClass, Phase, Refusal, TimerPurpose
from streams.decide import advice as advices
from streams.decide import incident as incidents
from streams.decide.retry import judge
from streams.decide.state import Attempt, JobState, Stall
from streams.decide.turn import Turn

LEARN_FROM = 5
"""Gaps between steps that must have been seen before the budget is learned from them."""
GAP_FACTOR = 10
"""A learned budget is this many of the longest normal gaps."""
LEAST_INTERVALS = 4
"""A learned budget is never under this many progress intervals (design, rule 15): watch throttles to one."""
LEAST_LEARNED_S = 60
"""A learned budget is never under this, however often a job wants its progress recorded: that says nothing of pauses
that its steps never had yet, such as the first evaluation."""
FINISHING_FACTOR = 4
"""After its end was announced an attempt may be silent for so many of the longer threshold, an hour by default: results
are merged and uploaded without a word, and what is lost then is the whole job. Yet one that hangs there holds its nodes
until its time limit, and the announcement may have been of an epoch or an evaluation."""


def budget_ms(job: JobState, stall: Stall) -> int:
    """How long the attempt may be silent now, in ms; never above what the job's policy says."""
    aps = job.aps
    if aps is None or not stall.in_loop or stall.phase is not None:
        return _configured_ms(job, stall)
    configured = aps.silence_ms(in_loop=True)
    if stall.gaps < LEARN_FROM:
        return configured
    least = max(LEAST_INTERVALS * aps.progress_kept_every_ms, LEAST_LEARNED_S * 1000)
    return min(configured, max(GAP_FACTOR * stall.gap_ms, least))


def _configured_ms(job: JobState, stall: Stall) -> int:
    """What the job's policy says of where the attempt is."""
    if job.aps is None:
        raise ValueError("only a job with a policy is watched for hangs")
    if stall.phase is Phase.FINISHING:
        return FINISHING_FACTOR * max(job.aps.silence_ms(in_loop=True), job.aps.silence_ms(in_loop=False))
    return job.aps.silence_ms(in_loop=stall.in_loop)


def loaded(turn: Turn, job: JobState, attempt: Attempt) -> JobState:
    """A checkpoint was read: the attempt is on its way to the training loop, perhaps for another time."""
    stall = attempt.stall or Stall(False, turn.now_ms, 0, 0, None, "", None)
    return _alive(turn, job, attempt, stall, in_loop=False, stepped_ms=None, line_ms=None, recent=())


def moves(stall: Stall | None, step: int) -> bool:
    """Whether a step that was printed is movement.

    None of those that were printed lately is: ranks that stand still at different steps print them in turn. A count
    that falls to its half or less began anew, as in each epoch or from an old checkpoint.
    """
    return stall is None or step not in stall.recent or _begins_anew(stall, step)


def _begins_anew(stall: Stall, step: int) -> bool:
    if not stall.recent or step > stall.recent[-1]:
        return False  # what most steps are
    highest = max(stall.recent)
    return step < highest and 2 * step <= highest


def after_step(job: JobState, before: Stall | None, fact: ProgressObserved, now_ms: int) -> Stall:
    """What is known once a step was printed that is movement.

    One step after a phase was entered may have been printed late, by another rank; a second one ends the phase.
    """
    stall = before or Stall(True, now_ms, 0, 0, None, "", None)
    counted = () if _begins_anew(stall, fact.step) else stall.recent
    # A gap that held a save or an evaluation is part of the rhythm, too: it only makes the budget longer.
    gap_ms = _gap_ms(job, stall, fact, now_ms)
    return replace(
        stall,
        in_loop=True,
        moved_ms=now_ms,
        stepped_ms=now_ms,
        line_ms=fact.line_ms,
        recent=(*counted[1 - REMEMBERED_STEPS :], fact.step),
        tells_loss=stall.tells_loss or fact.loss is not None,
        gap_ms=max(stall.gap_ms, gap_ms),
        gaps=stall.gaps + (gap_ms > 0),
        phase=None if stall.stepped else stall.phase,
        stepped=True,
        asked="",
        said=None,
    )


def _gap_ms(job: JobState, stall: Stall, fact: ProgressObserved, now_ms: int) -> int:
    """How long after the last step this one came; 0 where nobody can say.

    By the lines' own times, where they can be true: steps that were read in one go arrive together, however slow they
    were. What came closer than watch keeps steps tells only that it was read late.
    """
    gap_ms = 0
    line_ms, last_ms = fact.line_ms, stall.line_ms
    if line_ms is not None and last_ms is not None and last_ms <= line_ms <= now_ms:
        gap_ms = line_ms - last_ms
    elif stall.stepped_ms is not None:
        gap_ms = now_ms - stall.stepped_ms
    interval_ms = 0 if job.aps is None else job.aps.progress_kept_every_ms
    return gap_ms if 2 * gap_ms >= interval_ms else 0


def moved_on(turn: Turn, job: JobState, attempt: Attempt) -> Attempt:
    """Another step was printed, or another sign of life: whether output grows is no question any more."""
    return _arm(turn, job, turn.clear_timer(attempt, TimerPurpose.STALL_ANSWER))


def saved(turn: Turn, job: JobState, attempt: Attempt) -> JobState:
    """A save is complete: a sign of life, and what is silent from now on is not saving."""
    stall = attempt.stall
    if stall is None:
        return job.with_attempt(attempt)
    phase = None if stall.phase is Phase.CHECKPOINT else stall.phase
    return _alive(turn, job, attempt, stall, phase=phase, stepped=False)


def runs(turn: Turn, job: JobState, attempt: Attempt, *, suspended: bool) -> JobState:
    """The attempt runs again. Where it was suspended, neither its silence nor the gap to its next step is its own."""
    if attempt.stall is None:
        return job
    if suspended:
        return _alive(turn, job, attempt, attempt.stall, stepped_ms=None, line_ms=None)
    return job.with_attempt(_arm(turn, job, attempt))


def phase_entered(turn: Turn, job: JobState, attempt: Attempt, fact: PhaseEntered) -> JobState:
    """The attempt says that it does something else: silence is normal for a while."""
    if attempt.stall is None:
        return job
    return _alive(turn, job, attempt, attempt.stall, phase=fact.phase, stepped=False)


def timer_fired(turn: Turn, job: JobState, attempt: Attempt, fact: TimerFired) -> JobState:
    """The budget may be spent: if it is, ask whether the attempt still prints."""
    stall = attempt.stall
    if stall is None or job.aps is None or attempt.final:
        return job
    if attempt.state is not AttemptState.RUNNING:
        return job
    due = stall.moved_ms + budget_ms(job, stall)
    if due > fact.due_ms:
        return job.with_attempt(turn.set_timer(attempt, TimerPurpose.STALL, due))
    if advices.is_busy(attempt) or _is_refused(turn, job, attempt, stall):
        return _again(turn, job, attempt)
    asked = turn.emit(
        OutputAsked(
            turn.next_id(),
            turn.cause,
            attempt.id,
            turn.now_ms,
            attempt.log_paths,
            attempt.start_ms,
            attempt.progress_ms,
            budget_ms(job, stall),
        )
    )
    attempt = replace(attempt, stall=replace(stall, asked=asked.event_id))
    answer_by = turn.after(turn.policy.stall_answer_s)
    return job.with_attempt(turn.set_timer(attempt, TimerPurpose.STALL_ANSWER, answer_by))


def _is_refused(turn: Turn, job: JobState, attempt: Attempt, stall: Stall) -> bool:
    """Whether this very standstill was judged, nothing might be advised, and that is still so: it is told once."""
    incident = attempt.incident
    if incident is None or incident.kind is not AnomalyKind.HANG or incident.opened_ms < stall.moved_ms:
        return False
    return incident.finding is not None and judge(job, attempt, incident.finding, turn.policy).desired is None


def answered(turn: Turn, job: JobState, attempt: Attempt, fact: OutputChecked) -> JobState:
    """Watch looked: silence is a hang; recent output is not, unless it has outlasted all patience."""
    stall = attempt.stall
    if stall is None or stall.asked != fact.cause or not stall.asked or attempt.final or advices.is_busy(attempt):
        return job
    attempt = turn.clear_timer(attempt, TimerPurpose.STALL_ANSWER)
    stall = replace(stall, asked="")
    attempt = replace(attempt, stall=stall)
    if attempt.state is not AttemptState.RUNNING:
        return job.with_attempt(attempt)
    if fact.error is not None or fact.last_output_ms is None:
        text = f"Whether the attempt still prints could not be seen: {fact.error or 'no file was read'}."
        return _withhold(turn, job, attempt, Refusal.UNKNOWN_STATE, text)
    quiet_ms, still_ms = fact.checked_ms - fact.last_output_ms, turn.now_ms - stall.moved_ms
    if quiet_ms >= _recent_ms(turn, budget_ms(job, stall)) + fact.delay_ms:
        return _hang(turn, job, attempt, f"no step for {_s(still_ms)} and no output either")
    if stall.phase is Phase.FINISHING:
        text = f"The attempt said that it ends, and output came {_s(quiet_ms)} ago."
        return _withhold(turn, job, attempt, Refusal.RECENT_OUTPUT, text)
    if attempt.blind:
        text = f"Output came {_s(quiet_ms)} ago, and watch does not see what it says: steps may well come."
        return _withhold(turn, job, attempt, Refusal.UNKNOWN_STATE, text)
    if still_ms >= turn.policy.stall_patience * _configured_ms(job, stall):
        return _hang(turn, job, attempt, f"output still grows, but no step came for {_s(still_ms)}")
    text = f"No step for {_s(still_ms)}, but output came {_s(quiet_ms)} ago."
    return _withhold(turn, job, attempt, Refusal.RECENT_OUTPUT, text)


def _recent_ms(turn: Turn, budget: int) -> int:
    """How old output may be and still be recent: a line each minute and a half is no silence where fourteen minutes of
    it are allowed. Not all of the budget: the steps after the last one that was kept are output, too."""
    return max(min(int(turn.policy.stall_recent_s * 1000), budget * 3 // 4), budget // 2)


def answer_timer_fired(turn: Turn, job: JobState, attempt: Attempt) -> JobState:
    """Nobody answered in time: nothing is known, so nothing is done."""
    if attempt.stall is None or not attempt.stall.asked or attempt.final:
        return job
    attempt = replace(attempt, stall=replace(attempt.stall, asked=""))
    return _withhold(turn, job, attempt, Refusal.NO_ANSWER, "Nobody said in time whether the attempt still prints.")


def _alive(turn: Turn, job: JobState, attempt: Attempt, stall: Stall, **changes: Any) -> JobState:
    """The attempt showed that it lives: its silence is counted from now on, and no earlier question about it counts."""
    alive = replace(stall, moved_ms=turn.now_ms, asked="", **changes)
    attempt = replace(attempt, stall=alive)
    if alive.phase is stall.phase and not stall.asked and attempt.timer(TimerPurpose.STALL) is not None:
        return job.with_attempt(attempt)  # a pending timer is moved on when it fires
    return job.with_attempt(moved_on(turn, job, attempt))


def _arm(turn: Turn, job: JobState, attempt: Attempt) -> Attempt:
    if job.aps is None or not job.aps.log_based_timeout_enabled or attempt.final or attempt.stall is None:
        return attempt
    budget = budget_ms(job, attempt.stall)
    pending = attempt.timer(TimerPurpose.STALL)
    # A pending timer is moved on when it fires; only a much shorter budget, learned meanwhile, is worth a write.
    if pending is None or pending.due_ms > turn.now_ms + 2 * budget:
        return turn.set_timer(attempt, TimerPurpose.STALL, turn.now_ms + budget)
    return attempt


def _again(turn: Turn, job: JobState, attempt: Attempt) -> JobState:
    """Look again after another budget."""
    if attempt.stall is None:
        return job
    due = turn.now_ms + budget_ms(job, attempt.stall)
    return job.with_attempt(turn.set_timer(attempt, TimerPurpose.STALL, due))


def _withhold(turn: Turn, job: JobState, attempt: Attempt, reason: Refusal, text: str) -> JobState:
    """Look again later; the reason is recorded once for each standstill."""
    stall = attempt.stall
    if stall is not None and stall.said is not reason:
        turn.emit(AdviceWithheld(turn.next_id(), turn.cause, attempt.id, turn.now_ms, "", reason, text))
        attempt = replace(attempt, stall=replace(stall, said=reason))
    return _again(turn, job, attempt)


def _hang(turn: Turn, job: JobState, attempt: Attempt, text: str) -> JobState:
    attempt = turn.set_timer(attempt, TimerPurpose.STALL, turn.after(turn.policy.advice_valid_s))
    return incidents.open_without_line(turn, job, attempt, AnomalyKind.HANG, FaultClass.HANG_NO_LOG, text)


def _s(milliseconds: int) -> str:
    return f"{milliseconds / 1000:.0f} s"
