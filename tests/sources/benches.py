"""Each log source with a way to write to it, and to stop and start what it reads from."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import ClassVar
from uuid import uuid4

from confluent_kafka.admin import AdminClient, NewTopic

from infra.local.endpoints import Endpoints
from infra.local.stack import Stack
from streams.kafka import producer
from streams.sources.files import FileFollower, FileState, Place
from streams.sources.http import Address
from streams.sources.kafka_topic import KafkaTopic
from streams.sources.lines import Answer, Batch, Cursor, Labels, LogSource, SourceLine, SourceState, Wanted
from streams.sources.loki import Loki, LokiFields
from streams.sources.records import Fields
from streams.sources.victorialogs import VictoriaLogs, VictoriaLogsFields
from streams.sources.windows import Waits
from tests.sources.fake_loki import FakeLoki
from tests.sources.victorialogs_server import Server

NOWHERE = "127.0.0.1:9"
WAITS = Waits(settle_s=0.3, delay_s=1.5, poll_s=0.05)


@dataclass(frozen=True)
class Written:
    """A line as a job and its collector give it."""

    text: str
    at_ms: int
    labels: Labels


class Bench(ABC):
    """A source under test."""

    has_labels: ClassVar[bool] = True
    has_times: ClassVar[bool] = True
    longest: ClassVar[int] = 100_000

    @abstractmethod
    def source(self) -> LogSource:
        """The source as a new process makes it."""

    @abstractmethod
    def astray(self) -> LogSource:
        """The source with an address at which nobody listens."""

    @abstractmethod
    def write(self, lines: Sequence[Written]) -> None:
        """Write lines, and return when they can be read."""

    @abstractmethod
    def stop(self) -> None:
        """Make what it reads from go away."""

    @abstractmethod
    def start(self) -> None:
        """And come back, with all that was there."""

    @abstractmethod
    def close(self) -> None:
        """End what this made."""


class FileBench(Bench):
    """Files have no labels but their path, and no times but those in their text."""

    has_labels = has_times = False

    def __init__(self, folder: Path) -> None:
        self._path = folder / "slurm-7.out"
        self._path.touch()

    def source(self) -> LogSource:
        return OneFile(self._path)

    def astray(self) -> LogSource:
        return OneFile(self._path.with_name("nowhere"))

    def write(self, lines: Sequence[Written]) -> None:
        with self._path.open("a") as file:
            file.writelines(f"{line.text}\n" for line in lines)

    def stop(self) -> None:
        self._path.rename(self._path.with_suffix(".away"))

    def start(self) -> None:
        self._path.with_suffix(".away").rename(self._path)

    def close(self) -> None:
        """The folder goes with the test."""


class OneFile:
    """The follower of files, seen as a source of lines."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.name = f"file:{path}"

    def follow(self, cursors: Mapping[str, Cursor], since_ms: int, stop: Event) -> Iterator[Batch]:
        known = cursors.get(self.name)
        place = None if known is None else Place(known.identity, known.epoch, known.offset)
        follower = FileFollower(str(self._path), place)
        now_ms = since_ms
        while not stop.is_set():
            now_ms += 10
            for block in follower.look(now_ms):
                end = block.end
                cursor = Cursor(self.name, end.identity, end.epoch, end.offset)
                yield Batch(tuple(self._lines(block.data, block.start)), (cursor,))
            down = follower.state is not FileState.FOLLOWED
            yield Batch((), (), SourceState.DOWN if down else SourceState.FOLLOWED, follower.problem, caught_up=True)
            stop.wait(0.01)
        follower.close()

    def query(self, wanted: Wanted, limit: int) -> Answer:
        raise NotImplementedError("watch looks at the files themselves")

    def sample(self, start_ms: int, end_ms: int, limit: int) -> Answer:
        raise NotImplementedError("watch looks at the files themselves")

    def close(self) -> None:
        """Nothing is held."""

    def _lines(self, data: bytes, start: Place) -> Iterator[SourceLine]:
        offset = start.offset
        for line in data.splitlines(keepends=True):
            text, labels = line.rstrip(b"\n"), Labels(filename=str(self._path))
            yield SourceLine(
                text, 0, labels, self.name, start.epoch, offset, 0, f"{start.epoch}:{offset}", self.name, offset
            )
            offset += len(line)


