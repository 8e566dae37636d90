"""Incidents: one symptom, collected until quiet, attributed once, settled once.

An incident opens at the first decisive line (the anomaly is recorded at once) or when the scheduler reports a failure
that no line announced. One fault prints thousands of lines: they are collected until none came for a while, then the
cause is named. The decision waits until the attempt has ended, or until it has shown no progress for long enough.
"""

from __future__ import annotations

from schemas.decisions import AdviceWithheld, AnomalyDetected, AttributionMade, RequestMade
from schemas.facts import (
    AttributionAnswered,
    NodeFaultReported,
    ProgressObserved,
    SignatureMatched,
    TimerFired,
)
from schemas.frozen import replace
from schemas.identity import derived_id
from schemas.vocabulary import (
    FAILURE_STATES,
    AnomalyKind,
    AttemptState,
    DesiredState,
    FaultClass,
    Hold,
    LineRole,
    Mode,
    Refusal,
    Remedy,
    TimerPurpose,
    Witness,
)
from streams.decide import advice as advices
from streams.decide import grace, lines, news
from streams.decide.attribution import attribute
from streams.decide.retry import judge
from streams.decide.state import Answer, Attempt, Incident, JobState, Line
from streams.decide.turn import Turn

# Ends that a crash line can belong to; REQUEUED because Slurm requeues a lost node's job between two looks.
CRASHED = FAILURE_STATES | {AttemptState.REQUEUED}


def line_matched(turn: Turn, job: JobState, attempt: Attempt, fact: SignatureMatched) -> JobState:
    """A signature matched: open an incident, or add the line to the open one. The attempt is put into the job."""
    return _take_line(turn, job, attempt, lines.of_output(fact))


def node_fault_reported(turn: Turn, job: JobState, attempt: Attempt, fact: NodeFaultReported) -> JobState:
    """A node of the attempt says that it failed.

    It counts like a line of the output where an incident collects or the attempt has failed. On an attempt that runs
    it opens an incident only where the node is broken for sure and was so in the attempt's own time; anything less is
    kept for a while, in case the attempt fails, and so is what the node says on and on after an incident about it.
    A job that recovery leaves alone is left alone here, too.
    """
    if job.mode is Mode.DISABLED:
        return job
    line = lines.of_node(fact)
    if news.is_told_again(turn, attempt, line):
        return job.with_attempt(lines.hear_again(attempt, line, turn.now_ms))
    collecting = attempt.incident is not None and not attempt.incident.settled
    if lines.is_certain(fact) or collecting or (attempt.final and line.role is LineRole.CAUSE):
        return _take_line(turn, job, attempt, line)
    return job.with_attempt(lines.hear(attempt, line, turn.now_ms)) if turn.rules.is_worth_hearing(line) else job


def _take_line(turn: Turn, job: JobState, attempt: Attempt, line: Line) -> JobState:
    silent = line.remedy is Remedy.IGNORE or lines.is_recorded_only(line)
    decided = advices.is_decided(attempt) and not news.explains_silence(attempt, line)
    if silent or decided or (attempt.final and attempt.state not in CRASHED):
        return job.with_attempt(attempt)
    if news.is_told_again(turn, attempt, line):
        return job.with_attempt(lines.hear_again(attempt, line, turn.now_ms))
    incident = attempt.incident
    if incident is not None and not incident.settled and incident.finding is None:
        added = replace(
            incident,
            last_line_ms=turn.now_ms,
            lines_seen=incident.lines_seen + 1,
            lines=lines.kept((*incident.lines, line), turn.rules.root_line),
        )
        return job.with_attempt(replace(attempt, incident=added))
    if line.remedy is Remedy.WAIT:  # somebody else acts: that opens no incident, and belongs to one that follows
        return job.with_attempt(lines.hear(attempt, line, turn.now_ms))
    if incident is not None and not incident.settled:
        if news.says_no_more(turn, incident, line):
            return job.with_attempt(replace(attempt, incident=news.still_said(turn, incident, line)))
        text = f"A fault that counts for more followed: {line.detail or line.signature}{line.told_by}."
        job = _withhold(turn, job, attempt, Refusal.OUTWEIGHED, text)
    elif attempt.final and attempt.failure_counted:
        return job.with_attempt(attempt)
    kind = AnomalyKind.CRASH_LOG if line.witness is Witness.OUTPUT else AnomalyKind.NODE_FAULT
    return _open(turn, job, attempt, kind, line, line.fault_class, line.detail or line.signature)


