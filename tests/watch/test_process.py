"""The watch process on real Kafka: from a line in a file to a fact in the journal, through kills and restarts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, TopicPartition

from infra.local.endpoints import Endpoints
from recovery.run_files import read_run_files
from recovery.topics import create_topics
from schemas.bookkeeping import SourceRead
from schemas.codec import Codec
from schemas.decisions import JobView
from schemas.facts import CheckpointSaved, ProgressObserved, SignatureMatched
from schemas.registry import RegistryIds
from schemas.topics import JOBS, JOURNAL, POSITIONS, Topic, partition_of
from schemas.vocabulary import Mode
from streams.kafka import TopicView, decode, producer, reader, send
from tests.watch.parts import attempt_view, job_view

pytestmark = pytest.mark.stack
DEADLINE_S = 60.0
XID = "node2 rank 3: kernel: NVRM: Xid (PCI:0000:06:00): 79, number {n}\n"
STEP = " iteration {n:8d}/  500000 | elapsed time per iteration (ms): 500.0 | lm loss: 2.4E+00 |\n"


class Bench:
    """The topics of the stack, one job of this test's own, and the file that the job writes."""

    def __init__(self, endpoints: Endpoints, folder: Path) -> None:
        create_topics(endpoints.kafka)
        self.endpoints = endpoints
        self.data = folder / "data"
        self.job_id = str(uuid4().int % 10**9 + 10**6)
        self.path = folder / f"slurm-{self.job_id}.out"
        self.codec = Codec(RegistryIds(endpoints.registry))
        self._producer = producer(endpoints.kafka, "test")

    def publish(self, view: JobView) -> None:
        encoded = self.codec.encode(view, source="test", time_ms=0, subject=self.job_id)
        send(self._producer, JOBS, f"local/{self.job_id}", encoded)
        assert self._producer.flush(10) == 0

    def view(self, mode: Mode = Mode.OBSERVE) -> JobView:
        start_ms = time.time_ns() // 1_000_000 - 1000
        return job_view(
            attempt_view(0, self.path, job_id=self.job_id, start_ms=start_ms), job_id=self.job_id, mode=mode
        )

    def append(self, text: str) -> None:
        with self.path.open("a") as file:
            file.write(text)

    def read(self, topic: Topic, partition: int) -> list[Any]:
        """All events of one partition as they are now."""
        consumer: Consumer = reader(self.endpoints.kafka, f"test-{uuid4()}")
        end = consumer.get_watermark_offsets(TopicPartition(topic.name, partition), timeout=10, cached=False)[1]
        consumer.assign([TopicPartition(topic.name, partition, 0)])
        events: list[Any] = []
        deadline = time.monotonic() + DEADLINE_S
        while end and (not events or consumer.position([TopicPartition(topic.name, partition)])[0].offset < end):
            assert time.monotonic() < deadline, "the topic's end was not reached"
            events += [decode(self.codec, message) for message in consumer.consume(500, 0.2) if not message.error()]
        consumer.close()
        return events

    def facts(self) -> list[Any]:
        """The journal's facts of this job, in their order, repetitions included."""
        partition = partition_of(f"local/{self.job_id}".encode(), JOURNAL.partitions)
        return [event for event in self.read(JOURNAL, partition) if event.attempt.job_id == self.job_id]

    def position(self) -> SourceRead | None:
        source = f"file:{self.path}"
        known = self.read(POSITIONS, partition_of(source.encode(), POSITIONS.partitions))
        return next((event for event in reversed(known) if event.source == source), None)

    @contextmanager
    def watch(self) -> Iterator[subprocess.Popen[bytes]]:
        """A real `recovery watch`, ready; killed at the end, whatever happened."""
        environment = os.environ | {
            "RECOVERY_DATA": str(self.data),
            "RECOVERY_KAFKA__BOOTSTRAP": self.endpoints.kafka,
            "RECOVERY_REGISTRY__URL": self.endpoints.registry,
        }
        with subprocess.Popen([sys.executable, "-m", "recovery", "watch"], env=environment) as process:
            try:
                until(lambda: any(run.pid == process.pid for run in read_run_files(self.data)), "watch runs")
                yield process
            finally:
                process.kill()


