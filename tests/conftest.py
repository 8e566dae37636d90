"""The real parts that edge tests run on: one stack a session, in a temporary folder, ended whatever happens.

Where a Docker engine answers, Kafka, registry and PostgreSQL are containers; elsewhere they are the local stack's own.
Tests can't tell: both are parts of one `Stack`, and addresses come as `Endpoints`. Tests share it, so each makes
topics, subjects, databases and jobs of its own names.
"""

import gc
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from infra.local.endpoints import Endpoints
from infra.local.folder import DataFolder
from infra.local.stack import Stack
from tests.containers import container_parts, engine_answers

# How fast the machine is proves nothing about the code: examples have no deadline, and may be slow to make.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


def pytest_collection_finish() -> None:
    """What is imported by now stays: looking for garbage among it would take a tenth of the pure tests' time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.fixture(scope="session")
def session_stack() -> Iterator[Stack]:
    """The stack object itself, nothing started yet; for the fixtures below."""
    folder = Path(tempfile.mkdtemp(prefix="recovery-test-"))
    # If pytest is killed, the reaper sees its standard input close, and stops what is left.
    with subprocess.Popen(
        [sys.executable, "-m", "tests.reaper", str(folder)], stdin=subprocess.PIPE, start_new_session=True
    ):
        containers = container_parts(DataFolder(folder)) if engine_answers() else {}
        stack = Stack(folder, containers)
        try:
            yield stack
        finally:
            stack.stop()
            for part in containers.values():
                part.remove()
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