def attempt_failed(turn: Turn, job: JobState, attempt: Attempt) -> JobState:
    """The scheduler says that the attempt failed."""
    incident = attempt.incident
    advice = advices.open_advice(attempt)
    if advice is not None and advice.desired_state is not DesiredState.RELEASED and not news.is_newer(incident, advice):
        job = job if advices.is_command(advice) else _count_failure(job, attempt)
        return advices.renew(turn, job, job.current(attempt))
    if incident is not None and incident.finding is not None and not incident.settled:
        if turn.now_ms - incident.last_line_ms <= lines.HEARD_MS:
            return _settle(turn, job, attempt)
        text = "The fault was printed long before the failure, and explains it no more."
        job = _dismiss(turn, job, attempt, Refusal.LATE, text)
        attempt, incident = job.current(attempt), None
    if incident is None or incident.settled:
        return job if advices.is_decided(attempt) else _await_lines(turn, job, attempt)
    due = turn.after(turn.policy.incident_final_quiet_s)
    pending = attempt.timer(TimerPurpose.INCIDENT_QUIET)
    if pending is not None and pending.due_ms > due:
        attempt = turn.set_timer(attempt, TimerPurpose.INCIDENT_QUIET, due)
    return job.with_attempt(attempt)


def attempt_ended_otherwise(turn: Turn, job: JobState, attempt: Attempt) -> JobState:
    """The attempt ended, and not by a failure that recovery acts on: an open incident is dismissed."""
    return _dismiss(turn, job, attempt, Refusal.ENDED_WELL, f"The attempt ended as {attempt.state}.")


def superseded(turn: Turn, job: JobState, attempt: Attempt) -> JobState:
    """A later attempt has taken its place: what was found is settled, and what Advice brought about is counted."""
    advice = advices.open_advice(attempt)
    if advice is not None and not advices.is_command(advice):
        job = _count_failure(job, attempt)
    return _settle(turn, job, job.current(attempt))


def resumed(turn: Turn, job: JobState, attempt: Attempt) -> JobState:
    """The attempt runs again: it has the same time as before to show that it goes on after a fault."""
    incident = attempt.incident
    waits = incident is not None and incident.finding is not None and not incident.settled
    if not waits or attempt.step is None or attempt.timer(TimerPurpose.INCIDENT_QUIET) is not None:
        return job
    return job.with_attempt(turn.set_timer(attempt, TimerPurpose.INCIDENT_QUIET, turn.after(grace.grace_s(turn, job))))


def progressed(turn: Turn, job: JobState, attempt: Attempt, fact: ProgressObserved) -> JobState:
    """Training moves on after a fault line: the line was no crash, and Advice against the attempt is withdrawn.

    While the incident's lines still come in nothing is dismissed: ranks that don't know of the failure yet print on.
    For the same reason the root of what one step dismisses is remembered, until one comes that is surely after it.
    """
    incident = attempt.incident
    over = incident is None or (incident.settled and advices.open_advice(attempt) is None)
    if incident is None or over or incident.finding is None or attempt.final:
        return job
    in_order = turn.now_ms - incident.last_line_ms >= lines.IN_ORDER_MS
    if not in_order and not lines.is_after(fact, incident.lines):
        return job
    if incident.kind is AnomalyKind.STRAGGLER:  # it does move; what matters is its pace
        return job
    if fact.loss is None and lines.is_without_number(incident.lines, turn.rules.root_line):
        tells_loss = attempt.stall is not None and attempt.stall.tells_loss
        if tells_loss or not in_order:
            return job  # it moves, and learns nothing, as far as anybody can tell
    if advices.open_advice(attempt) is not None:
        job = advices.withdraw(turn, job, attempt, f"step {fact.step} was reached after the anomaly")
    else:
        text = f"Training moved on: step {fact.step} was reached afterwards."
        job = _dismiss(turn, job, attempt, Refusal.PROGRESS_RESUMED, text)
    if not incident.lines:
        return job
    return job.with_attempt(lines.hear(job.current(attempt), turn.rules.root_line(incident.lines), turn.now_ms))


