"""Targeted `sacct`: what became of attempts that slurmctld no longer shows.

Accounting lags (a held job takes seconds to appear) and keeps the records of every earlier use of a job id, so a
record counts only if it is final and was submitted when the attempt was. Everything else is unknown yet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sac.slurm.answers import Known, Unknown
from sac.slurm.commands import SlurmCommands
from sac.slurm.nodes import InvalidHostList, expand
from sac.slurm.shapes import UnknownShape
from sac.slurm.squeue import state_of
from schemas.vocabulary import FINAL_STATES, AttemptState

# The name comes last: it may contain the separator.
FIELDS = (
    "JobID",
    "JobIDRaw",
    "Submit",
    "Start",
    "End",
    "State",
    "ExitCode",
    "NodeList",
    "User",
    "Partition",
    "JobName",
)
MAX_IDS = 100
"""Ids in one call: slurmdbd answers slowly to more, and their text has a limit."""


@dataclass(frozen=True)
class Accounted:
    """One attempt's record. Times are seconds since the epoch; 0 means none."""

    job_id: str
    raw_job_id: int
    submit_time: int
    start_time: int
    end_time: int
    state: AttemptState
    exit_code: int  # raw wait status
    nodes: tuple[str, ...]
    user: str
    partition: str
    name: str


def records(commands: SlurmCommands, job_ids: Sequence[str]) -> Known[Mapping[str, tuple[Accounted, ...]]] | Unknown:
    """All records of these jobs, by job id, oldest first. The caller bounds `job_ids` to MAX_IDS."""
    argv = ["sacct", "-P", "-D", "-X", "--noheader", "-j", ",".join(job_ids), "-o", ",".join(FIELDS)]
    answer = commands.read(*argv, may_be_empty=True)
    return answer if isinstance(answer, Unknown) else parse(answer.value)


def parse(output: str) -> Known[Mapping[str, tuple[Accounted, ...]]] | Unknown:
    """Read what sacct printed. Never raises."""
    found: dict[str, list[Accounted]] = {}
    for line in output.splitlines():
        parts = line.split("|", len(FIELDS) - 1)
        if len(parts) != len(FIELDS):
            return Unknown(f"sacct printed {line[:200]!r}, which has not {len(FIELDS)} fields")
        if "[" in parts[0]:  # pending tasks of an array, not jobs yet
            continue
        try:
            record = _record(parts)
        except (ValueError, UnknownShape, InvalidHostList) as error:
            return Unknown(f"sacct printed {line[:200]!r}: {error}")
        found.setdefault(record.job_id, []).append(record)
    return Known({job: tuple(sorted(all_, key=lambda r: (r.submit_time, r.start_time))) for job, all_ in found.items()})


def final_record(known: Sequence[Accounted], submit_time: int) -> Accounted | None:
    """The final record of the attempt with this SubmitTime; None while accounting has none."""
    same = [record for record in known if record.submit_time == submit_time and record.state in FINAL_STATES]
    return same[-1] if same else None


def _record(parts: Sequence[str]) -> Accounted:
    job_id, raw, submit, start, end, state, exit_code, nodes, user, partition, name = parts
    code, _, signal = exit_code.partition(":")
    return Accounted(
        job_id=job_id,
        raw_job_id=int(raw.partition("+")[0]),
        submit_time=_seconds(submit),
        start_time=_seconds(start),
        end_time=_seconds(end),
        state=state_of((state,)),  # "CANCELLED by 123": the first word
        exit_code=int(code) << 8 | int(signal or 0),
        nodes=expand(nodes),
        user=user,
        partition=partition,
        name=name,
    )


def _seconds(text: str) -> int:
    return int(text) if text not in ("Unknown", "None", "") else 0
