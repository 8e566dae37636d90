"""What may be done about a failed attempt: the site's and the job's limits, applied to a finding."""

from __future__ import annotations

from dataclasses import dataclass

from schemas.policy import Policy
from schemas.vocabulary import FAILURE_STATES, DesiredState, Mode, Refusal, Remedy
from streams.decide.state import Attempt, Finding, JobState


@dataclass(frozen=True)
class Verdict:
    """What to advise (None: nothing), and what was refused on the way there."""

    desired: DesiredState | None
    reason: str
    explanation: str
    exclude_nodes: tuple[str, ...] = ()
    refusals: tuple[tuple[Refusal, str], ...] = ()


def _restart_limit(job: JobState, policy: Policy) -> int:
    return policy.restart_limit(job.aps.max_requeue_times if job.aps is not None else None)


def judge(job: JobState, attempt: Attempt, finding: Finding, policy: Policy) -> Verdict:
    """Return the verdict on a failed attempt. The first rule that speaks decides."""
    refusal = _not_ours(job)
    if refusal is not None:
        return Verdict(None, refusal[0].value, refusal[1], refusals=(refusal,))
    # What the lines call harmless was not: the scheduler says that the attempt failed. Unsure means restart.
    if finding.remedy in (Remedy.IGNORE, Remedy.WAIT) and attempt.state not in FAILURE_STATES:
        text = f"{finding.explanation} This calls for no action."
        return Verdict(None, Refusal.NOT_RECOVERABLE.value, text, refusals=((Refusal.NOT_RECOVERABLE, text),))
    if finding.remedy is Remedy.TERMINATE_NO_RETRY:
        text = f"{finding.explanation} The same would happen again, so the job is not restarted."
        return Verdict(DesiredState.TERMINATED, finding.fault_class.value, text)
    limit = _restart_limit(job, policy)
    if attempt.id.index >= limit:
        text = f"{finding.explanation} The job has been restarted {attempt.id.index} times and {limit} are allowed."
        return _stop(Refusal.REQUEUE_LIMIT, text)
    if job.failures_without_checkpoint >= policy.max_failures_without_checkpoint:
        text = (
            f"{finding.explanation} The job failed {job.failures_without_checkpoint} times in a row without a new"
            " checkpoint, so another restart would not get it further."
        )
        return _stop(Refusal.NO_NEW_CHECKPOINT, text)
    if not job.requeueable:
        text = f"{finding.explanation} Slurm can't requeue it: it is no batch job or was submitted with --no-requeue."
        return Verdict(None, Refusal.NOT_REQUEUEABLE.value, text, refusals=((Refusal.NOT_REQUEUEABLE, text),))
    return _restart(job, attempt, finding, policy)


def _not_ours(job: JobState) -> tuple[Refusal, str] | None:
    if job.aps is None:
        return Refusal.APS, "The job carries no valid recovery policy (APS), so nothing is advised."
    if job.mode is Mode.DISABLED:
        return Refusal.ENVIRONMENT, f"Recovery is disabled for this job: {job.mode_reason}."
    if job.aps.auto_resume_mode != "requeue":
        return Refusal.AUTO_RESUME_OFF, "The job's policy does not ask for automatic resumption."
    if job.quarantined:
        return Refusal.QUARANTINED, "A record of this job is parked; until a person looks at it nothing is advised."
    return None


def _stop(refusal: Refusal, text: str) -> Verdict:
    return Verdict(DesiredState.TERMINATED, refusal.value, text, refusals=((refusal, text),))


def _restart(job: JobState, attempt: Attempt, finding: Finding, policy: Policy) -> Verdict:
    nodes: tuple[str, ...] = ()
    refusals: tuple[tuple[Refusal, str], ...] = ()
    if finding.remedy is Remedy.RESTART_EXCLUDING_NODE:
        together = {*job.excluded, *finding.nodes}
        if len(together) <= policy.max_excluded_nodes:
            nodes = tuple(sorted(finding.nodes))
        else:
            text = (
                f"Excluding {', '.join(finding.nodes)} would exclude {len(together)} nodes of this job;"
                f" {policy.max_excluded_nodes} are allowed."
            )
            refusals = ((Refusal.EXCLUSION_LIMIT, text),)
    without = f" without {', '.join(nodes)}" if nodes else ""
    times = f"restart {attempt.id.index + 1} of at most {_restart_limit(job, policy)}"
    verb = "is restarted" if job.mode is Mode.ACT else "would be restarted"
    text = f"{finding.explanation} The job {verb}{without} ({times})."
    return Verdict(DesiredState.RESTARTED, finding.fault_class.value, text, nodes, refusals)
