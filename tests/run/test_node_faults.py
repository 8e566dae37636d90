"""A node's kernel log explains a job that fails without a word: watch, both deciders and the relay on a real Kafka."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from schemas.bookkeeping import RecordParked
from schemas.decisions import AttributionMade, FactParked
from schemas.facts import JobObserved, NodeFaultReported, SignatureMatched
from schemas.nodes import NodeAllocated, NodeFaultSeen, NodeFaultTold, NodeFreed
from schemas.topics import DECISION_LOG, JOURNAL, NODE_DECISIONS, NODES, PARKED
from schemas.vocabulary import AnomalyKind, AttemptState, FaultClass, Witness
from streams.kafka import decode
from streams.replay.history import TopicHistory
from streams.replay.verify import verify_nodes
from streams.run.slots import NODE_CREW
from tests.decide.story import Story
from tests.decide.test_nodes import attempt, came, fault
from tests.run.parts import Process, Room, until

pytestmark = pytest.mark.stack


def told_by_nobody() -> NodeFaultTold:
    """A decision that no fact leads to."""
    seen = fault(1, 1_000, "forged")
    assert isinstance(seen, NodeFaultSeen)
    return NodeFaultTold("forged", "", attempt(1), 1_000, seen.event_id, seen.fault, 0)


XID = "{stamp} gpu2 kernel: [  812.401] NVRM: Xid (PCI:0000:06:00): 79, pid=4311, GPU has fallen off the bus.\n"


class Site:
    """A cluster of this test's own: its scheduler's looks, and its nodes' logs in a folder."""

    def __init__(self, room: Room, folder: Path) -> None:
        self.room = room
        self.folder = folder
        self.story = Story()
        self.key = "nodesite/7"

    def looks(self, state: AttemptState) -> None:
        """The scheduler controller sees the job in a state, now."""
        self.story.now_ms = time.time_ns() // 1_000_000
        self.story.observe(state, nodes=("gpu1", "gpu2"), log_paths=(str(self.folder / "job.out"),))
        fact = self.story.facts[-1][0]
        assert isinstance(fact, JobObserved)
        start_ms = self.story.submits[0] * 1000
        self.room.write(replace(fact, cluster="nodesite", start_ms=start_ms, submit_time=self.story.submits[0]))

    def kernel_says(self, node: str, text: str) -> None:
        stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f+00:00")
        path = self.folder / "nodes" / node / "kern.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as log:
            log.write(text.format(stamp=stamp))


@pytest.fixture(scope="module")
def decider(room: Room) -> Iterator[Process]:
    """The node decider of this module, in slot 0."""
    one = room.process("nodes", "--slot", "0")
    one.start()
    yield one
    if one.running.poll() is None:
        assert one.stop() == 0, one.tail()


