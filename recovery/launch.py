"""Which processes of ours run on one machine, how each is started there, and the wait until all are ready."""

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from recovery.run_files import read_run_files
from recovery.settings import Settings
from recovery.settings_layers import CONFIG_VARIABLE, DATA_VARIABLE
from recovery.status import ProcessStatus, ask_all

SINGLE = ("watch", "ask", "relay", "project", "gateway", "sac", "watchdog")
POLL_S = 0.2

# The local cluster is ours alone: its jobs are admitted unless the operator says otherwise. Observed, not acted on.
LOCAL_ADMISSION = {"sac.environment": "local", "sac.partitions": "main"}


class NotReadyError(Exception):
    """Processes did not become ready in time. The text says which, what each says, and where its log is."""


@dataclass(frozen=True)
class Program:
    """One process to keep running: its name (that of its run file), and its command line."""

    name: str
    argv: tuple[str, ...]


def programs(settings: Settings) -> tuple[Program, ...]:
    """Return every process of ours, deciders once a slot."""
    base = (sys.executable, "-m", "recovery")
    deciders = [
        Program(f"decide-{slot}", (*base, "decide", "--slot", str(slot))) for slot in range(settings.decide.slots)
    ]
    return (*(Program(name, (*base, name)) for name in SINGLE), *deciders)


def environment(settings: Settings, config: Path | None, present: Mapping[str, str]) -> dict[str, str]:
    """Return the environment that the processes need so that they read the same settings from wherever they start."""
    environ = dict(present) | {DATA_VARIABLE: str(settings.data), "PYTHONUNBUFFERED": "1"}
    if config is not None:
        environ[CONFIG_VARIABLE] = str(config.absolute())
    given = {"sac.environment": settings.sac.environment, "sac.partitions": settings.sac.partitions}
    for key, value in LOCAL_ADMISSION.items():
        if not given[key]:
            environ[f"RECOVERY_{key.upper().replace('.', '__')}"] = value
    return environ


def wait_ready(
    data: Path, names: set[str], timeout_s: float, report: Callable[[str], None], log_of: Callable[[str], Path]
) -> list[ProcessStatus]:
    """Wait until all of `names` are ready, reporting each as it is. Raises NotReadyError after `timeout_s` seconds."""
    deadline = time.monotonic() + timeout_s
    told: set[str] = set()
    while True:
        seen = {status.name: status for status in ask_all(read_run_files(data)) if status.running}
        ready = {name for name in names if name in seen and seen[name].ready}
        for name in sorted(ready - told):
            report(f"{name} is ready")
        told |= ready
        if ready == names:
            return [seen[name] for name in sorted(names)]
        if time.monotonic() > deadline:
            wrong = [
                f"{name}: {seen[name].health if name in seen else 'not running'} (log: {log_of(name)})"
                for name in sorted(names - ready)
            ]
            raise NotReadyError(f"not ready within {timeout_s:g} s: {'; '.join(wrong)}")
        time.sleep(POLL_S)
