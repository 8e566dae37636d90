"""Ends what jobs of a stopped cluster left running: their steps live in sessions of their own and outlive slurmd."""

import contextlib
import os
import signal
from pathlib import Path


def end_job_processes(slurm_conf: Path) -> list[int]:
    """Kills every process whose environment names this cluster's configuration, and that a step of it started.

    Returns their pids. The daemons and commands of the cluster have the same SLURM_CONF, but no SLURM_JOB_ID.
    """
    wanted = os.fsencode(f"SLURM_CONF={slurm_conf}")
    ended = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        if _belongs(entry, wanted):
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(entry.name), signal.SIGKILL)
                ended.append(int(entry.name))
    return ended


def _belongs(entry: Path, wanted: bytes) -> bool:
    try:
        environment = (entry / "environ").read_bytes().split(b"\0")
        name = (entry / "comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return False  # gone meanwhile, or another user's
    in_job = any(variable.startswith(b"SLURM_JOB_ID=") for variable in environment)
    return wanted in environment and (in_job or name == "slurmstepd")