def answered(turn: Turn, job: JobState, attempt: Attempt, fact: AttributionAnswered) -> JobState:
    """The provider's answer, if the incident still waits for it; an error changes nothing but ends the wait."""
    incident = attempt.incident
    if incident is None or incident.incident_id != fact.incident_id or incident.finding is not None:
        return job
    attempt = turn.clear_timer(attempt, TimerPurpose.ATTRIBUTION)
    if fact.error is None and fact.fault_class is not None and fact.scope is not None:
        answer = Answer(fact.provider, fact.fault_class, fact.scope, fact.nodes, fact.explanation)
        attempt = replace(attempt, incident=replace(incident, answer=answer))
    job = job.with_attempt(attempt)
    return job if attempt.timer(TimerPurpose.INCIDENT_QUIET) is not None else _conclude(turn, job, attempt)


def quiet_timer_fired(turn: Turn, job: JobState, attempt: Attempt, fact: TimerFired) -> JobState:
    """Nothing came for a while: attribute; or, attributed already, the attempt still runs without progress."""
    incident = attempt.incident
    if incident is None or incident.settled:
        return job
    if incident.finding is not None:
        return _still_running(turn, job, attempt, fact.due_ms)
    quiet = turn.policy.incident_final_quiet_s if attempt.final else turn.policy.incident_quiet_s
    due = min(incident.last_line_ms + _ms(quiet), incident.opened_ms + _ms(turn.policy.incident_max_s))
    if due > fact.due_ms:
        return job.with_attempt(turn.set_timer(attempt, TimerPurpose.INCIDENT_QUIET, due))
    if attempt.timer(TimerPurpose.ATTRIBUTION) is not None:
        return job
    return _conclude(turn, job, attempt)


def attribution_timer_fired(turn: Turn, job: JobState, attempt: Attempt) -> JobState:
    """The provider did not answer in time: go on without it."""
    incident = attempt.incident
    if incident is None or incident.finding is not None or attempt.timer(TimerPurpose.INCIDENT_QUIET) is not None:
        return job
    return _conclude(turn, job, attempt)


def fallback_timer_fired(turn: Turn, job: JobState, attempt: Attempt) -> JobState:
    """A failed state that no line explained in time opens an incident by itself."""
    waiting = attempt.incident is not None and not attempt.incident.settled
    if waiting or advices.is_decided(attempt) or attempt.state not in CRASHED:
        return job
    return _open_by_state(turn, job, attempt)


def open_without_line(
    turn: Turn, job: JobState, attempt: Attempt, kind: AnomalyKind, fault_class: FaultClass, detail: str
) -> JobState:
    """Open an incident that no line of the output announced."""
    return _open(turn, job, attempt, kind, None, fault_class, detail)


def _await_lines(turn: Turn, job: JobState, attempt: Attempt) -> JobState:
    if job.aps is None or job.mode is Mode.DISABLED:
        return job
    if not job.aps.log_based_crash_detection_enabled or not attempt.log_paths:
        return _open_by_state(turn, job, attempt)
    due = turn.after(turn.policy.crash_fallback_delay_s)
    return job.with_attempt(turn.set_timer(attempt, TimerPurpose.CRASH_FALLBACK, due))