@pytest.fixture
def bench(stack: Endpoints, tmp_path: Path) -> Bench:
    return Bench(stack, tmp_path)


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, f"not within {DEADLINE_S:g} s: {what}"
        time.sleep(0.05)


def test_lines_become_facts_and_a_clean_stop_leaves_its_positions(bench: Bench) -> None:
    bench.publish(bench.view())
    bench.append("starting\n" + STEP.format(n=1))
    with bench.watch() as process:
        until(lambda: len(bench.facts()) == 1, "the first progress")
        bench.append(STEP.format(n=2) + "successfully saved checkpoint from iteration 2 to /ck\n" + XID.format(n=1))
        until(lambda: len(bench.facts()) == 3, "the checkpoint and the fault")
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    progress, saved, fault = bench.facts()
    assert isinstance(progress, ProgressObserved)
    assert isinstance(saved, CheckpointSaved)
    assert isinstance(fault, SignatureMatched)
    assert (progress.step, saved.step, fault.signature) == (1, 2, "xid-off-the-bus")
    assert (fault.evidence.node, fault.evidence.rank) == ("node2", 3)
    position = bench.position()
    assert position is not None
    assert position.offset == bench.path.stat().st_size


def test_a_line_is_in_the_journal_soon(bench: Bench) -> None:
    bench.publish(bench.view())
    bench.append("starting\n")
    view = TopicView(reader(bench.endpoints.kafka, f"test-{uuid4()}"), (JOURNAL,), lambda _: None)
    view.read_to_stable_end()
    with bench.watch():
        until(lambda: bench.position() is not None, "the file is followed")
        took = []
        for n in range(5):
            began = time.monotonic()
            bench.append(XID.format(n=n))
            while not view.poll(0.01):
                assert time.monotonic() - began < 5
            took.append(time.monotonic() - began)
    assert sorted(took)[2] < 1.0, took
    print(f"line to fact, 5 times: {[f'{one * 1000:.0f} ms' for one in took]}")


def test_kills_at_any_moment_lose_no_fact_and_invent_none(bench: Bench) -> None:
    bench.publish(bench.view())
    written = 0
    for kill in range(3):
        with bench.watch() as process:
            for _ in range(2):
                for _ in range(4):
                    bench.append(f"noise\n[rank{written}]: RuntimeError: CUDA error: unknown error\n")
                    written += 1
                if kill:
                    time.sleep(0.3)  # the kill falls before, between and after writing facts and positions
            process.kill()
            process.wait(10)
    with bench.watch():
        until(lambda: len({fact.event_id for fact in bench.facts()}) == written, f"{written} facts")
    facts = bench.facts()
    by_id = {fact.event_id: replace(fact, evidence=replace(fact.evidence, read_ms=0)) for fact in facts}
    assert sorted(fact.evidence.rank for fact in by_id.values()) == list(range(written))
    for fact in facts:
        assert replace(fact, evidence=replace(fact.evidence, read_ms=0)) == by_id[fact.event_id]
    first_seen = list(dict.fromkeys(fact.event_id for fact in facts))
    assert [by_id[one].evidence.rank for one in first_seen] == list(range(written)), "in the order of the lines"


def test_a_disabled_job_is_not_followed_until_it_is_enabled(bench: Bench) -> None:
    bench.append(XID.format(n=1))
    bench.publish(bench.view(Mode.DISABLED))
    other = Bench(bench.endpoints, bench.path.parent)
    other.publish(other.view())
    other.append(XID.format(n=1))
    with bench.watch():
        until(lambda: len(other.facts()) == 1, "another job is followed")
        assert bench.facts() == []
        bench.publish(bench.view())
        until(lambda: len(bench.facts()) == 1, "the job is followed")
