"""A Kafka of these tests' own: deciders take in the whole journal, so nobody else may write to it."""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.local.endpoints import Endpoints
from infra.local.stack import Stack
from recovery.topics import create_topics
from schemas.codec import Codec
from schemas.registry import RegistryIds
from tests.run.parts import Room


@pytest.fixture(scope="package")
def own_kafka() -> Iterator[Stack]:
    """A stack of which only Kafka runs."""
    folder = Path(tempfile.mkdtemp(prefix="recovery-test-run-"))
    with subprocess.Popen(
        [sys.executable, "-m", "tests.reaper", str(folder)], stdin=subprocess.PIPE, start_new_session=True
    ):
        own = Stack(folder)
        try:
            own.start(print, only=("kafka",))
            create_topics(own.parts["kafka"].endpoints["bootstrap"])
            yield own
        finally:
            own.stop()
            shutil.rmtree(folder)


@pytest.fixture(scope="module")
def room(own_kafka: Stack, stack: Endpoints, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    """That Kafka, the shared registry, and a folder of this module's own."""
    bootstrap = own_kafka.parts["kafka"].endpoints["bootstrap"]
    one = Room(bootstrap, stack.registry, tmp_path_factory.mktemp("room"), Codec(RegistryIds(stack.registry)))
    try:
        yield one
    finally:
        one.close()