def _open_by_state(turn: Turn, job: JobState, attempt: Attempt) -> JobState:
    text = f"Slurm reports {attempt.state}"
    return _open(turn, job, attempt, AnomalyKind.CRASH_STATE, None, FaultClass.UNKNOWN, text)


def _open(
    turn: Turn,
    job: JobState,
    attempt: Attempt,
    kind: AnomalyKind,
    line: Line | None,
    fault_class: FaultClass,
    detail: str,
) -> JobState:
    attempt = turn.clear_timer(attempt, TimerPurpose.CRASH_FALLBACK)
    heard = lines.known_before(attempt, line, turn.now_ms)
    first = lines.kept(heard if line is None else (line, *heard), turn.rules.root_line)
    incident_id = derived_id("incident", attempt.id.key, attempt.incidents)
    incident = Incident(
        incident_id=incident_id,
        kind=kind,
        opened_ms=turn.now_ms,
        last_line_ms=turn.now_ms,
        lines_seen=len(first),
        lines=first,
        asked=False,
        answer=None,
        finding=None,
        settled=False,
    )
    turn.emit(
        AnomalyDetected(
            turn.next_id(),
            turn.cause,
            attempt.id,
            turn.now_ms,
            incident_id,
            kind,
            fault_class,
            detail,
            None if line is None else line.evidence,
        )
    )
    attempt = replace(attempt, incident=incident, incidents=attempt.incidents + 1, heard=())
    attempt = _ask(turn, job, attempt, incident)
    if line is None:
        job = job.with_attempt(attempt)
        waiting = attempt.timer(TimerPurpose.ATTRIBUTION) is not None
        return job if waiting else _conclude(turn, job, attempt)
    quiet = turn.policy.incident_final_quiet_s if attempt.final else turn.policy.incident_quiet_s
    return job.with_attempt(turn.set_timer(attempt, TimerPurpose.INCIDENT_QUIET, turn.after(quiet)))


def _ask(turn: Turn, job: JobState, attempt: Attempt, incident: Incident) -> Attempt:
    deadline_s = turn.policy.attribution_deadline_s
    if deadline_s <= 0:
        return attempt
    turn.emit(
        RequestMade(
            turn.next_id(),
            turn.cause,
            attempt.id,
            turn.now_ms,
            incident.incident_id,
            job.workflow_id,
            attempt.nodes,
            incident.lines[0].fault_class if incident.lines else FaultClass.UNKNOWN,
            attempt.start_ms,
            attempt.end_ms,
            turn.now_ms,
            _ms(deadline_s),
        )
    )
    attempt = replace(attempt, incident=replace(incident, asked=True))
    return turn.set_timer(attempt, TimerPurpose.ATTRIBUTION, turn.after(deadline_s))


def _conclude(turn: Turn, job: JobState, attempt: Attempt) -> JobState:
    """Make the incident's one attribution, and settle it where the attempt has already failed."""
    incident = attempt.incident
    if incident is None:
        return job
    incident = replace(incident, lines=lines.in_time(attempt, incident.lines))
    before = [one for one in job.attempts if one.id.index < attempt.id.index]
    made = attribute(turn.rules, attempt, incident, before)
    finding = made.finding
    turn.emit(
        AttributionMade(
            turn.next_id(),
            turn.cause,
            attempt.id,
            turn.now_ms,
            incident.incident_id,
            finding.fault_class,
            finding.scope,
            finding.remedy,
            finding.nodes,
            "" if made.root is None else made.root.signature,
            None if made.root is None else made.root.evidence,
            tuple(line.evidence for line in made.secondary),
            incident.lines_seen,
            made.confidence,
            made.provider,
            finding.explanation,
        )
    )
    incident = replace(incident, finding=finding)
    attempt = replace(attempt, incident=incident)
    job = job.with_attempt(attempt)
    if attempt.state in CRASHED or incident.kind in (AnomalyKind.HANG, AnomalyKind.STRAGGLER):
        return _settle(turn, job, attempt)
    due = max(turn.after(grace.grace_s(turn, job)), grace.waits_until_ms(turn, job, attempt, incident))
    return job.with_attempt(turn.set_timer(attempt, TimerPurpose.INCIDENT_QUIET, due))