class KafkaBench(Bench):
    longest = 900_000

    def __init__(self, endpoints: Endpoints, stack: Stack) -> None:
        self.bootstrap = endpoints.kafka
        self.topic = f"raw-{uuid4()}"
        self._stack = stack
        self.create()

    def create(self) -> None:
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        [made] = admin.create_topics([NewTopic(self.topic, 2, 1)]).values()
        made.result(20)

    def delete(self) -> None:
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        [gone] = admin.delete_topics([self.topic]).values()
        gone.result(20)

    def source(self) -> LogSource:
        return KafkaTopic(self.bootstrap, self.topic, Fields())

    def astray(self) -> LogSource:
        return KafkaTopic(NOWHERE, self.topic, Fields())

    def write(self, lines: Sequence[Written]) -> None:
        values = [json.dumps({"message": one.text, "timestamp": one.at_ms, **labels_of(one)}) for one in lines]
        self.send(values, [one.labels.filename or "" for one in lines])

    def send(self, values: Sequence[str | bytes], keys: Sequence[str] | None = None) -> None:
        to = producer(self.bootstrap, "collector")
        for number, value in enumerate(values):
            to.produce(self.topic, value=value, key=keys[number] if keys else "one")
            to.poll(0)
        assert to.flush(20) == 0

    def stop(self) -> None:
        self._stack.parts["kafka"].stop()

    def start(self) -> None:
        self._stack.parts["kafka"].start(print)

    def close(self) -> None:
        self.delete()


class VictoriaLogsBench(Bench):
    def __init__(self, program: Path, folder: Path) -> None:
        self.server = Server(program, folder)
        self.server.start()

    def source(self) -> LogSource:
        return VictoriaLogs("main", Address(self.server.url), "job_id:*", VictoriaLogsFields(), WAITS)

    def astray(self) -> LogSource:
        return VictoriaLogs("main", Address(f"http://{NOWHERE}"), "job_id:*", VictoriaLogsFields(), WAITS)

    def write(self, lines: Sequence[Written]) -> None:
        records = [{"_msg": one.text, "_time": str(one.at_ms * 1_000_000), **labels_of(one)} for one in lines]
        self.server.push(b"".join(json.dumps(record).encode() + b"\n" for record in records))

    def stop(self) -> None:
        self.server.stop()

    def start(self) -> None:
        self.server.start()

    def close(self) -> None:
        self.server.stop()


class LokiBench(Bench):
    def __init__(self) -> None:
        self.server = FakeLoki()
        self.server.start()

    def source(self) -> LogSource:
        return Loki("main", Address(self.server.url), '{cluster="local"}', LokiFields(), WAITS)

    def astray(self) -> LogSource:
        return Loki("main", Address(f"http://{NOWHERE}"), '{cluster="local"}', LokiFields(), WAITS)

    def write(self, lines: Sequence[Written]) -> None:
        self.server.push((one.at_ms * 1_000_000, labels_of(one) | {"cluster": "local"}, one.text) for one in lines)

    def stop(self) -> None:
        self.server.stop()

    def start(self) -> None:
        self.server.start()

    def close(self) -> None:
        self.server.stop()


def labels_of(line: Written) -> dict[str, str]:
    known = line.labels
    named = {
        "job_id": known.job_id,
        "filename": known.filename,
        "slurm_job_attempt": known.attempt,
        "node": known.node,
        "rank": known.rank,
    }
    return {name: str(value) for name, value in named.items() if value is not None}
