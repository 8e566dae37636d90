"""The watch process on real Kafka with log sources beside files: a raw topic, a real VictoriaLogs, a small Loki."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from infra.local.endpoints import Endpoints
from infra.local.stack import Stack
from schemas.decisions import OutputAsked
from schemas.facts import BlindReported, OutputChecked, SignatureMatched
from schemas.topics import REQUESTS
from schemas.vocabulary import BlindKind
from streams.kafka import producer, send
from streams.sources.lines import Labels
from tests.sources.benches import Written
from tests.watch.collectors import Collectors, collectors
from tests.watch.parts import attempt
from tests.watch.test_process import Bench, until

pytestmark = pytest.mark.stack
XID = "node2 rank 3: kernel: NVRM: Xid (PCI:0000:06:00): 79, number {n}"


class Stores:
    """A job whose file is nowhere here, and everything that a collector may send its lines to."""

    def __init__(self, bench: Bench, sent_to: Collectors) -> None:
        self.bench, self.sent_to = bench, sent_to
        self.kafka, self.loki, self.victorialogs = sent_to.kafka, sent_to.loki, sent_to.victorialogs
        self.path = _path(bench)

    def environment(self) -> dict[str, str]:
        return self.sent_to.environment("WATCH", KAFKA__DELAY_S="2", MISSING_AFTER_S="1")

    def watch(self) -> AbstractContextManager[subprocess.Popen[bytes]]:
        return self.bench.watch(self.environment())

    @property
    def benches(self) -> list[Any]:
        """Those that are there."""
        return [bench for bench in (self.kafka, self.loki, self.victorialogs) if bench is not None]

    def publish(self, bench: Bench | None = None) -> None:
        bench = bench or self.bench
        view = bench.view()
        [shown] = view.attempts
        bench.publish(replace(view, attempts=(replace(shown, log_paths=(_path(bench),)),)))

    def line(self, text: str, bench: Bench | None = None, **labels: Any) -> Written:
        bench = bench or self.bench
        return Written(text, time.time_ns() // 1_000_000, Labels(bench.job_id, _path(bench), **labels))

    def faults(self, source: str, bench: Bench | None = None) -> list[SignatureMatched]:
        facts = [fact for fact in (bench or self.bench).facts() if isinstance(fact, SignatureMatched)]
        return list({fact.event_id: fact for fact in facts if fact.position.source.startswith(source)}.values())

    def blind(self) -> Mapping[BlindKind, bool]:
        """Each kind that was told, and whether it has ended."""
        return {fact.kind: fact.ended for fact in self.bench.facts() if isinstance(fact, BlindReported)}


def _path(bench: Bench) -> str:
    return f"/nowhere/slurm-{bench.job_id}.out"


@pytest.fixture
def stores(stack: Endpoints, session_stack: Stack, tmp_path: Path) -> Iterator[Stores]:
    with closing(Bench(stack, tmp_path)) as bench, collectors(stack, session_stack, tmp_path) as sent_to:
        yield Stores(bench, sent_to)


def test_lines_of_every_source_become_facts_once_through_a_kill_and_being_blind_is_told(stores: Stores) -> None:
    stores.publish()
    benches = {"kafka:": stores.kafka, "loki:main": stores.loki}
    if stores.victorialogs is not None:
        benches["victorialogs:main"] = stores.victorialogs
    with stores.watch() as process:
        until(lambda: stores.blind() == {BlindKind.ABSENT: False}, "nothing is seen of it, and that is told")
        for bench in benches.values():
            bench.write([stores.line(XID.format(n=1), attempt=0), stores.line("still here")])
        until(lambda: all(len(stores.faults(name)) == 1 for name in benches), "the fault, from each source")
        until(lambda: stores.blind() == {BlindKind.ABSENT: True}, "it is seen, and that is told")
        process.kill()
        process.wait(10)
    for bench in benches.values():
        bench.write([stores.line(XID.format(n=2))])
    with stores.watch():
        until(lambda: all(len(stores.faults(name)) == 2 for name in benches), "the second fault, from each source")
        checked = ask(stores)
    for name in benches:
        first, second = stores.faults(name)
        assert first.position < second.position
        assert (first.evidence.node, first.evidence.rank, first.evidence.file) == ("node2", 3, stores.path)
    assert checked.error is None
    assert checked.last_output_ms is not None
    assert time.time_ns() // 1_000_000 - checked.last_output_ms < 120_000
    assert checked.delay_ms == 2_000, "the query delay of the sources that answered"


def ask(stores: Stores, budget_ms: int = 60_000) -> OutputChecked:
    """Ask as a decider does, and wait for the answer."""
    bench = stores.bench
    asked = OutputAsked(f"question-{bench.job_id}", "", attempt(0, bench.job_id), 0, (stores.path,), 0, None, budget_ms)
    to = producer(bench.endpoints.kafka, "test")
    send(to, REQUESTS, f"local/{bench.job_id}", bench.codec.encode(asked, source="test", time_ms=0, subject="test"))
    assert to.flush(10) == 0
    until(lambda: any(isinstance(fact, OutputChecked) for fact in bench.facts()), "the answer")
    return next(fact for fact in bench.facts() if isinstance(fact, OutputChecked))


def test_silence_of_the_only_job_that_prints_into_a_source_is_its_own_also_after_a_restart(stores: Stores) -> None:
    stores.publish()
    with stores.watch() as process:
        for bench in stores.benches:
            bench.write([stores.line(XID.format(n=1))])
        until(lambda: len(stores.faults("")) == len(stores.benches), "the fault, from each source")
        process.kill()
        process.wait(10)
    with stores.watch():
        checked = ask(stores, budget_ms=1_000)
    assert checked.error is None
    assert checked.last_output_ms is not None
    assert checked.checked_ms - checked.last_output_ms >= 1_000
    assert BlindKind.SOURCE_DOWN not in stores.blind()


def test_collectors_that_died_are_told_and_are_no_evidence_of_a_hang(
    stores: Stores, stack: Endpoints, tmp_path: Path
) -> None:
    benches = stores.benches
    stores.publish()
    with closing(Bench(stack, tmp_path / "other")) as other, stores.watch():
        stores.publish(other)
        for bench in benches:
            bench.write([stores.line(XID.format(n=1))])
            time.sleep(0.01)
            bench.write([stores.line(XID.format(n=2), other)])  # it goes on a moment longer
        until(lambda: len(stores.faults("")) == len(benches), "the fault, from each source")
        # A source of which one job's lines alone were read is silent with it.
        until(lambda: len(stores.faults("", other)) == len(benches), "the other job's, from each source")
        time.sleep(5)  # longer than the budget below, by more than a busy machine is late
        checked = ask(stores, budget_ms=2_000)
        assert checked.last_output_ms is None
        assert checked.error is not None
        assert checked.error.count("its collector may have died") == len(benches)
        until(lambda: stores.blind().get(BlindKind.SOURCE_DOWN) is False, "watch is blind, and that is told")
        benches[0].write([stores.line("still here")])
        until(lambda: stores.blind().get(BlindKind.SOURCE_DOWN) is True, "a line came, and that is told")


def test_a_collector_that_renames_paths_is_found_out(stores: Stores) -> None:
    stores.publish()
    with stores.watch():
        stores.kafka.send([json.dumps({"message": "hello", "job_id": stores.bench.job_id, "filename": "/mnt/x.out"})])
        until(lambda: stores.blind().get(BlindKind.LABELS) is False, "the labels are off, and that is told")
    reports = [fact for fact in stores.bench.facts() if isinstance(fact, BlindReported)]
    report = next(report for report in reports if report.kind is BlindKind.LABELS)
    assert "/mnt/x.out" in report.detail
    assert stores.path in report.detail
