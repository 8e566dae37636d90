"""A cheap look at one job, right before a command: is the command still meant for what is there now?"""

from __future__ import annotations

from dataclasses import dataclass

from sac.slurm.answers import Unknown
from sac.slurm.commands import SlurmCommands
from sac.slurm.shapes import UnknownShape
from sac.slurm.squeue import state_of
from schemas.vocabulary import AttemptState


@dataclass(frozen=True)
class Glimpse:
    """Which attempt there is now, and its state as Slurm names it (a held job is PENDING)."""

    restart_count: int
    state: AttemptState


def glimpse(commands: SlurmCommands, target: str) -> Glimpse | Unknown:
    """Look at a job, an array task or (by raw id) a component of a heterogeneous job."""
    answer = commands.read("squeue", "-h", "-t", "all", "-j", target, "-O", "JobID:16,RestartCnt:16,State:32")
    if isinstance(answer, Unknown):
        return answer
    rows = [line.split() for line in answer.value.splitlines()]
    # Slurm answers for all components where the leader is asked for; a task's raw id is not known here.
    wanted = [row for row in rows if len(row) == 3 and ("_" in target or row[0] == target)]
    if len(wanted) != 1:
        return Unknown(f"squeue shows {len(wanted)} rows for job {target}")
    try:
        return Glimpse(int(wanted[0][1]), state_of((wanted[0][2],)))
    except (ValueError, UnknownShape) as error:
        return Unknown(f"squeue shows job {target} as {wanted[0]!r}: {error}")


def changed(commands: SlurmCommands, target: str, restart_count: int, state: AttemptState) -> str | None:
    """What differs now from an earlier look, in words; None where nothing does. What can't be known differs."""
    now = glimpse(commands, target)
    if isinstance(now, Unknown):
        return now.reason
    expected = AttemptState.PENDING if state is AttemptState.HELD else state
    if now != Glimpse(restart_count, expected):
        return f"Slurm shows restart count {now.restart_count}, {now.state}"
    return None
