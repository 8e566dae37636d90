"""The real parts that edge tests run on: one stack a session, in a temporary folder, ended whatever happens.

Tests share it, so each makes topics, subjects, databases and jobs of its own names.
"""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.local.endpoints import Endpoints
from infra.local.stack import Stack


@pytest.fixture(scope="session")
def session_stack() -> Iterator[Stack]:
    """The stack object itself, nothing started yet; for the fixtures below."""
    folder = Path(tempfile.mkdtemp(prefix="recovery-test-"))
    # If pytest is killed, the reaper sees its standard input close, and stops what is left.
    with subprocess.Popen(
        [sys.executable, "-m", "tests.reaper", str(folder)], stdin=subprocess.PIPE, start_new_session=True
    ):
        stack = Stack(folder)
        try:
            yield stack
        finally:
            stack.stop()
            shutil.rmtree(folder)


@pytest.fixture(scope="session")
def stack(session_stack: Stack) -> Endpoints:
    """Kafka, registry and PostgreSQL, up (and Slurm, if a test before this one needed it)."""
    endpoints = session_stack.start(print, only=("kafka", "registry", "postgres"))
    assert endpoints is not None
    return endpoints


@pytest.fixture(scope="session")
def slurm(session_stack: Stack, stack: Endpoints) -> Endpoints:  # noqa: ARG001 - what it needs must be up first
    """A real Slurm cluster beside the same stack. Fails, and says why, where Slurm can't be installed."""
    endpoints = session_stack.start(print, only=("slurm",))
    assert endpoints is not None
    return endpoints
