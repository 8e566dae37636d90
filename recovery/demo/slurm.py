"""What Slurm itself says: the demo believes this, not our logs."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

COMMAND_S = 10.0


@dataclass(frozen=True)
class Accounted:
    """One attempt in Slurm's accounting."""

    state: str
    nodes: str
    exit_code: str


class Cluster:
    """Slurm's own commands."""

    def __init__(self, slurm_conf: Path) -> None:
        self._environment = {k: v for k, v in os.environ.items() if not k.startswith(("SQUEUE_", "SACCT_", "SLURM_"))}
        self._environment["SLURM_CONF"] = str(slurm_conf)

    def job(self, job_id: str) -> dict[str, str]:
        """The fields of `scontrol show job`."""
        words = self._run("scontrol", "show", "job", job_id).split()
        return dict(word.split("=", 1) for word in words if "=" in word)

    def accounting(self, job_id: str) -> list[Accounted]:
        """One record an attempt, in order."""
        lines = self._run(
            "sacct", "-D", "-X", "-n", "-P", "-j", job_id, "-o", "Submit,State,NodeList,ExitCode"
        ).splitlines()
        rows = sorted(line.split("|") for line in lines)
        return [Accounted(state.split()[0], nodes, code) for _, state, nodes, code in rows]

    def hosts(self, expression: str) -> tuple[str, ...]:
        """The nodes of a host list such as `node[1,3]`; none for `(null)`."""
        if not expression or expression.startswith(("(", "None")):
            return ()
        return tuple(self._run("scontrol", "show", "hostnames", expression).split())

    def lose_node(self, node: str) -> None:
        """Have Slurm take a node for DOWN: it requeues what ran there."""
        self._run("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=demo")

    def have_node_back(self, node: str) -> None:
        """Resume the node, unless it came back by itself (ReturnToService)."""
        if self._run("sinfo", "-h", "-n", node, "-o", "%T").strip().startswith("down"):
            self._run("scontrol", "update", f"NodeName={node}", "State=RESUME")

    def cancel(self, job_id: str) -> None:
        self._run("scancel", job_id)

    def _run(self, *command: str) -> str:
        done = subprocess.run(
            command, env=self._environment, capture_output=True, text=True, timeout=COMMAND_S, check=True
        )
        return done.stdout
