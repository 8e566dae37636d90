"""From what Slurm shows to what we say of it. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from recovery.settings import SacSettings
from sac.mode import permission
from sac.slurm.sacct import Accounted
from sac.slurm.squeue import SlurmJob
from schemas.aps import Aps
from schemas.aps_comment import InvalidAps, parse_aps
from schemas.decisions import JobView
from schemas.facts import JobObserved
from schemas.identity import Position, derived_id
from schemas.vocabulary import FINAL_STATES, AttemptState, Hold

REQUEUED_IN_HELD_STATE = "job requeued in held state"
ADMIN_REASONS = ("jobheldadmin", "jobholdmaxrequeue", "jobheldmax")
"""Holds that only a person may lift; Slurm's own limits on requeues are among them (newer ones start alike)."""

STARTED = FINAL_STATES | {AttemptState.RUNNING, AttemptState.SUSPENDED, AttemptState.COMPLETING}


@dataclass(frozen=True)
class Stamp:
    """What every observation of one look carries."""

    cluster: str
    look_ms: int
    policy: str
    logic: int


def source_of(cluster: str) -> str:
    """The source name of a cluster's observations."""
    return f"slurm:{cluster}"


def hold_of(job: SlurmJob) -> Hold:
    """Who holds a pending job. The reason decides: Slurm keeps the old description when an admin holds on top.

    A user's `scontrol uhold` on a job that is requeue-held already changes nothing that Slurm shows.
    """
    if job.state is not AttemptState.PENDING or job.priority != 0:
        return Hold.NONE
    reason = job.reason.lower().replace("_", "")
    if reason.startswith(ADMIN_REASONS):
        return Hold.ADMIN
    description = job.description.lower().replace("_", " ")
    if reason == "jobhelduser":
        return Hold.REQUEUE if description == REQUEUED_IN_HELD_STATE else Hold.USER
    return Hold.NONE


def opted_in(job: SlurmJob) -> tuple[Aps | None, str | None] | None:
    """The job's APS, or why its comment is none although it claims to be; None for a job that is not ours."""
    try:
        aps = parse_aps(job.comment)
    except InvalidAps as error:
        return None, str(error)
    return None if aps is None else (aps, None)


def observe(job: SlurmJob, settings: SacSettings, stamp: Stamp, generation: int, cause: str) -> JobObserved | None:
    """What this look shows of one job; None for a job that has not opted in."""
    policy = opted_in(job)
    if policy is None:
        return None
    aps, aps_error = policy
    hold = hold_of(job)
    state = AttemptState.HELD if hold is not Hold.NONE else job.state
    final = state in FINAL_STATES
    allowed = permission(aps, aps_error, job.partition, settings)
    return JobObserved(
        event_id=derived_id("observed", stamp.cluster, job.job_id, stamp.look_ms),
        cause=cause,
        cluster=stamp.cluster,
        job_id=job.job_id,
        position=Position(source_of(stamp.cluster), 0, stamp.look_ms),
        restart_count=job.restart_count,
        submit_time=job.submit_time,
        # Slurm also shows when it expects a pending job to start, and a running one to end.
        start_ms=job.start_time * 1000 if state in STARTED and job.nodes and job.start_time else None,
        end_ms=job.end_time * 1000 if final and job.end_time else None,
        state=state,
        state_reason=job.reason,
        state_description=job.description,
        hold=hold,
        exit_code=job.exit_code if final else None,  # a requeued job still shows the last attempt's
        in_controller=True,
        nodes=job.nodes if state in STARTED or state is AttemptState.CONFIGURING else (),
        excluded_nodes=job.excluded_nodes,
        name=job.name,
        user=job.user,
        partition=job.partition,
        requeue=job.requeue,
        batch=job.batch,
        raw_job_id=job.raw_job_id,
        log_paths=job.log_paths,
        workflow_id=workflow_of(aps, job.name, job.job_id),
        aps=aps,
        aps_error=aps_error,
        mode=allowed.mode,
        mode_reason=allowed.reason,
        advice_generation=generation,
        policy=stamp.policy,
        logic=stamp.logic,
    )


def workflow_of(aps: Aps | None, name: str, job_id: str) -> str:
    """APS workflow_id, else workflow_name, else the job's name, else its id."""
    return (aps.workflow_id or aps.workflow_name if aps is not None else None) or name or job_id


def left(
    last: JobObserved | JobView, record: Accounted, stamp: Stamp, *, generation: int, cause: str
) -> JobObserved | None:
    """The final observation of a job that slurmctld no longer shows, from its last one and accounting's record.

    None where a view alone is known and it has no attempt to speak of.
    """
    if isinstance(last, JobView):
        seen = _from_view(last, record, stamp)
        if seen is None:
            return None
        last = seen
    fields = vars(last) | {
        "event_id": derived_id("observed", stamp.cluster, last.job_id, stamp.look_ms),
        "cause": cause,
        "position": Position(source_of(stamp.cluster), 0, stamp.look_ms),
        "start_ms": record.start_time * 1000 if record.start_time and record.nodes else None,
        "end_ms": record.end_time * 1000 if record.end_time else None,
        "state": record.state,
        "state_reason": last.state_reason if last.state is record.state else "",
        "state_description": last.state_description if last.state is record.state else "",
        "hold": Hold.NONE,
        "exit_code": record.exit_code,
        "in_controller": False,
        "nodes": record.nodes or last.nodes,
        "advice_generation": generation,
        "policy": stamp.policy,
        "logic": stamp.logic,
    }
    return JobObserved(**fields)


def _from_view(view: JobView, record: Accounted, stamp: Stamp) -> JobObserved | None:
    """The little that is known of a job that left while no controller looked."""
    if not view.attempts:
        return None
    attempt = view.attempts[-1]
    return JobObserved(
        event_id="",
        cause="",
        cluster=view.cluster,
        job_id=view.job_id,
        position=Position(source_of(view.cluster), 0, stamp.look_ms),
        restart_count=attempt.attempt.index,
        submit_time=attempt.submit_time,
        start_ms=attempt.start_ms,
        end_ms=attempt.end_ms,
        state=attempt.state,
        state_reason="",
        state_description="",
        hold=Hold.NONE,
        exit_code=None,
        in_controller=False,
        nodes=attempt.nodes,
        excluded_nodes=(),
        name=record.name,
        user=record.user,
        partition=record.partition,
        requeue=False,
        batch=True,
        raw_job_id=view.raw_job_id,
        log_paths=attempt.log_paths,
        workflow_id=view.workflow_id,
        aps=view.aps,
        aps_error=None,
        mode=view.mode,
        mode_reason="it left slurmctld while no controller looked",
        advice_generation=0,
        policy=stamp.policy,
        logic=stamp.logic,
    )


def same_but_when(one: JobObserved, other: JobObserved) -> bool:
    """Whether two looks show the same: all fields but when it was seen and for which Advice."""
    ignored = {"event_id", "cause", "position", "advice_generation"}
    return all(value == vars(other)[name] for name, value in vars(one).items() if name not in ignored)
