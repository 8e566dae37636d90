"""`squeue --json`: every job that slurmctld remembers, as 22.05 and later versions write it.

One look is known or unknown as a whole. A single job of an unknown shape is present but unreadable: it is neither
observed nor taken as gone. Pending tasks that are folded into their array are not jobs yet.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sac.slurm import shapes
from sac.slurm.answers import Known, Unknown
from sac.slurm.commands import SlurmCommands
from sac.slurm.nodes import InvalidHostList, expand
from sac.slurm.paths import OutputOf, log_paths
from sac.slurm.shapes import UnknownShape
from schemas.vocabulary import AttemptState


@dataclass(frozen=True)
class SlurmJob:
    """One job as slurmctld shows it, in Slurm's own words. Times are seconds since the epoch; 0 means none."""

    job_id: str  # 123, 123_4, 200+1
    raw_job_id: int
    het_leader: int | None  # raw id of the leader of a heterogeneous job
    het_offset: int
    cluster: str
    state: AttemptState  # as shown; whether PENDING means HELD is sac.observe's to say
    reason: str
    description: str
    priority: int | None
    restart_count: int
    submit_time: int
    start_time: int
    end_time: int
    exit_code: int | None  # raw wait status
    nodes: tuple[str, ...]
    excluded_nodes: tuple[str, ...]
    name: str
    user: str
    partition: str
    comment: str
    requeue: bool
    batch: bool
    log_paths: tuple[str, ...]


@dataclass(frozen=True)
class Look:
    """All that one squeue showed."""

    jobs: Mapping[str, SlurmJob]
    unreadable: Mapping[str, str]  # job id -> why it could not be read
    folded: frozenset[int]  # arrays with pending tasks that are not jobs yet

    def shows(self, job_id: str) -> bool:
        """Whether slurmctld still has this job, readable or not."""
        if job_id in self.jobs or job_id in self.unreadable:
            return True
        array, _, task = job_id.partition("_")
        return bool(task) and int(array) in self.folded


def look(commands: SlurmCommands, cluster: str, hostnames: Mapping[str, str]) -> Known[Look] | Unknown:
    """Ask slurmctld for all jobs. `hostnames` maps a node's name to its host's, which output paths may carry."""
    answer = commands.read("squeue", "--json")
    return answer if isinstance(answer, Unknown) else parse(answer.value, cluster, hostnames)


def parse(output: str, cluster: str, hostnames: Mapping[str, str] | None = None) -> Known[Look] | Unknown:
    """Read what squeue printed. Never raises."""
    try:
        document = json.loads(output)
        errors, entries = document.get("errors") or [], document["jobs"]
    except (ValueError, AttributeError, KeyError, TypeError, RecursionError) as error:
        return Unknown(f"squeue --json printed something else than jobs: {error!r}")
    if errors:
        return Unknown(f"squeue --json reports errors: {str(errors)[:300]}")
    if not isinstance(entries, list):
        return Unknown(f"squeue --json: jobs is a {type(entries).__name__}, not a list")
    jobs: dict[str, SlurmJob] = {}
    unreadable: dict[str, str] = {}
    folded: set[int] = set()
    for entry in entries:
        try:
            job_id = _job_id(entry)
        except (UnknownShape, AttributeError) as error:
            return Unknown(f"squeue --json has a job without a readable id: {error}")
        if job_id is None:
            folded.add(shapes.required(entry, "array_job_id"))
            continue
        try:
            job = _job(entry, job_id, hostnames or {})
        except (UnknownShape, InvalidHostList, ValueError) as error:
            unreadable[job_id] = str(error)
            continue
        if job.cluster not in ("", cluster):
            return Unknown(f"this is cluster {job.cluster!r}, but slurm.cluster says {cluster!r}: correct the setting")
        jobs[job_id] = job
    return Known(Look(jobs, unreadable, frozenset(folded)))


