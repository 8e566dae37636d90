"""Real processes of ours with a body of the test's choice, and bounded looks at them."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from recovery.run_files import RunRecord, read_run_files

T = TypeVar("T")

DEADLINE_S = 15.0
START = """
import sys, time
from recovery.process import FencedError, ProcessContext, run_process
from recovery.settings import SettingsError, load_settings

def body(context: ProcessContext) -> None:
{body}

sys.exit(run_process("probe", load_settings(), body, slot={slot}))
"""
UNTIL_STOPPED = """
    context.health.ready()
    while not context.stop.wait(10):
        pass
"""


@contextmanager
def started(data: Path, body: str, slot: int | None = None, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """Start a process of ours with that body; kill it at the end, whatever happened."""
    process = subprocess.Popen(
        [sys.executable, "-c", START.format(body=body, slot=slot)],
        env={**os.environ, "RECOVERY_DATA": str(data), **environment},
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def within_deadline(look: Callable[[], T | None]) -> T:
    """Look until something is there, and return it."""
    deadline = time.monotonic() + DEADLINE_S
    while (found := look()) is None:
        assert time.monotonic() < deadline, "not seen within the deadline"
        time.sleep(0.02)
    return found


def record_of(data: Path, process: subprocess.Popen[str]) -> RunRecord:
    """Return the run record of a process, once it is there."""
    return within_deadline(lambda: next((one for one in read_run_files(data) if one.pid == process.pid), None))
