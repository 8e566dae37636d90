"""The stack of one chaos run, with everything of ours on it, and what is done to both."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from infra.local.daemon import Daemon
from infra.local.folder import DataFolder
from infra.local.keeper import Child
from infra.local.parts import PartFailed, Report
from infra.local.stack import Stack
from infra.local.supervisor import Supervisor
from projections.migrate import upgrade
from recovery.launch import children
from recovery.run_files import read_run_files
from recovery.settings import Settings, load_settings
from recovery.status import ask_all
from recovery.topics import create_topics
from schemas.bookkeeping import PolicyPublished
from schemas.codec import Codec
from schemas.identity import derived_id
from schemas.policy import LOGIC, Policy
from schemas.registry import RegistryIds, require_compatibility
from schemas.topics import POLICIES
from streams.kafka import producer, send
from tests.chaos.plan import OURS, SLOTS

READY_S = 180.0
PART_TRIES = 5
SLURMCTLD = "slurmctld"
"""Slurm's own state is saved up to 5 s late, and what it forgets in a crash is no fault of ours: it is told to end."""

POLICY = Policy(crash_fallback_delay_s=40.0)
"""A failure that no line explains waits longer than the watch, stopped and killed in turn, is ever blind."""


@dataclass(frozen=True)
class World:
    """One stack in one folder, and our processes on it."""

    stack: Stack
    settings: Settings
    processes: tuple[str, ...]

    @property
    def data(self) -> Path:
        return self.settings.data

    @property
    def slurm_conf(self) -> Path:
        assert self.settings.slurm.conf_path is not None
        return self.settings.slurm.conf_path

    @cached_property
    def codec(self) -> Codec:
        return Codec(RegistryIds(self.settings.registry.url))

    def pid(self, name: str) -> int | None:
        """The living process of ours with that name."""
        return next((c.pid for c in Supervisor(self.data).status().children if c.name == name and c.running), None)

    def kill(self, name: str) -> bool:
        return self._signal(name, signal.SIGKILL)

    def stop(self, name: str) -> int | None:
        """SIGSTOP; the pid to continue, None if it was not there."""
        pid = self.pid(name)
        return pid if pid is not None and self._signal(name, signal.SIGSTOP) else None

    def resume(self, pid: int) -> None:
        """SIGCONT, unless it was killed meanwhile."""
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)

    def end_part(self, name: str) -> None:
        """`kill -9`, but for slurmctld."""
        process = Daemon(name, DataFolder(self.data)).process()
        if process is None:
            return
        if name == SLURMCTLD:
            process.end(seconds=20.0)
        else:
            process.send(signal.SIGKILL)

    def start_part(self, name: str, report: Report) -> None:
        """Start it again; a part that did not come up in its first minutes is tried a few times. Raises PartFailed."""
        part = self.stack.parts["slurm" if name == SLURMCTLD else name]
        for left in reversed(range(PART_TRIES)):
            try:
                part.start(lambda _: None)
                return
            except PartFailed as error:
                report(f"{name} did not start: {str(error).splitlines()[0]}")
                if not left:
                    raise
                time.sleep(1.0)

    def wait_ready(self, timeout_s: float = READY_S) -> None:
        """Every process of ours answers that it does its work. Raises TimeoutError, which says what the others say."""
        deadline = time.monotonic() + timeout_s
        while True:
            asked = ask_all([record for record in read_run_files(self.data) if record.alive()])
            health = dict.fromkeys(self.processes, "not running") | {one.name: one.health for one in asked}
            if all(said == "ready" for said in health.values()):
                return
            if time.monotonic() > deadline:
                raise TimeoutError(f"not all ready within {timeout_s:g} s: {health}")
            time.sleep(0.5)

    def _signal(self, name: str, number: int) -> bool:
        pid = self.pid(name)
        if pid is None:
            return False
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return False
        return True


@contextmanager
def world(
    report: Report,
    *,
    parts: tuple[str, ...] = ("kafka", "registry", "postgres", "slurm"),
    processes: tuple[str, ...] = OURS,
    keep: bool = False,
) -> Iterator[World]:
    """Some or all parts, and processes of ours that act, in a new folder; all ended afterwards.

    The folder is gone then, unless `keep`.
    """
    folder = Path(tempfile.mkdtemp(prefix="recovery-chaos-"))
    reaper = [sys.executable, "-m", "tests.reaper", str(folder)]
    with subprocess.Popen(reaper, stdin=subprocess.PIPE, start_new_session=True) as guard:
        stack = Stack(folder)
        try:
            stack.start(report, only=parts)
            yield _with_processes(stack, processes, report)
        finally:
            Supervisor(folder).stop()
            stack.stop()
            if keep:
                report(f"left for a look: {folder}")
                guard.kill()
            else:
                shutil.rmtree(folder)


def _with_processes(stack: Stack, processes: tuple[str, ...], report: Report) -> World:
    settings = load_settings(environment={**os.environ, **_environment(stack)})
    create_topics(settings.kafka.bootstrap)
    require_compatibility(settings.registry.url)
    if stack.parts["postgres"].endpoints:
        upgrade(settings.postgres.url)
    started = World(stack, settings, processes)
    publish(started, POLICY)
    chosen = [child for child in children(settings, None) if child.name in processes]
    Supervisor(settings.data).start(
        [Child(child.name, child.argv, {**child.env, **_environment(stack)}) for child in chosen], report
    )
    started.wait_ready()
    return started


def _environment(stack: Stack) -> dict[str, str]:
    return {
        "RECOVERY_DATA": str(stack.data_folder),
        "RECOVERY_DECIDE__SLOTS": str(SLOTS),
        "SLURM_ADVISOR_ACKNOWLEDGE_SCHEDULER_ACTIONS": "true",
        "RECOVERY_SLURM__COMMAND_TIMEOUT_S": "8",  # slurmctld waits for 5 s before it refuses some changes
        "RECOVERY_WATCHDOG__MODE": "act",
        "RECOVERY_WATCHDOG__ACKNOWLEDGE": "true",
    }


def publish(to: World, policy: Policy) -> None:
    """Put a policy in force for the local cluster: its document, then the pointer."""
    digest, codec = policy.digest(), to.codec
    writer = producer(to.settings.kafka.bootstrap, "chaos")
    current = f"current/{to.settings.slurm.cluster}"
    for key, logic, document in ((digest, 0, policy.document()), (current, LOGIC, b"")):
        event = PolicyPublished(derived_id("chaos-policy", key), "", digest, logic, document)
        send(writer, POLICIES, key, codec.encode(event, source="chaos", time_ms=0, subject=key))
    if writer.flush(20):
        raise RuntimeError("Kafka did not take the policy")


def read_json_lines(path: Path) -> list[dict[str, object]]:
    """Every line of a file, none where there is no such file."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