def _job_id(entry: dict[str, Any]) -> str | None:
    """The id by which Slurm's commands know this job; None for folded pending tasks of an array."""
    raw = shapes.required(entry, "job_id")
    array = shapes.number(entry, "array_job_id", default=0)
    task = shapes.number(entry, "array_task_id")
    if array:
        if task is None or shapes.text(entry, "array_task_string"):
            return None
        return f"{array}_{task}"
    leader = shapes.number(entry, "het_job_id", default=0)
    if leader:
        return f"{leader}+{shapes.number(entry, 'het_job_offset', default=0)}"
    return str(raw)


def _job(entry: dict[str, Any], job_id: str, hostnames: Mapping[str, str]) -> SlurmJob:
    raw = shapes.required(entry, "job_id")
    array = shapes.number(entry, "array_job_id", default=0) or None
    leader = shapes.number(entry, "het_job_id", default=0) or None
    nodes = expand(shapes.node_list(entry, "nodes"))
    batch = shapes.flag(entry, "batch_flag")
    name, user = shapes.text(entry, "name"), shapes.text(entry, "user_name")
    host = shapes.text(entry, "batch_host") or (nodes[0] if nodes else "")
    output = OutputOf(
        raw,
        array,
        shapes.number(entry, "array_task_id"),
        name,
        user,
        hostnames.get(host, host),
        shapes.text(entry, "current_working_directory"),
    )
    return SlurmJob(
        job_id=job_id,
        raw_job_id=raw,
        het_leader=leader,
        het_offset=shapes.number(entry, "het_job_offset", default=0) or 0 if leader else 0,
        cluster=shapes.text(entry, "cluster"),
        state=state_of(shapes.words(entry, "job_state")),
        reason=shapes.text(entry, "state_reason"),
        description=shapes.text(entry, "state_description"),
        priority=shapes.number(entry, "priority"),
        restart_count=shapes.required(entry, "restart_cnt"),
        submit_time=_positive(entry, "submit_time"),
        start_time=shapes.number(entry, "start_time", default=0) or 0,
        end_time=shapes.number(entry, "end_time", default=0) or 0,
        exit_code=shapes.wait_status(entry, "exit_code"),
        nodes=nodes,
        excluded_nodes=expand(shapes.text(entry, "excluded_nodes")),
        name=name,
        user=user or str(shapes.number(entry, "user_id", default=0)),
        partition=shapes.text(entry, "partition"),
        comment=shapes.text(entry, "comment"),
        requeue=shapes.flag(entry, "requeue"),
        batch=batch,
        log_paths=_log_paths(entry, output) if batch else (),
    )


def _positive(entry: dict[str, Any], name: str) -> int:
    value = shapes.required(entry, name)
    if value <= 0:
        raise UnknownShape(f"{name} is {value}: no time")
    return value


def _log_paths(entry: dict[str, Any], output: OutputOf) -> tuple[str, ...]:
    """Later versions give the expanded paths themselves."""
    out, err = shapes.text(entry, "stdout_expanded"), shapes.text(entry, "stderr_expanded")
    if out:
        return tuple(path for path in dict.fromkeys((out, err or out)) if path != "/dev/null")
    return log_paths(output, shapes.text(entry, "standard_output"), shapes.text(entry, "standard_error"))


def state_of(shown: tuple[str, ...]) -> AttemptState:
    """The state of a job: base state and flags in later versions, one word in 22.05. Raises UnknownShape."""
    names = [word.split()[0].rstrip("+").upper() if word.strip() else "" for word in shown]
    for flag in (AttemptState.COMPLETING, AttemptState.CONFIGURING, AttemptState.SPECIAL_EXIT):
        if flag in names:
            return flag
    for name in names:
        if name in ("STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING", "RESV_DEL_HOLD", "REQUEUE_FED"):
            continue
        if name in ("REQUEUE_HOLD", "REQUEUED") and len(names) > 1:
            continue
        if name in AttemptState.__members__ and name not in ("HELD", "UNKNOWN"):
            return AttemptState(name)
        raise UnknownShape(f"the state {name!r} is none that we know")
    raise UnknownShape(f"{shown!r} is no state that we know")
