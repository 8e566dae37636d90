"""Which processes of ours run on one machine, how each is started there, and the wait until all are ready."""

import sys
import time
from collections.abc import Mapping, Set
from pathlib import Path

from infra.local.folder import DataFolder
from infra.local.keeper import Child, ChildStatus
from infra.local.parts import Report
from infra.local.supervisor import Supervisor
from recovery.last_words import last_words
from recovery.process import EXIT_FENCED, EXIT_SETTINGS
from recovery.run_files import read_run_files
from recovery.settings import Settings
from recovery.settings_layers import CONFIG_VARIABLE, DATA_VARIABLE
from recovery.status import ProcessStatus, ask_all

SINGLE = ("watch", "ask", "relay", "project", "gateway", "sac", "watchdog")
POLL_S = 0.25
HOPELESS_RESTARTS = 5

# The local cluster is ours alone: its jobs are admitted unless the operator says otherwise. Observed, not acted on.
LOCAL_ENVIRONMENT = "local"
LOCAL_PARTITION = "main"


class NotReadyError(Exception):
    """Processes did not become ready. The text says which, what each says, and where its log is."""


def children(settings: Settings, config: Path | None) -> list[Child]:
    """Return every process of ours, deciders once a slot, with what it needs to read the same settings as we do."""
    env = _environment(settings, config)
    base = (sys.executable, "-m", "recovery")
    slots = [("decide", slot) for slot in range(settings.decide.slots)] + [("nodes", 0)]
    commands = {name: (name,) for name in SINGLE} | {
        f"{name}-{slot}": (name, "--slot", str(slot)) for name, slot in slots
    }
    return [Child(name, (*base, *words), env, EXIT_SETTINGS) for name, words in commands.items()]


def _environment(settings: Settings, config: Path | None) -> Mapping[str, str]:
    env: dict[str, str] = {DATA_VARIABLE: str(settings.data)}
    if config is not None:
        env[CONFIG_VARIABLE] = str(config.absolute())
    if not settings.sac.environment:
        env["RECOVERY_SAC__ENVIRONMENT"] = LOCAL_ENVIRONMENT
    if not settings.sac.partitions:
        env["RECOVERY_SAC__PARTITIONS"] = LOCAL_PARTITION
    if settings.sac.acknowledge_scheduler_actions and not settings.watchdog.model_fields_set & {"mode", "acknowledge"}:
        # Whoever may hold jobs starts with who lets them go when all else is down.
        env |= {"RECOVERY_WATCHDOG__MODE": "act", "RECOVERY_WATCHDOG__ACKNOWLEDGE": "true"}
    return env


def wait_ready(data: Path, names: set[str], timeout_s: float, report: Report) -> list[ProcessStatus]:
    """Wait until all of `names` are ready, reporting each as it is.

    Raises NotReadyError after `timeout_s` seconds, or as soon as one can't become ready: a setting of it is wrong, or
    it ends again and again.
    """
    deadline = time.monotonic() + timeout_s
    supervisor = Supervisor(data)
    ready: dict[str, ProcessStatus] = {}
    while True:
        seen = _ask_pending(data, names - ready.keys())
        for status in seen.values():
            if status.ready:
                ready[status.name] = status
                report(f"{status.name} is ready")
        pending = names - ready.keys()
        if not pending:
            return [ready[name] for name in sorted(names)]
        hopeless = [child for child in supervisor.status().children if child.name in pending and _hopeless(child)]
        if hopeless:
            wrong = (f"{child.name} ended with code {child.last_exit}, {_log(data, child.name)}" for child in hopeless)
            raise NotReadyError("; ".join(wrong))
        if time.monotonic() > deadline:
            said = {name: seen[name].health if name in seen else "not running" for name in sorted(pending)}
            wrong = (f"{name}: {health}, {_log(data, name)}" for name, health in said.items())
            raise NotReadyError(f"not ready within {timeout_s:g} s: {'; '.join(wrong)}")
        time.sleep(POLL_S)


def _ask_pending(data: Path, names: Set[str]) -> dict[str, ProcessStatus]:
    records = [record for record in read_run_files(data) if record.name in names and record.alive()]
    return {status.name: status for status in ask_all(records)}


def _hopeless(child: ChildStatus) -> bool:
    if child.last_exit == EXIT_SETTINGS:
        return True
    return child.restarts >= HOPELESS_RESTARTS and child.last_exit != EXIT_FENCED


def _log(data: Path, name: str) -> str:
    """Return where the log of a process is, and what it says last."""
    path = DataFolder(data).log / f"{name}.log"
    words = last_words(path)
    return f"log {path} is empty" if words is None else f"log {path}: {words}"
