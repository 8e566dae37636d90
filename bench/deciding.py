"""Deciders beside a Quix pass-through that leaves the same state and the same output bytes, on one real Kafka."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from statistics import median

from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from bench.deciding_side import Turn
from bench.harness import Figure, Run, in_turns, paired, wall
from bench.history import Step, journal_records, steps
from bench.mix import JOBS_A_SET
from bench.passthrough import CHANGELOG
from infra.local.endpoints import Endpoints
from infra.local.stack import Stack
from recovery.topics import create_topics
from schemas.codec import Codec
from schemas.registry import RegistryIds
from schemas.topics import CATALOGUE, JOURNAL
from streams.kafka import producer
from streams.records import Incoming
from streams.run.slots import CHANGELOG as OURS

SETS = 100
ROUNDS = 9
"""The machine's speed changes from one turn to the next by a third."""
TURN_S = 180


def figures() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="recovery-bench-") as folder:
        stack = Stack(Path(folder))
        try:
            endpoints = stack.start(lambda _: None, only=("kafka", "registry", "postgres"))
            if endpoints is None:
                raise RuntimeError("the local stack did not start")
            return _measure(endpoints, Path(folder))
        finally:
            stack.stop()


def _measure(endpoints: Endpoints, folder: Path) -> list[Figure]:
    prepare(endpoints.kafka)
    codec = Codec(RegistryIds(endpoints.registry))
    peaks: dict[str, list[float]] = defaultdict(list)
    prepared: list[tuple[int, dict[bytes, list[Step]]]] = []

    def turn(kind: str, number: int) -> Run:
        facts, plan = prepared[number]
        asked, said = folder / "turn.pickle", folder / "turn.json"
        asked.write_bytes(pickle.dumps(Turn(kind, endpoints.kafka, endpoints.registry, folder, facts, plan)))
        command = [sys.executable, "-W", "ignore", "-m", "bench.deciding_side", str(asked), str(said)]
        subprocess.run(command, check=True, timeout=TURN_S)
        result = json.loads(said.read_text())
        peaks[kind].append(result["peak_mb"])
        return Run(result["wall_s"], result["cpu_s"])

    def ours() -> Run:
        number = len(prepared)
        records = list(journal_records(codec, SETS, 1 + number * SETS * JOBS_A_SET))
        prepared.append((len(records), planned(records, codec)))
        produce(endpoints.kafka, records)
        return turn("ours", number)

    own, base = in_turns(ROUNDS, ours, lambda: turn("passthrough", len(prepared) - 1))
    facts = prepared[0][0]
    outputs = sum(len(step.outgoing) for known in prepared[0][1].values() for step in known)
    state = median(len(step.state) for known in prepared[0][1].values() for step in known)
    ratio, of_cpu = paired(base, own, lambda run: run.wall_s), paired(base, own)
    return [
        Figure(
            "deciders",
            facts / wall(own),
            "facts/s of one worker",
            "a Quix Streams pass-through, exactly once, with the same state and output bytes",
            ratio,
            f"{outputs / facts:.2f} records out and {state:.0f} bytes of state a fact; pass-through"
            f" {facts / wall(base):,.0f} facts/s; by CPU seconds {of_cpu:.2f}; peak {median(peaks['ours']):.0f} MB,"
            f" pass-through {median(peaks['passthrough']):.0f} MB with its plan",
            "ratio >= 0.4",
            ratio >= 0.4,
        )
    ]


def prepare(bootstrap: str) -> None:
    """Make the topics. The mix has times of its own, so the journal takes the producer's here."""
    create_topics(bootstrap, [*CATALOGUE, OURS, CHANGELOG])
    resource = ConfigResource(
        ResourceType.TOPIC,
        JOURNAL.name,
        incremental_configs=[
            ConfigEntry("message.timestamp.type", "CreateTime", incremental_operation=AlterConfigOpType.SET)
        ],
    )
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(timeout=10)


def planned(records: list[Incoming], codec: Codec) -> dict[bytes, list[Step]]:
    """What each record of a key leaves, in the key's order."""
    plan: dict[bytes, list[Step]] = defaultdict(list)
    for record, step in zip(records, steps(records, codec), strict=True):
        plan[record.key].append(step)
    return dict(plan)


def produce(bootstrap: str, records: list[Incoming]) -> None:
    """Write the records to the journal with their own times."""
    to = producer(bootstrap, "bench")
    for record in records:
        while True:
            try:
                to.produce(
                    record.topic,
                    key=record.key,
                    value=record.value,
                    headers=record.headers,
                    timestamp=record.recorded_ms,
                )
                break
            except BufferError:
                to.poll(0.1)
        to.poll(0)
    if to.flush(30):
        raise RuntimeError("Kafka did not take all facts")
