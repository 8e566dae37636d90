"""The watch process on real Kafka: from a line in a file to a fact in the journal, through kills and restarts."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from confluent_kafka import Message

from infra.local.endpoints import Endpoints
from infra.local.stack import Stack
from recovery.run_files import read_run_files
from recovery.topics import create_topics
from schemas.bookkeeping import SourceRead
from schemas.codec import Codec
from schemas.decisions import JobView
from schemas.facts import BlindReported, CheckpointSaved, ProgressObserved, SignatureMatched
from schemas.registry import RegistryIds
from schemas.topics import JOBS, JOURNAL, POSITIONS
from schemas.vocabulary import AttemptState, Mode
from streams.kafka import TopicView, decode, producer, reader, send
from streams.watch.memories import of_proposal
from tests.watch.parts import attempt_view, job_view

pytestmark = pytest.mark.stack
UP_TO_DATE = 'lag_records{group="recovery-watch",topic="recovery.jobs"} 0.0'
FOLLOWED = r'watch_sources\{state="followed"\} [1-9]'
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
        self._facts: list[Any] = []
        self._position: SourceRead | None = None
        self.remembered: set[str] = set()
        """The keys of all positions that there are."""
        self._consumer = reader(endpoints.kafka, f"test-{self.job_id}")
        self._view = TopicView(self._consumer, (JOURNAL, POSITIONS), self._take)

    def close(self) -> None:
        self._consumer.close()

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

    def facts(self) -> list[Any]:
        """The journal's facts of this job so far, in their order, repetitions included."""
        self._view.poll(0.02)
        return list(self._facts)

    def position(self) -> SourceRead | None:
        """The last written position of this job's file."""
        self._view.poll(0.05)
        return self._position

    def metrics(self) -> str:
        [run] = read_run_files(self.data)
        return httpx.get(f"{run.url}/metrics", trust_env=False).text

    def _take(self, message: Message) -> None:
        if message.topic() == POSITIONS.name:
            key = (message.key() or b"").decode()
            self.remembered = {*self.remembered, key} if message.value() is not None else self.remembered - {key}
            if key == f"file:{self.path}":
                self._position = decode(self.codec, message)
        elif message.key() == f"local/{self.job_id}".encode():
            self._facts.append(decode(self.codec, message))

    @contextmanager
    def watch(self, settings: Mapping[str, str] | None = None) -> Iterator[subprocess.Popen[bytes]]:
        """A real `recovery watch`, ready; killed at the end, whatever happened. `settings` are further variables."""
        environment = (
            os.environ
            | dict(settings or {})
            | {
                "RECOVERY_DATA": str(self.data),
                "RECOVERY_KAFKA__BOOTSTRAP": self.endpoints.kafka,
                "RECOVERY_REGISTRY__URL": self.endpoints.registry,
            }
        )
        with subprocess.Popen([sys.executable, "-m", "recovery", "watch"], env=environment) as process:
            try:
                until(lambda: any(run.pid == process.pid for run in read_run_files(self.data)), "watch runs")
                yield process
            finally:
                process.kill()


@pytest.fixture
def bench(stack: Endpoints, tmp_path: Path) -> Iterator[Bench]:
    with closing(Bench(stack, tmp_path)) as bench:
        yield bench


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
        # files of other tests' jobs may be followed beside it
        until(lambda: re.search(FOLLOWED, bench.metrics()) is not None, "the file is counted as followed")
        until(lambda: UP_TO_DATE in bench.metrics(), "no view of a job is unread")
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


def test_a_job_is_read_by_the_pattern_of_its_comment(bench: Bench) -> None:
    view = bench.view()
    assert view.aps is not None
    aps = replace(view.aps, log_based_progress_pattern=r"^it (?P<step>\d+) ", progress_interval_s=1)
    bench.publish(replace(view, aps=aps))
    bench.append("starting\nit 7 loss 3.2\n")
    with bench.watch():
        until(lambda: len(bench.facts()) == 1, "its first step")
    [step] = bench.facts()
    assert (step.framework, step.step) == ("custom", 7)


def test_a_shape_that_was_found_is_told_used_and_found_again(bench: Bench) -> None:
    view, written = bench.view(), 0
    assert view.aps is not None
    bench.publish(replace(view, aps=replace(view.aps, progress_interval_s=1)))
    settings = {"RECOVERY_WATCH__ARM_ON_PROPOSED": "true", "RECOVERY_WATCH__UNKNOWN_AFTER_S": "3"}

    def told(kind: type) -> list[Any]:
        nonlocal written
        bench.append(f"it {written} loss 3.2\n")
        written += 1
        time.sleep(0.2)
        return [fact for fact in bench.facts() if isinstance(fact, kind)]

    with bench.watch(settings):
        until(lambda: bool(told(ProgressObserved)), "the lines are taken for steps")
    begun, *_ = told(BlindReported)
    assert "seem to count steps" in begun.detail
    before = written
    with bench.watch(settings | {"RECOVERY_WATCH__UNKNOWN_AFTER_S": "600"}):  # where it would not look again in time
        until(lambda: told(ProgressObserved)[-1].step >= before, "another process goes on with them")
        proposal = of_proposal(view.attempts[0].attempt)
        assert proposal in bench.remembered
        bench.publish(replace(view, closed=True))
        until(lambda: bool(bench.facts()) and proposal not in bench.remembered, "it is forgotten with its job")


