"""Slurm comes from Debian: this installs its packages where they are missing and we may.

The packages' own services are of no use to us (ours run in the data folder, on ports of their own), so they are kept
from starting while we install. One that starts at a later boot is harmless: without /etc/slurm/slurm.conf Slurm's own
do not, and munge and MariaDB use the system's socket and port, which the stack never does.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from infra.local.parts import Report, StackError

PACKAGES = (
    "slurmctld",
    "slurmd",
    "slurmdbd",
    "slurm-client",
    "slurm-wlm-basic-plugins",
    "slurm-wlm-mysql-plugin",
    "munge",
    "mariadb-server",
)
PROGRAMS = ("slurmctld", "slurmd", "slurmdbd", "scontrol", "sbatch", "srun", "sacct", "munged", "munge", "mariadbd")
SYSTEM_PROGRAMS = "/usr/sbin:/sbin"  # where daemons lie, which an ordinary user's PATH leaves out
POLICY = Path("/usr/sbin/policy-rc.d")
INSTALL_SECONDS = 600.0
BY_HAND = f"apt-get install -y --no-install-recommends {' '.join(PACKAGES)}"


class SlurmUnavailable(StackError):
    """Slurm isn't installed here and can't be; the message says what is missing and what to do."""


def search_path() -> str:
    """$PATH with the folders of system programs added."""
    return f"{os.environ.get('PATH', os.defpath)}:{SYSTEM_PROGRAMS}"


def missing_programs() -> list[str]:
    return [program for program in PROGRAMS if shutil.which(program, path=search_path()) is None]


def ensure_slurm(report: Report) -> None:
    """Installs Slurm's packages unless all programs are there. Raises `SlurmUnavailable`."""
    missing = missing_programs()
    if not missing:
        return
    lacking = f"Slurm can't be installed here: {', '.join(missing)} missing"
    if shutil.which("apt-get", path=search_path()) is None:
        raise SlurmUnavailable(f"{lacking}, and this is not Debian or Ubuntu; run it on Debian 12")
    if os.geteuid() != 0:
        raise SlurmUnavailable(f"{lacking}, and only root may install packages; as root run: {BY_HAND}")
    report("installing Slurm, munge and MariaDB from Debian packages (31 MB, once)")
    with _services_kept_from_starting():
        _install(report)
    missing = missing_programs()
    if missing:
        raise SlurmUnavailable(f"the packages were installed, but {', '.join(missing)} did not come with them")


def _install(report: Report) -> None:
    """Tries with the package lists at hand, and with fresh ones if that fails."""
    command = ["apt-get", "install", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=120", *PACKAGES]
    if _run(command, report) == 0:
        return
    report("refreshing the package lists")
    if _run(["apt-get", "update"], report) != 0 or _run(command, report) != 0:
        raise SlurmUnavailable(f"apt-get failed; its words are above or come again with: {BY_HAND}")


def _run(command: list[str], report: Report) -> int:
    """Runs apt-get, reports its milestones and its complaints, and returns its exit code."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C", "PATH": search_path()}
    deadline = time.monotonic() + INSTALL_SECONDS
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    ) as apt:
        assert apt.stdout is not None
        for line in apt.stdout:
            if line.startswith(("Fetched ", "Setting up ", "E: ", "Err:")):
                report(line.removesuffix(" ...\n").strip())
            if time.monotonic() > deadline:
                apt.terminate()
    return apt.returncode


@contextmanager
def _services_kept_from_starting() -> Iterator[None]:
    """Debian's own switch for that: a policy script which says no (101). One that exists already is respected."""
    if POLICY.exists():
        yield
        return
    POLICY.write_text("#!/bin/sh\nexit 101\n")
    POLICY.chmod(0o755)
    try:
        yield
    finally:
        POLICY.unlink()
