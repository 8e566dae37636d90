"""Looks at a cluster as a user does: by Slurm's commands, with a deadline on every wait."""

import os
import subprocess
import time
from collections.abc import Callable, Collection
from pathlib import Path

FINAL = ("COMPLETED", "FAILED", "CANCELLED", "NODE_FAIL", "TIMEOUT", "OUT_OF_MEMORY")


def ask(slurm_conf: Path | None, *command: str) -> str:
    environment = {**os.environ, "SLURM_CONF": str(slurm_conf)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30, check=True)
    return done.stdout


def field(slurm_conf: Path | None, job: str, name: str) -> str:
    """One field of `scontrol show job`, such as JobState."""
    shown = ask(slurm_conf, "scontrol", "show", "job", job)
    return next(word.removeprefix(f"{name}=") for word in shown.split() if word.startswith(f"{name}="))


def wait_for_state(slurm_conf: Path | None, job: str, states: Collection[str], seconds: float = 60.0) -> str:
    """The first of the states that the job was seen in."""
    deadline = time.monotonic() + seconds
    while True:
        state = field(slurm_conf, job, "JobState")
        if state in states:
            return state
        assert time.monotonic() < deadline, f"job {job} is {state} after {seconds} s, not one of {states}"
        time.sleep(0.1)


def accounted(slurm_conf: Path | None, job: str, states: list[str], seconds: float = 20.0) -> list[str]:
    """Waits until accounting, which lags, shows the attempts of a job in these states."""
    deadline = time.monotonic() + seconds
    while True:
        shown = ask(slurm_conf, "sacct", "-D", "-X", "-n", "-P", "-j", job, "-o", "State").split()
        if shown == states or time.monotonic() > deadline:
            return shown
        time.sleep(0.2)


def wait_for(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not so after {seconds} s"
        time.sleep(0.05)
