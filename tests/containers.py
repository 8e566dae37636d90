"""Kafka, registry and PostgreSQL as containers, where a Docker engine answers: parts like those of the local stack.

Images and their environment are those of docker-compose.yml, so what the tests run on is what users start. Ports are
fixed at the first start: a part that was stopped comes back under the same address, with its data.
"""

from __future__ import annotations

import os
import re
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx
import psycopg
import yaml
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from infra.local.folder import DataFolder
from infra.local.parts import PartFailed, Report
from infra.local.ports import Ports

SOCKET = Path("/var/run/docker.sock")
START_S = 180.0
PASSWORD = "recovery"
COMPOSE = Path(__file__).resolve().parents[1] / "docker-compose.yml"
DEFAULT = re.compile(r"\$\{\w+:-([^}]*)\}")
HOST = "127.0.0.1"


def engine_answers() -> bool:
    """Whether there is a Docker engine to use. TESTS_EMBEDDED=1 says not to."""
    if os.environ.get("TESTS_EMBEDDED") or not (os.environ.get("DOCKER_HOST") or SOCKET.exists()):
        return False
    import docker
    from docker.errors import DockerException

    with warnings.catch_warnings(action="ignore"):
        try:
            return bool(docker.from_env(timeout=5).ping())
        except DockerException:
            return False


class ContainerPart:
    """One service of docker-compose.yml as a part. `endpoint` gives its name and value for a host port."""

    def __init__(
        self, name: str, inner_port: int, ports: Ports, endpoint: Callable[[int], tuple[str, str]], **changes: str
    ) -> None:
        self.name = name
        self._inner_port = inner_port
        self._ports = ports
        self._endpoint = endpoint
        self._changes = changes
        self._container: Any = None

    def start(self, report: Report) -> None:
        if self.healthy():
            return
        if self._container is None:
            report(f"starting {self.name} in a container")
            self._container = self._create()
            self._container.start()
        else:
            self._container.get_wrapped_container().start()
        deadline = time.monotonic() + START_S
        while not self.healthy():
            if time.monotonic() > deadline:
                raise PartFailed(f"{self.name}: its container did not answer within {START_S:g} s; see `docker logs`")
            time.sleep(0.2)

    def stop(self) -> None:
        if self._container is not None:
            self._container.get_wrapped_container().stop(timeout=10)

    @property
    def daemons(self) -> tuple[str, ...]:
        return ()  # the engine's own

    def healthy(self) -> bool:
        return self._container is not None and _answers(self.name, self.endpoints)

    def remove(self) -> None:
        """Remove the container and its data: after the last test."""
        if self._container is not None:
            self._container.stop()

    @property
    def endpoints(self) -> Mapping[str, str]:
        port = self._ports.known(self.name)
        return {} if port is None else dict([self._endpoint(port)])

    def _create(self) -> Any:
        from testcontainers.core.container import DockerContainer

        service = yaml.safe_load(COMPOSE.read_text())["services"][self.name]
        [port] = self._ports.free(self.name)
        container = DockerContainer(service["image"]).with_bind_ports(self._inner_port, port)
        for key, value in (service["environment"] | self._changes).items():
            container.with_env(key, DEFAULT.sub(r"\1", str(value)).replace("{port}", str(port)))
        return container


def container_parts(folder: DataFolder) -> dict[str, ContainerPart]:
    """The parts, nothing started yet."""
    folder.create()
    ports = Ports(folder.root / "ports.json")
    kafka = ContainerPart(
        "kafka",
        9094,
        ports,
        lambda port: ("bootstrap", f"{HOST}:{port}"),
        KAFKA_CONTROLLER_QUORUM_VOTERS="1@localhost:9093",
        KAFKA_LISTENERS="INSIDE://:9092,CONTROLLER://:9093,OUTSIDE://:9094",
        KAFKA_ADVERTISED_LISTENERS=f"INSIDE://localhost:9092,OUTSIDE://{HOST}:{{port}}",
        KAFKA_INTER_BROKER_LISTENER_NAME="INSIDE",
        KAFKA_LISTENER_SECURITY_PROTOCOL_MAP="INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
    )
    registry = ContainerPart(
        "registry",
        8080,
        ports,
        lambda port: ("url", f"http://{HOST}:{port}/apis/ccompat/v7"),
        # A database in the container's own file system: durable through a restart, and nothing to wait for.
        APICURIO_STORAGE_SQL_KIND="h2",
        APICURIO_DATASOURCE_URL="jdbc:h2:file:/tmp/registry;WRITE_DELAY=0",
        APICURIO_DATASOURCE_USERNAME="sa",
        APICURIO_DATASOURCE_PASSWORD="sa",
    )
    postgres = ContainerPart(
        "postgres",
        5432,
        ports,
        lambda port: ("dsn", f"postgresql+psycopg://recovery:{PASSWORD}@{HOST}:{port}/recovery"),
        POSTGRES_PASSWORD=PASSWORD,
    )
    return {part.name: part for part in (kafka, registry, postgres)}


def _answers(name: str, endpoints: Mapping[str, str]) -> bool:
    """Whether the server behind the endpoint does its work."""
    if not endpoints:
        return False
    [address] = endpoints.values()
    try:
        if name == "kafka":
            return bool(AdminClient({"bootstrap.servers": address, "log_level": 0}).list_topics(timeout=2).brokers)
        if name == "registry":
            return httpx.get(f"{address}/subjects", timeout=5, trust_env=False).status_code == httpx.codes.OK
        with psycopg.connect(address.replace("+psycopg", ""), connect_timeout=5) as connection:
            return connection.execute("SELECT 1").fetchone() is not None
    except (KafkaException, httpx.HTTPError, psycopg.OperationalError):
        return False
