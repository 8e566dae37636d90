"""Submits the trainer to Slurm, for the demo, the tests and anyone who wants to see a job recover."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from infra.local.parts import StackError

SCRIPT = Path(__file__).resolve().parents[1] / "train.sbatch"
SUBMIT_SECONDS = 30.0


@dataclass(frozen=True)
class TrainingJob:
    """One training job. `comment` is the job's comment (its APS, where it opts in); `sbatch` takes further options.

    `script` starts the ranks, and gives its arguments to each.
    """

    checkpoints: Path
    output: Path
    iterations: int = 60
    step_seconds: float = 0.15
    save_every: int = 10
    fault: str | None = None
    fault_node: str | None = None
    fault_iteration: int = 25
    fault_attempts: int | None = None
    fault_id: str = ""
    comment: str | None = None
    sbatch: tuple[str, ...] = ()
    script: Path = SCRIPT

    def command(self) -> list[str]:
        """The sbatch command, complete."""
        options = ["--parsable", f"--output={self.output}", *self.sbatch]
        if self.comment is not None:
            options.append(f"--comment={self.comment}")
        arguments = [f"--iterations={self.iterations}", f"--step-seconds={self.step_seconds}"]
        arguments.append(f"--save-every={self.save_every}")
        if self.fault is not None:
            arguments += [f"--fault={self.fault}", f"--fault-iteration={self.fault_iteration}"]
        if self.fault_attempts is not None:
            arguments.append(f"--fault-attempts={self.fault_attempts}")
        if self.fault_node is not None:
            arguments.append(f"--fault-node={self.fault_node}")
        return ["sbatch", *options, str(self.script), *arguments]

    def environment(self) -> dict[str, str]:
        return {
            "TRAIN_ROOT": str(SCRIPT.parents[2]),
            "TRAIN_PYTHON": sys.executable,
            "TRAIN_CHECKPOINTS": str(self.checkpoints),
            "TRAIN_FAULT_ID": self.fault_id,
        }

    def submit(self, slurm_conf: Path) -> str:
        """Submits and returns the job id. Raises `StackError` with sbatch's words."""
        environment = {**os.environ, **self.environment(), "SLURM_CONF": str(slurm_conf)}
        done = subprocess.run(
            self.command(), env=environment, capture_output=True, text=True, timeout=SUBMIT_SECONDS, check=False
        )
        if done.returncode != 0:
            raise StackError(f"sbatch refused the training job: {done.stderr.strip()}")
        return done.stdout.strip()