@pytest.fixture(scope="module")
def others(room: Room, decider: Process, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:  # noqa: ARG001
    """Watch, the attempt decider and the relay; the folder that watch reads."""
    folder = tmp_path_factory.mktemp("site")
    settings = {
        "RECOVERY_SLURM__CLUSTER": "nodesite",
        "RECOVERY_NODES__LOG_PATHS": f"{folder}/nodes/{{node}}/kern.log",
    }
    processes = [room.process("decide"), room.process("relay"), room.process("watch", **settings)]
    for one in processes:
        one.start(ready=False)
    for one in processes:
        one.wait_ready()
    yield folder
    for one in processes:
        assert one.stop() == 0, one.tail()


def test_a_job_that_fails_without_a_word_is_explained_by_the_kernel_log_of_its_node(room: Room, others: Path) -> None:
    site = Site(room, others)
    (others / "job.out").write_text("nothing to say\n")
    site.kernel_says("gpu1", "{stamp} gpu1 kernel: usb 1-1: new device\n")
    site.kernel_says("gpu9", XID.replace("gpu2", "gpu9"))
    site.looks(AttemptState.RUNNING)
    site.kernel_says("gpu2", XID)
    time_of_line = time.monotonic()
    reported = until(
        lambda: next((one for one in room.events(JOURNAL, site.key) if isinstance(one, NodeFaultReported)), None),
        "the job is told",
    )
    assert time.monotonic() - time_of_line < 30
    assert (reported.fault.node, reported.fault.witness, reported.distance_ms) == ("gpu2", Witness.NODE_LOG, 0)
    site.looks(AttemptState.FAILED)
    made = until(
        lambda: next((one for one in room.events(DECISION_LOG, site.key) if isinstance(one, AttributionMade)), None),
        "the attribution",
    )
    assert (made.fault_class, made.nodes) == (FaultClass.GPU_HARDWARE, ("gpu2",))
    assert made.root is not None
    assert made.root.file == str(others / "nodes/gpu2/kern.log")
    assert [one.kind for one in room.events(DECISION_LOG, site.key) if hasattr(one, "kind")] == [AnomalyKind.NODE_FAULT]
    journal = room.events(JOURNAL, site.key)
    assert not [one for one in journal if isinstance(one, SignatureMatched)], "a node's line is no job output"
    assert len([one for one in journal if isinstance(one, NodeFaultReported)]) == 1
    until(lambda: room.events(NODES, "nodesite/gpu1") or None, "the nodes are told")
    assert [type(one) for one in room.events(NODES, "nodesite/gpu1")] == [NodeAllocated, NodeFreed]
    assert room.events(NODE_DECISIONS, "nodesite/gpu9") == []


def test_with_all_read_it_is_not_behind_though_transactions_end_in_markers(room: Room, decider: Process) -> None:
    with room.transaction("allocations") as write:
        write(NODES, "local/marked", came(1, 0, "marked"))
    shown = f'recovery_lag_records{{group="{NODE_CREW.group}",topic="{NODES.name}"}} '

    def lag() -> float | None:
        return next((float(line.removeprefix(shown)) for line in decider.metrics().splitlines() if shown in line), None)

    until(lambda: True if lag() == 0 else None, "no lag")
    time.sleep(1.5)  # it looks every second: nothing creeps back
    assert lag() == 0


def test_through_kill_9_each_attempt_is_told_once(room: Room, decider: Process) -> None:
    nodes = [f"killed{number}" for number in range(20)]
    with room.transaction("allocations") as write:
        for node in nodes:
            write(NODES, f"local/{node}", came(1, 0, node))
    for number in range(1, 5):
        with room.transaction("faults") as write:
            for node in nodes:
                write(NODES, f"local/{node}", fault(number, number * 1_000, node, source="kern.log"))
        if number % 2:
            decider.kill()
            decider.start(ready=False)

    def told() -> list[NodeFaultTold] | None:
        found = [one for node in nodes for one in room.events(NODE_DECISIONS, f"local/{node}")]
        return found if len(found) >= 4 * len(nodes) else None

    found = until(told, "all are told", 90)
    assert len({(one.fault.node, one.seen) for one in found}) == len(found) == 4 * len(nodes)


def test_a_record_that_can_not_be_handled_is_parked_and_the_next_is_decided(room: Room, decider: Process) -> None:
    room.write_raw(NODES, b"local/bad", b"garbage")
    with room.transaction("bad") as write:
        write(NODES, "local/bad", came(1, 0, "bad"))
        write(NODES, "local/bad", fault(1, 1_000, "bad"))

    def both() -> list[Any] | None:
        found = room.events(NODE_DECISIONS, "local/bad")
        return found if len(found) >= 2 else None

    assert [type(one) for one in until(both, "parked and told")] == [FactParked, NodeFaultTold]
    parked = [decode(room.codec, message) for message in room.read(PARKED)]
    assert NODES.name in [one.topic for one in parked if isinstance(one, RecordParked)]
    assert decider.running.poll() is None


def test_replay_derives_again_what_nodes_were_decided(room: Room, decider: Process) -> None:
    history = TopicHistory(room.bootstrap, NODE_CREW.group, NODES, NODE_DECISIONS)
    report = verify_nodes(history, room.codec)
    assert report.difference is None
    assert report.decisions > 80
    assert report.parked >= 1
    assert decider.running.poll() is None
    with room.transaction("forged") as write:
        write(NODE_DECISIONS, "local/forged", told_by_nobody())
    forged = verify_nodes(TopicHistory(room.bootstrap, NODE_CREW.group, NODES, NODE_DECISIONS), room.codec)
    assert forged.difference is not None
