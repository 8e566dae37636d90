"""Real processes of ours on a real Kafka, and bounded looks at what they write."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import httpx
from confluent_kafka import Message, Producer

from recovery.run_files import read_run_files
from schemas.codec import Codec, Encoded
from schemas.facts import Fact
from schemas.topics import Topic, fact_route
from streams.kafka import TopicView, decode, producer, reader, send

T = TypeVar("T")
DEADLINE_S = 40.0


def until(look: Callable[[], T | None], what: str, deadline_s: float = DEADLINE_S) -> T:
    """Look until something is there, and return it."""
    deadline = time.monotonic() + deadline_s
    while (found := look()) is None:
        assert time.monotonic() < deadline, f"not seen within {deadline_s:g} s: {what}"
        time.sleep(0.02)
    return found


@dataclass
class Process:
    """One process of ours; a second start takes the place of one that was killed."""

    name: str
    command: tuple[str, ...]
    env: dict[str, str]
    log: Path
    child: subprocess.Popen[bytes] | None = None

    def start(self, *, ready: bool = True) -> None:
        with self.log.open("ab") as log:
            self.child = subprocess.Popen(
                [sys.executable, "-m", "recovery", *self.command], env=os.environ | self.env, stderr=log
            )
        if ready:
            self.wait_ready()

    @property
    def running(self) -> subprocess.Popen[bytes]:
        assert self.child is not None
        return self.child

    def wait_ready(self) -> None:
        until(self._ready, f"{self.name} ready; its log: {self.tail()}")

    def url(self) -> str | None:
        records = read_run_files(Path(self.env["RECOVERY_DATA"]))
        return next((one.url for one in records if one.pid == self.running.pid), None)

    def metrics(self) -> str:
        url = self.url()
        assert url is not None
        return httpx.get(f"{url}/metrics", timeout=5).text

    def takes_part(self) -> bool | None:
        """Whether this decider has decided a fact."""
        if self.url() is None:
            return None
        return True if re.search(r"^recovery_facts_decided_total [1-9]", self.metrics(), re.M) else None

    def kill(self) -> None:
        """`kill -9`."""
        self.running.kill()
        self.running.wait(10)

    def stop(self) -> int:
        """SIGTERM, and the exit code."""
        self.running.terminate()
        return self.running.wait(DEADLINE_S)

    def events(self) -> list[str]:
        """The constant messages of its log."""
        return [json.loads(line)["event"] for line in self.log.read_text().splitlines() if line.startswith("{")]

    def tail(self) -> str:
        return self.log.read_text()[-1500:]

    def _ready(self) -> bool | None:
        assert self.running.poll() is None, f"{self.name} ended with {self.running.returncode}: {self.tail()}"
        url = self.url()
        if url is None:
            return None
        try:
            return True if httpx.get(f"{url}/readyz", timeout=5).status_code == 200 else None
        except httpx.HTTPError:
            return None


@dataclass
class Room:
    """A Kafka with the catalogue's topics, and processes that run on it."""

    bootstrap: str
    registry: str
    folder: Path
    codec: Codec
    started: list[Process] = field(default_factory=list)
    writers: dict[str, Producer] = field(default_factory=dict)

    def process(self, *command: str, data: str = "data", **env: str) -> Process:
        """A process of ours, not yet started. Ended with the room, whatever happens."""
        base = {
            "RECOVERY_DATA": str(self.folder / data),
            "RECOVERY_KAFKA__BOOTSTRAP": self.bootstrap,
            "RECOVERY_REGISTRY__URL": self.registry,
        }
        name = "-".join(command).replace("--", "")
        one = Process(name, command, base | env, self.folder / f"{name}-{len(self.started)}.log")
        self.started.append(one)
        return one

    def close(self) -> None:
        for one in self.started:
            if one.child is not None and one.child.poll() is None:
                one.kill()

    def write(self, *facts: Fact) -> None:
        """Write facts to the journal, as sac and watch do."""
        if "facts" not in self.writers:
            self.writers["facts"] = producer(self.bootstrap, "test")
        to = self.writers["facts"]
        for fact in facts:
            topic, key = fact_route(fact)
            send(to, topic, key, self.encode(fact, key))
        assert to.flush(20) == 0

    def write_raw(self, topic: Topic, key: bytes | None, *values: bytes | None) -> None:
        to = producer(self.bootstrap, "test")
        for value in values:
            to.produce(topic.name, key=key, value=value)
            to.poll(0)
        assert to.flush(20) == 0

    @contextmanager
    def transaction(self, name: str = "test", *, commit: bool = True) -> Iterator[Callable[[Topic, str, Any], None]]:
        """Gives a writer (topic, key, event; None is a tombstone) whose records become visible together, or never."""
        if name not in self.writers:
            self.writers[name] = producer(self.bootstrap, name, **{"transactional.id": name})
            self.writers[name].init_transactions(20)
        to = self.writers[name]
        to.begin_transaction()

        def write(topic: Topic, key: str, event: Any) -> None:
            if event is None:
                to.produce(topic.name, key=key.encode(), value=None)
            else:
                send(to, topic, key, self.encode(event, key))

        yield write
        to.flush(20)
        if commit:
            to.commit_transaction(20)
        else:
            to.abort_transaction(20)

    def encode(self, event: Any, subject: str) -> Encoded:
        return self.codec.encode(event, source="test", time_ms=1_700_000_000_000, subject=subject)

    def read(self, topic: Topic) -> list[Message]:
        """The topic whole, read committed, each partition in order."""
        seen: list[Message] = []
        consumer = reader(self.bootstrap, "test")
        TopicView(consumer, (topic,), seen.append).read_to_stable_end(timeout_s=20)
        consumer.close()
        return seen

    def events(self, topic: Topic, key: str) -> list[Any]:
        """The events of one key."""
        mine = (message for message in self.read(topic) if message.key() == key.encode())
        return [decode(self.codec, message) for message in mine if message.value() is not None]

    @contextmanager
    def following(self, topic: Topic, *, whole: bool = False) -> Iterator[Follower]:
        """What is written to the topic from now on; `whole`: and before."""
        consumer = reader(self.bootstrap, "test")
        follower = Follower(self.codec)
        view = TopicView(consumer, (topic,), follower.take)
        view.read_to_stable_end(timeout_s=20)
        if not whole:
            follower.seen.clear()
        follower.view = view
        yield follower
        consumer.close()


@dataclass
class Follower:
    """Collects the messages of a topic as they come."""

    codec: Codec
    seen: list[Message] = field(default_factory=list)
    view: TopicView | None = None

    def take(self, message: Message) -> None:
        self.seen.append(message)

    def for_s(self, seconds: float) -> list[Message]:
        """Everything so far, after looking for `seconds` more."""
        deadline = time.monotonic() + seconds
        assert self.view is not None
        while (left := deadline - time.monotonic()) > 0:
            self.view.poll(min(left, 0.1))
        return self.seen

    def until(
        self, condition: Callable[[list[Message]], bool], what: str, deadline_s: float = DEADLINE_S
    ) -> list[Message]:
        def look() -> list[Message] | None:
            assert self.view is not None
            self.view.poll(0.05)
            return self.seen if condition(self.seen) else None

        return until(look, what, deadline_s)

    def events(self, kind: type[T]) -> list[T]:
        decoded = (decode(self.codec, message) for message in self.seen if message.value() is not None)
        return [event for event in decoded if isinstance(event, kind)]