def _still_running(turn: Turn, job: JobState, attempt: Attempt, due_ms: int) -> JobState:
    """A fault was printed, the attempt runs on without progress: act only where progress is known to be visible."""
    incident = attempt.incident
    if incident is None:
        return job
    if attempt.state is not AttemptState.RUNNING:  # suspended, or about to end: what it does then decides
        return job
    if attempt.step is None:
        return _withhold(
            turn,
            job,
            attempt,
            Refusal.UNKNOWN_STATE,
            "A fault was seen and the attempt still runs; it never printed progress, so nobody can tell whether it"
            " stands still. It is left alone until the scheduler says that it ended.",
        )
    until_ms = grace.waits_until_ms(turn, job, attempt, incident)
    if until_ms > due_ms:
        return job.with_attempt(turn.set_timer(attempt, TimerPurpose.INCIDENT_QUIET, until_ms))
    return _settle(turn, job, attempt)


def _settle(turn: Turn, job: JobState, attempt: Attempt) -> JobState:
    """Decide, once, what should happen to the attempt."""
    incident = attempt.incident
    if incident is None or incident.finding is None or incident.settled:
        return job
    for purpose in (TimerPurpose.INCIDENT_QUIET, TimerPurpose.CRASH_FALLBACK, TimerPurpose.ATTRIBUTION):
        attempt = turn.clear_timer(attempt, purpose)
    attempt = replace(attempt, incident=replace(incident, settled=True))
    counted = _count_failure(job, attempt)
    job = counted if attempt.final else job.with_attempt(attempt)
    attempt = job.current(attempt)
    successor = job.successor_of(attempt)
    if successor is not None and successor.hold is not Hold.REQUEUE:
        text = f"Slurm has already put attempt {successor.id.index} in its place."
        return _withhold(turn, job, attempt, Refusal.OTHER_ATTEMPT, text)
    assert incident.finding is not None
    verdict = judge(counted, attempt, incident.finding, turn.policy)
    for refusal, text in verdict.refusals:
        job = _withhold(turn, job, attempt, refusal, text)
    if verdict.desired is None:
        return job
    return advices.issue(turn, job, attempt, verdict, incident.incident_id)


def _count_failure(job: JobState, attempt: Attempt) -> JobState:
    """Count failures in a row without a new checkpoint, each attempt once, and only when it has ended."""
    if attempt.failure_counted:
        return job.with_attempt(attempt)
    step, best = attempt.checkpoint_step, job.best_checkpoint
    newer = step is not None and (best is None or step > best)
    job = replace(
        job,
        best_checkpoint=step if newer else best,
        failures_without_checkpoint=0 if newer else job.failures_without_checkpoint + 1,
    )
    return job.with_attempt(replace(attempt, failure_counted=True))


def _dismiss(turn: Turn, job: JobState, attempt: Attempt, refusal: Refusal, text: str) -> JobState:
    incident = attempt.incident
    attempt = turn.clear_timer(attempt, TimerPurpose.CRASH_FALLBACK)
    if incident is None or incident.settled:
        return job.with_attempt(attempt)
    attempt = turn.clear_timer(attempt, TimerPurpose.INCIDENT_QUIET)
    attempt = turn.clear_timer(attempt, TimerPurpose.ATTRIBUTION)
    attempt = replace(attempt, incident=replace(incident, settled=True))
    return _withhold(turn, job, attempt, refusal, text)


def _withhold(turn: Turn, job: JobState, attempt: Attempt, refusal: Refusal, text: str) -> JobState:
    incident_id = attempt.incident.incident_id if attempt.incident is not None else ""
    turn.emit(AdviceWithheld(turn.next_id(), turn.cause, attempt.id, turn.now_ms, incident_id, refusal, text))
    return job.with_attempt(attempt)


def _ms(seconds: float) -> int:
    return int(seconds * 1000)
