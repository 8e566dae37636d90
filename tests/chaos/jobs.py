"""The kinds of job that a run is made of: what each is told to do, and what must become of it. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass

COMPLETED = frozenset({"COMPLETED"})
# A failed attempt whose successor was held before the decision to stop is cancelled; one not yet held stays failed.
STOPPED = frozenset({"CANCELLED", "FAILED", "OUT_OF_MEMORY"})
FAILED = frozenset({"FAILED", "OUT_OF_MEMORY"})

RESTARTED, TERMINATED = "RESTARTED", "TERMINATED"
ENVIRONMENT = "local"


@dataclass(frozen=True)
class Kind:
    """One kind of job.

    `fault` strikes in the first `strikes` attempts (None: in all). `runs` is how many attempts must run, `final` how
    Slurm may end the last. `advised` is the last word of recovery on each attempt that was struck, from the first on.
    """

    name: str
    fault: str | None
    strikes: int | None
    runs: int
    final: frozenset[str]
    advised: tuple[str, ...]
    ranks: int = 1
    mode: str | None = "act"  # None: the job has not opted in
    max_requeue_times: int = 3
    excludes: bool = False
    early: bool = False  # the fault strikes before the first checkpoint

    @property
    def incidents(self) -> int:
        """How many attempts must have an incident, one each."""
        return self.struck if self.mode is not None else 0

    @property
    def struck(self) -> int:
        """In how many attempts the fault must strike."""
        return 0 if self.fault is None else self.runs if self.strikes is None else self.strikes

    @property
    def restarts(self) -> int:
        """How many attempts must have been given another one that ran."""
        return self.runs - 1

    def comment(self, name: str) -> str | None:
        """The APS of one job of this kind."""
        if self.mode is None:
            return None
        policy = {
            "workflow_id": name,
            "environment": ENVIRONMENT,
            "mode": self.mode,
            "auto_resume_mode": "requeue",
            "max_requeue_times": self.max_requeue_times,
            "log_file_paths_shared_across_attempts": True,
            "progress_interval": 1,
        }
        return json.dumps({"APS": policy}, separators=(",", ":"))


KINDS = (
    Kind("clean", None, None, 1, COMPLETED, ()),
    Kind("xid", "gpu-xid", 1, 2, COMPLETED, (RESTARTED,), ranks=2, excludes=True),
    Kind("xid-twice", "gpu-xid", 2, 3, COMPLETED, (RESTARTED, RESTARTED), excludes=True),
    Kind("user-error", "user-error", None, 1, STOPPED, (TERMINATED,), ranks=2),
    Kind("oom", "oom", 1, 2, COMPLETED, (RESTARTED,), ranks=2),
    Kind("oom-limit", "oom", None, 2, STOPPED, (RESTARTED, TERMINATED), max_requeue_times=1),
    # Hardware that breaks ever anew: a fault of the program would be stopped for coming again at the same step.
    Kind("no-progress", "gpu-xid", None, 3, STOPPED, (RESTARTED, RESTARTED, TERMINATED), excludes=True, early=True),
    Kind("silent", "silent-exit", 1, 2, COMPLETED, (RESTARTED,)),
    Kind("observed", "gpu-xid", None, 1, FAILED, (RESTARTED,), mode="observe"),
    Kind("not-ours", "oom", None, 1, FAILED, (), mode=None),
)
"""At most two nodes of the cluster's four are excluded for one job, so no job runs out of nodes."""
