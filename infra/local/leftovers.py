"""Finds processes that no record tells of, by a variable in their environment, which every descendant inherits."""

import contextlib
import os
import signal
from pathlib import Path


def kill_all_with(variable: str, value: str, *, also: str | None = None, program: str | None = None) -> list[int]:
    """Kills every process with `variable=value` in its environment, and returns their pids; the caller is spared.

    Only those that also have some variable `also`, and that run the given program, where these are given.
    """
    wanted = os.fsencode(f"{variable}={value}")
    killed = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        environment, name = _look(entry)
        has_also = also is None or any(variable.startswith(os.fsencode(f"{also}=")) for variable in environment)
        if wanted in environment and has_also and program in (None, name):
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(entry.name), signal.SIGKILL)
                killed.append(int(entry.name))
    return killed


def _look(entry: Path) -> tuple[list[bytes], str]:
    try:
        return (entry / "environ").read_bytes().split(b"\0"), (entry / "comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return [], ""  # gone meanwhile, or another user's
