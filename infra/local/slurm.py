"""A real Slurm cluster of four virtual nodes with accounting, all of it inside the data folder.

Every node is a slurmd of this machine; `hostname` is the same on all, a job tells its node by $SLURMD_NODENAME.
Stopping ends running jobs (their processes would be orphans) and keeps pending ones for the next start.
"""

import os
import pwd
import secrets
import socket
import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from infra.local.accounting_db import AccountingDb
from infra.local.apt import ensure_slurm, search_path
from infra.local.daemon import Daemon
from infra.local.folder import DataFolder
from infra.local.leftovers import kill_all_with
from infra.local.parts import PartFailed, Report
from infra.local.ports import Ports
from infra.local.slurm_config import CGROUP_CONF, NODES, ClusterLayout, slurm_conf, slurmdbd_conf

START_SECONDS = 60.0
STOP_SECONDS = 15.0
COMMAND_SECONDS = 10.0
SERVERS = ("slurmctld", "slurmdbd", "slurm_database")


class Slurm:
    """The `slurm` part; its endpoint is `slurm_conf`, to be named in SLURM_CONF."""

    name = "slurm"

    def __init__(self, folder: DataFolder, ports: Ports) -> None:
        self._folder = folder
        self._ports = ports
        self._munged = Daemon("munged", folder)
        self._slurmdbd = Daemon("slurmdbd", folder)
        self._slurmctld = Daemon("slurmctld", folder)
        self._nodes = {node: Daemon(f"slurmd-{node}", folder) for node in NODES}

    def start(self, report: Report) -> None:
        """Also starts again whichever of its daemons has died. Raises `SlurmUnavailable` where it can't be had."""
        if self.healthy():
            return
        ensure_slurm(report)
        if not self._any_running():
            self._configure()
        report("starting Slurm")
        port = self._ports.known("slurm_database")
        assert port is not None
        with ThreadPoolExecutor(2) as pool:
            database = pool.submit(AccountingDb(self._folder).start, port, report)
            self._start_munged()
            database.result()
        self._start_daemon(self._slurmdbd, ["slurmdbd", "-D"])
        self._slurmdbd.wait_ready(self._accounting_answers, seconds=START_SECONDS)
        self._start_daemon(self._slurmctld, ["slurmctld", "-D", "-f", str(self._conf)])
        for node, daemon in self._nodes.items():
            self._start_daemon(daemon, ["slurmd", "-D", "-f", str(self._conf), "-N", node])
        self._slurmctld.wait_ready(self._all_nodes_up, seconds=START_SECONDS)
        report(f"Slurm runs with {len(NODES)} nodes")

    def stop(self) -> None:
        if self._slurmctld.running():
            self._cancel_running_jobs()
        # Steps and what they run live in sessions of their own and outlive slurmd; daemons have no SLURM_JOB_ID.
        kill_all_with("SLURM_CONF", str(self._conf), program="slurmstepd")
        kill_all_with("SLURM_CONF", str(self._conf), also="SLURM_JOB_ID")
        for daemon in self._nodes.values():
            daemon.stop(seconds=STOP_SECONDS)
        self._slurmctld.stop(seconds=STOP_SECONDS)
        self._slurmdbd.stop(seconds=STOP_SECONDS)
        AccountingDb(self._folder).stop()
        self._munged.stop(seconds=STOP_SECONDS)

    @property
    def daemons(self) -> tuple[str, ...]:
        return (AccountingDb.DAEMON, *(daemon.name for daemon in self._own))

    def healthy(self) -> bool:
        """Whether all daemons run, slurmctld and slurmdbd answer, and every node responds (drained or not)."""
        alive = AccountingDb(self._folder).running() and all(daemon.running() for daemon in self._own)
        return alive and self._all_nodes_respond() and self._accounting_answers()

    @property
    def endpoints(self) -> Mapping[str, str]:
        return {"slurm_conf": str(self._conf)} if self._conf.exists() else {}

    @property
    def _own(self) -> tuple[Daemon, ...]:
        return (self._munged, self._slurmdbd, self._slurmctld, *self._nodes.values())

    @property
    def _home(self) -> Path:
        return self._folder.part(self.name)

    @property
    def _conf(self) -> Path:
        return self._home / "slurm.conf"

    @property
    def _environment(self) -> dict[str, str]:
        return {"SLURM_CONF": str(self._conf), "PATH": search_path(), "LC_ALL": "C.UTF-8"}

    def _any_running(self) -> bool:
        return AccountingDb(self._folder).running() or any(daemon.running() for daemon in self._own)

    def _configure(self) -> None:
        """Writes the configuration, with ports that are free now (so never while a daemon runs)."""
        ports = self._ports.free(*SERVERS, *(f"slurm_{node}" for node in NODES))
        layout = ClusterLayout(
            folder=self._home,
            log=self._folder.log,
            munge_socket=self._folder.socket("munge.sock"),
            user=pwd.getpwuid(os.geteuid()).pw_name,
            host=socket.gethostname().split(".")[0],
            controller_port=ports[0],
            accounting_port=ports[1],
            database_port=ports[2],
            nodes=dict(zip(NODES, ports[3:], strict=True)),
        )
        for folder in ("state", "munge", *(f"spool/{node}" for node in NODES)):
            (self._home / folder).mkdir(parents=True, exist_ok=True)
        self._conf.write_text(slurm_conf(layout))
        (self._home / "cgroup.conf").write_text(CGROUP_CONF)
        accounting = self._home / "slurmdbd.conf"
        accounting.touch(mode=0o600)
        accounting.write_text(slurmdbd_conf(layout))
        key = self._home / "munge" / "key"
        if not key.exists():
            key.touch(mode=0o600)
            key.write_bytes(secrets.token_bytes(1024))

    def _start_munged(self) -> None:
        home, at = self._home / "munge", self._folder.socket("munge.sock")
        if not self._munged.running():
            for stale in (at, at.with_name(f"{at.name}.lock")):
                stale.unlink(missing_ok=True)
            files = [f"--key-file={home / 'key'}", f"--pid-file={home / 'pid'}", f"--seed-file={home / 'seed'}"]
            log = f"--log-file={self._folder.log / 'munged.log'}"
            # --force: it would refuse a socket in a folder that others may write to, such as one under /tmp
            self._start_daemon(
                self._munged, ["munged", "-F", "--force", "--num-threads=4", f"--socket={at}", log, *files]
            )
        self._munged.wait_ready(lambda: self._answers("munge", "-S", str(at), "-n"), seconds=START_SECONDS)

    def _start_daemon(self, daemon: Daemon, argv: list[str]) -> None:
        if not daemon.running():
            daemon.start(argv, env=self._environment)

    def _all_nodes_up(self) -> bool:
        """Raises `PartFailed` when a node's daemon has ended: there is nothing to wait for."""
        for daemon in self._nodes.values():
            if not daemon.running():
                raise PartFailed(f"{daemon.name} ended; the end of {daemon.log}:\n{daemon.last_lines()}")
        return self._all_nodes_respond()

    def _accounting_answers(self) -> bool:
        return self._answers("sacctmgr", "-n", "-i", "list", "cluster")

    def _all_nodes_respond(self) -> bool:
        states = self._ask("sinfo", "-h", "-N", "-o", "%t")  # a star marks a node that does not respond
        return states is not None and all(not s.endswith("*") and s not in ("unk", "down") for s in states)

    def _answers(self, *command: str) -> bool:
        return self._ask(*command) is not None

    def _ask(self, *command: str) -> list[str] | None:
        """The lines that a command of this cluster prints; None if it failed or was too slow."""
        try:
            done = subprocess.run(
                command,
                env={**os.environ, **self._environment},
                capture_output=True,
                text=True,
                timeout=COMMAND_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return None
        return done.stdout.splitlines() if done.returncode == 0 else None

    def _cancel_running_jobs(self) -> None:
        running = self._ask("squeue", "-h", "-t", "R,S", "-o", "%A")
        if running:
            self._ask("scancel", "--quiet", "--full", "--signal=KILL", *running)
            self._ask("scancel", "--quiet", *running)
