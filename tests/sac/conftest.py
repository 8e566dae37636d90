"""One folder for jobs' output, one act-mode controller for all tests that need one."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.local.endpoints import Endpoints
from recovery.topics import create_topics
from schemas.codec import Codec
from schemas.registry import RegistryIds
from tests.sac.parts import ACT, Bus, Cluster, Room


@pytest.fixture(scope="package")
def cluster(slurm: Endpoints, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    assert slurm.slurm_conf is not None
    shared = Cluster(slurm.slurm_conf, tmp_path_factory.mktemp("jobs"))
    yield shared
    shared.run("bash", "-c", "squeue -h -o %A | xargs -r scancel --quiet")


@pytest.fixture(scope="package")
def bus(slurm: Endpoints) -> Bus:
    create_topics(slurm.kafka)
    return Bus(slurm.kafka, Codec(RegistryIds(slurm.registry)))


@pytest.fixture(scope="package")
def room(slurm: Endpoints, cluster: Cluster, bus: Bus, tmp_path_factory: pytest.TempPathFactory) -> Room:  # noqa: ARG001
    return Room(slurm, cluster, Path(tmp_path_factory.mktemp("processes")))


@pytest.fixture(scope="module")
def acting(room: Room) -> Iterator[subprocess.Popen[str]]:
    """A controller that may act."""
    with room.process("sac", ACT) as process:
        yield process
