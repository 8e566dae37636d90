"""One Kafka broker and controller in one process (KRaft), with the settings that exactly-once deciders rely on."""

import base64
import re
import subprocess
import uuid
from collections.abc import Mapping
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from infra.local.daemon import Daemon
from infra.local.downloads import KAFKA_VERSION, kafka_classpath
from infra.local.folder import DataFolder
from infra.local.java import java
from infra.local.parts import PartFailed, Report
from infra.local.ports import Ports, is_free

START_SECONDS = 120.0
STOP_SECONDS = 15.0
_NUMBERS = re.compile(r"\d{1,3}(?:\.\d{1,3}){2}")
LAST_WITHOUT_NOTE = "4.4.0"
"""The version that made the folders in which none is noted."""

SETTINGS = """\
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=127.0.0.1:{controller_port}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={data}
auto.create.topics.enable=false
# One node: nothing can be replicated.
default.replication.factor=1
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=4
# A dead worker's open transaction hides what follows it: end it within a second of its timeout.
transaction.abort.timed.out.transaction.cleanup.interval.ms=1000
group.initial.rebalance.delay.ms=0
# After a kill -9 the broker's next life must wait until the session of the last one is over (9 s by default).
broker.session.timeout.ms=4000
broker.heartbeat.interval.ms=1000
# Topics say themselves how long they are kept; the journal is kept.
log.retention.ms=-1
"""


def draw_cluster_id() -> str:
    """A random id as Kafka draws it: never with a dash in front, which its own tools would take for an option."""
    while True:
        drawn = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
        if not drawn.startswith("-"):
            return drawn


class Kafka:
    """The `kafka` part; its endpoint is `bootstrap` (host:port)."""

    name = "kafka"

    def __init__(self, folder: DataFolder, ports: Ports) -> None:
        self._folder = folder
        self._ports = ports
        self._daemon = Daemon(self.name, folder)

    def start(self, report: Report) -> None:
        if self._daemon.running() and self.healthy():
            return
        self._daemon.stop(seconds=STOP_SECONDS)
        classpath = ":".join(str(jar) for jar in kafka_classpath(report))
        settings = self._write_settings()
        self._format(classpath, settings, report)
        report("starting Kafka")
        logging = ["-Dorg.slf4j.simpleLogger.showDateTime=true", "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS"]
        # the first compiler alone: half the CPU time to start, which is what a small machine waits for
        compiler = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        jvm = [str(java()), "-Xmx512m", *compiler, "-XX:-UsePerfData", *logging, "-cp", classpath]
        self._daemon.start([*jvm, "kafka.Kafka", str(settings)])
        self._daemon.wait_ready(self.healthy, seconds=START_SECONDS)
        report(f"Kafka answers on {self.endpoints['bootstrap']}")

    def stop(self) -> None:
        self._daemon.stop(seconds=STOP_SECONDS)

    @property
    def daemons(self) -> tuple[str, ...]:
        return (self._daemon.name,)

    def healthy(self) -> bool:
        """Whether our broker runs and what answers on its port has the cluster id of this data folder."""
        port = self._ports.known("kafka")
        if port is None or not self._daemon.running() or is_free(port):
            return False
        admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}", "log_level": 0, "socket.timeout.ms": 3000})
        try:
            return bool(admin.list_topics(timeout=3).cluster_id == self._cluster_id())
        except KafkaException:
            return False

    @property
    def endpoints(self) -> Mapping[str, str]:
        port = self._ports.known("kafka")
        return {} if port is None else {"bootstrap": f"127.0.0.1:{port}"}

    def _write_settings(self) -> Path:
        port, controller_port = self._ports.free("kafka", "kafka_controller")
        folder = self._folder.part(self.name)
        settings = folder / "server.properties"
        settings.write_text(SETTINGS.format(port=port, controller_port=controller_port, data=folder / "data"))
        return settings

    def _cluster_id(self) -> str:
        """Drawn once for each data folder: what tells two stacks on one machine apart."""
        file = self._folder.part(self.name) / "cluster_id"
        if not file.exists():
            file.write_text(draw_cluster_id())
        return file.read_text()

    def _format(self, classpath: str, settings: Path, report: Report) -> None:
        made_by = self._folder.part(self.name) / "version"
        if (self._folder.part(self.name) / "data" / "meta.properties").exists():
            _refuse_newer(made_by.read_text() if made_by.exists() else LAST_WITHOUT_NOTE, self._folder.root)
            made_by.write_text(KAFKA_VERSION)
            return
        made_by.write_text(KAFKA_VERSION)  # before: what is formatted without a note counts as made by another one
        report("formatting Kafka's storage")
        tool = [str(java()), "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", classpath, "kafka.tools.StorageTool"]
        done = subprocess.run(
            [*tool, "format", "--standalone", "-t", self._cluster_id(), "-c", str(settings)],
            capture_output=True,
            text=True,
            timeout=START_SECONDS,
            check=False,
        )
        if done.returncode != 0:
            raise PartFailed(f"Kafka's storage can't be formatted: {done.stderr or done.stdout}")


def _refuse_newer(made_by: str, folder: Path) -> None:
    """A broker can't read what a newer one has written, and says so in words of its own."""
    if not _NUMBERS.fullmatch(made_by):
        raise PartFailed(
            f"{folder}/kafka/version holds no version of Kafka, but {made_by!r}: write the right one there"
        )
    if tuple(map(int, made_by.split("."))) > tuple(map(int, KAFKA_VERSION.split("."))):
        raise PartFailed(
            f"{folder} was made with Kafka {made_by}, and Kafka {KAFKA_VERSION}, which is used now, can't read that:"
            " move the folder away, or name another one by RECOVERY_DATA; the release that made it reads its history"
        )
