"""What Slurm itself says of the jobs of a run: its controller now, its accounting, and the log of what it was asked."""

from __future__ import annotations

import os
import re
import subprocess
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

COMMAND_S = 20.0
LOGGED = {
    "requeued": re.compile(r"^\[.*\] Requeuing JobId=(\d+)"),
    "released": re.compile(r"^\[.*_release_job_rec: release hold on JobId=(\d+)"),
    "cancelled": re.compile(r"^\[.*_slurm_rpc_kill_job: REQUEST_KILL_JOB JobId=(\d+)"),
    "unchangeable": re.compile(r"^\[.*can't update job, waited \d+ seconds for JobId=(\d+) to get a db_index"),
}
LOST = 5
"""So often slurmctld must have refused to change a job for want of its place in accounting, before it is given up."""


@dataclass(frozen=True)
class Shown:
    """One job as slurmctld shows it."""

    state: str
    restarts: int
    priority: int
    excluded: tuple[str, ...]


@dataclass(frozen=True)
class Accounted:
    """One attempt in accounting. `nodes` is empty for one that never ran."""

    state: str
    nodes: tuple[str, ...]
    exit_code: str


@dataclass(frozen=True)
class Orders:
    """How often slurmctld did each thing to one job, by its own log."""

    requeued: int = 0
    released: int = 0
    cancelled: int = 0
    unchangeable: int = 0

    @property
    def lost(self) -> bool:
        """slurmctld itself lost the job. One that ends while accounting tells it a job's place there saves "being told"
        with the job, waits for it ever after, and refuses each change meanwhile (Slurm 22.05, src/slurmctld/job_mgr.c,
        ESLURM_JOB_SETTING_DB_INX): nobody can exclude a node, release or hold the job any more.
        """
        return self.unchangeable >= LOST


@dataclass
class Cluster:
    """Slurm's commands, and what the controller last showed of each job (it forgets them after a while)."""

    conf: Path
    log: Path
    shown: dict[str, Shown] = field(default_factory=dict)

    def look(self) -> bool:
        """Take in what the controller shows; False where it does not answer."""
        lines = self._ask("scontrol", "-o", "show", "job")
        if lines is None:
            return False
        for line in lines:
            words = dict(word.split("=", 1) for word in line.split() if "=" in word)
            if "JobId" in words:
                self.shown[words["JobId"]] = Shown(
                    words["JobState"],
                    int(words["Restarts"]),
                    int(words["Priority"]),
                    self.hosts(words.get("ExcNodeList", "")),
                )
        return True

    def accounting(self, job_ids: Collection[str]) -> dict[str, tuple[Accounted, ...]] | None:
        """Every attempt of these jobs, in order; None where accounting does not answer."""
        form = ["-D", "-X", "-n", "-P", "-o", "JobIDRaw,Submit,Start,State,NodeList,ExitCode"]
        lines = self._ask("sacct", *form, "-j", ",".join(job_ids))
        if lines is None:
            return None
        attempts: dict[str, list[Accounted]] = {job_id: [] for job_id in job_ids}
        for job_id, _, _, state, nodes, code in sorted(line.split("|") for line in lines):
            attempts[job_id].append(Accounted(state.split()[0], self.hosts(nodes), code))
        return {job_id: tuple(rows) for job_id, rows in attempts.items()}

    def orders(self) -> Mapping[str, Orders]:
        """What slurmctld did, from all of its log."""
        counts = {name: Counter[str]() for name in LOGGED}
        for line in self.log.read_text(errors="replace").splitlines():
            for name, pattern in LOGGED.items():
                found = pattern.match(line)
                if found is not None:
                    counts[name][found[1]] += 1
        jobs = {job for counter in counts.values() for job in counter}
        return {job: Orders(**{name: counter[job] for name, counter in counts.items()}) for job in jobs}

    def hosts(self, expression: str) -> tuple[str, ...]:
        """The nodes of a host list such as `node[1,3-4]`; none for `(null)` or `None assigned`."""
        if not expression or expression.startswith(("(", "None")):
            return ()
        return tuple(name for part in re.findall(r"[^,\[]+(?:\[[^\]]*\])?", expression) for name in _expand(part))

    def _ask(self, *command: str) -> list[str] | None:
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("SQUEUE_", "SACCT_", "SLURM_"))}
        try:
            done = subprocess.run(
                command,
                env={**clean, "SLURM_CONF": str(self.conf), "LC_ALL": "C.UTF-8"},
                capture_output=True,
                text=True,
                timeout=COMMAND_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return None
        return done.stdout.splitlines() if done.returncode == 0 else None


def _expand(part: str) -> list[str]:
    stem, bracket, inside = part.partition("[")
    if not bracket:
        return [stem]
    names = []
    for span in inside.rstrip("]").split(","):
        first, _, last = span.partition("-")
        names += [f"{stem}{number}" for number in range(int(first), int(last or first) + 1)]
    return names
