"""Apicurio Registry on a durable embedded database: schema ids must survive, or history becomes unreadable."""

from collections.abc import Mapping

import httpx

from infra.local.daemon import Daemon
from infra.local.downloads import apicurio_home
from infra.local.folder import DataFolder
from infra.local.java import java
from infra.local.parts import Report
from infra.local.ports import Ports

START_SECONDS = 120.0
STOP_SECONDS = 10.0


class Registry:
    """The `registry` part; its endpoint is `url`, the Confluent-compatible API."""

    name = "registry"

    def __init__(self, folder: DataFolder, ports: Ports) -> None:
        self._folder = folder
        self._ports = ports
        self._daemon = Daemon(self.name, folder)

    def start(self, report: Report) -> None:
        if self._daemon.running() and self.healthy():
            return
        self._daemon.stop(seconds=STOP_SECONDS)
        home = apicurio_home(report)
        report("starting the schema registry")
        port, management_port = self._ports.free("registry", "registry_management")
        database = self._folder.part(self.name) / "h2"
        scratch = self._folder.part(self.name) / "tmp"
        scratch.mkdir(exist_ok=True)
        # The folder on the command line also tells this stack's registry from another's in /proc.
        jvm = [str(java()), "-Xmx300m", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", f"-Djava.io.tmpdir={scratch}"]
        environment = {
            "QUARKUS_HTTP_HOST": "127.0.0.1",
            "QUARKUS_HTTP_PORT": str(port),
            "QUARKUS_MANAGEMENT_HOST": "127.0.0.1",
            "QUARKUS_MANAGEMENT_PORT": str(management_port),
            "APICURIO_STORAGE_KIND": "sql",
            "APICURIO_STORAGE_SQL_KIND": "h2",
            # WRITE_DELAY=0: an id given out is on disk, also if we are killed in the next half second
            "APICURIO_DATASOURCE_URL": f"jdbc:h2:file:{database};WRITE_DELAY=0",
        }
        self._daemon.start([*jvm, "-jar", str(home / "quarkus-run.jar")], env=environment)
        self._daemon.wait_ready(self.healthy, seconds=START_SECONDS)
        report(f"the schema registry answers on {self.endpoints['url']}")

    def stop(self) -> None:
        self._daemon.stop(seconds=STOP_SECONDS)

    @property
    def daemons(self) -> tuple[str, ...]:
        return (self._daemon.name,)

    def healthy(self) -> bool:
        url = self.endpoints.get("url")
        if url is None or not self._daemon.running():
            return False
        try:
            return httpx.get(f"{url}/subjects", timeout=5.0, trust_env=False).status_code == httpx.codes.OK
        except httpx.HTTPError:
            return False

    @property
    def endpoints(self) -> Mapping[str, str]:
        port = self._ports.known("registry")
        return {} if port is None else {"url": f"http://127.0.0.1:{port}/apis/ccompat/v7"}