def test_a_line_is_in_the_journal_soon(bench: Bench) -> None:
    bench.publish(bench.view())
    bench.append("starting\n")
    with bench.watch():
        until(lambda: bench.position() is not None, "the file is followed")
        took = []
        for n in range(5):
            began = time.monotonic()
            bench.append(XID.format(n=n))
            while len(bench.facts()) <= n:
                assert time.monotonic() - began < 5
            took.append(time.monotonic() - began)
    assert sorted(took)[2] < 1.0, took
    print(f"line to fact, 5 times: {[f'{one * 1000:.0f} ms' for one in took]}")


def test_kills_at_any_moment_lose_no_fact_and_invent_none(bench: Bench) -> None:
    bench.publish(bench.view())
    written = 0

    def append(count: int) -> None:
        nonlocal written
        for _ in range(count):
            bench.append(f"noise\n[rank{written}]: RuntimeError: CUDA error: unknown error\n")
            written += 1

    for pause_s in (0.0, 0.12, 1.3):  # the kill falls before the facts, after them, and after the position
        append(3)
        with bench.watch() as process:
            until(lambda: ranks(bench) >= {written - 1}, "watch follows")
            append(3)
            time.sleep(pause_s)
            process.kill()
            process.wait(10)
    with bench.watch():
        until(lambda: ranks(bench) >= {written - 1}, "the rest is read")
    facts = [replace(fact, evidence=replace(fact.evidence, read_ms=0)) for fact in bench.facts()]
    distinct = list(dict.fromkeys(facts))
    assert [fact.evidence.rank for fact in distinct] == list(range(written)), "each line once, in the lines' order"
    assert len({fact.event_id for fact in distinct}) == written
    assert len(facts) > written, "no kill fell between facts and position: the test shows nothing"


def ranks(bench: Bench) -> set[int]:
    return {fact.evidence.rank for fact in bench.facts()}


def test_while_kafka_is_away_nothing_is_lost(bench: Bench, session_stack: Stack) -> None:
    bench.publish(bench.view())
    bench.append(XID.format(n=0))
    with bench.watch() as process:
        until(lambda: len(bench.facts()) == 1, "watch follows")
        kafka = session_stack.parts["kafka"]
        kafka.stop()
        try:
            for n in range(1, 4):
                bench.append(f"[rank{n}]: " + XID.format(n=n))
        finally:
            kafka.start(print)
        until(lambda: len(bench.facts()) == 4, "what was written meanwhile arrives")
        bench.append("[rank9]: " + XID.format(n=9))
        until(lambda: len(bench.facts()) == 5, "and watch goes on")
        assert process.poll() is None


def test_after_a_stop_lines_are_told_by_what_is_known_then(bench: Bench) -> None:
    """The attempt ends and its successor writes while watch stands still: nothing of it is the first attempt's."""
    view = bench.view()
    bench.publish(view)
    bench.append(XID.format(n=0))
    with bench.watch() as process:
        until(lambda: len(bench.facts()) == 1, "watch follows")
        process.send_signal(signal.SIGSTOP)
        time.sleep(1.5)
        bench.append(f"{datetime.now(UTC).isoformat()} {XID.format(n=1)}")
        now_ms = time.time_ns() // 1_000_000
        [first] = view.attempts
        ended = replace(first, end_ms=now_ms - 1_200, state=AttemptState.REQUEUED)
        second = attempt_view(1, bench.path, job_id=bench.job_id, start_ms=now_ms - 100)
        bench.publish(job_view(ended, second, job_id=bench.job_id))
        process.send_signal(signal.SIGCONT)
        until(lambda: len(bench.facts()) == 2, "the line written meanwhile")
    assert [fact.attempt.index for fact in bench.facts()] == [0, 1]


def test_a_disabled_job_is_not_followed_until_it_is_enabled(bench: Bench) -> None:
    bench.append(XID.format(n=1))
    bench.publish(bench.view(Mode.DISABLED))
    with closing(Bench(bench.endpoints, bench.path.parent)) as other, bench.watch():
        other.publish(other.view())
        other.append(XID.format(n=1))
        until(lambda: len(other.facts()) == 1, "another job is followed")
        assert bench.facts() == []
        bench.publish(bench.view())
        until(lambda: len(bench.facts()) == 1, "the job is followed")
