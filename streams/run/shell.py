"""A decider on Kafka: Quix Streams, exactly once, in a numbered slot. All kinds of deciders run in this one shell.

A slot has a fixed transactional id and group instance id, so a worker that comes back after `kill -9` takes its own
open transaction and partitions over at once, and one that was taken over is fenced and exits.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Message

from recovery.garbage import collect_rarely
from recovery.metrics import PARKED as PARKED_METRIC
from recovery.metrics import counter
from recovery.process import FencedError, ProcessContext, run_process
from recovery.run_files import read_run_files
from recovery.settings import Settings, SettingsError
from recovery.topics import check_topics, create_topics
from schemas.codec import Codec
from schemas.registry import RegistryIds
from schemas.topics import DERIVED_BYTES, PARKED, PARTITIONER, Topic
from streams.kafka import is_fenced, place
from streams.membership import membership_watched
from streams.parking import ParkingFull
from streams.records import Incoming
from streams.run.quix import Application, assigned
from streams.run.slots import Crew
from streams.run.stateful import StatefulWorker

LINGER_MS = 50
"""A commit sends what lingers, so this delays nothing; without it librdkafka's thread is woken for every record."""
TRANSACTION_TIMEOUT_MS = 5_000
SESSION_TIMEOUT_MS = 10_000
HEARTBEAT_MS = 3_000

DECIDED = counter("facts_decided", "Facts taken in by this decider.")
EMITTED = counter("decisions", "Records that this decider wrote, by topic.", "topic")


@dataclass(frozen=True)
class Post:
    """One kind of decider: who they are, where they write, and how a worker of a slot is made."""

    crew: Crew
    outputs: tuple[Topic, ...]
    worker: Callable[[Settings, Codec, int], StatefulWorker[Any, Any, Any]]


def run_post(settings: Settings, post: Post, slot: int) -> int:
    """Run the decider of `slot` until it is stopped; return the exit code."""
    return run_process(post.crew.process, settings, lambda context: _body(context, post, slot), slot=slot)


def _body(context: ProcessContext, post: Post, slot: int) -> None:
    settings, crew = context.settings, post.crew
    if slot >= crew.input.partitions:
        raise SettingsError(
            f"slot {slot} would never get work: {crew.input.name} has {crew.input.partitions} partitions"
        )
    _refuse_taken_slot(context, crew, slot)
    bootstrap = settings.kafka.bootstrap
    create_topics(bootstrap, [crew.changelog])
    check_topics(bootstrap)
    codec = Codec(RegistryIds(settings.registry.url))
    app = stream(settings, post.crew, post.outputs, slot, post.worker(settings, codec, slot))
    collect_rarely()
    context.stop.on_request(app.stop)
    with membership_watched(bootstrap, crew.group, context.health, lambda: assigned(app, crew.input.name)):
        try:
            app.run()
        except Exception as error:
            if is_fenced(error):
                raise FencedError(f"slot {slot} was taken over by another worker") from error
            raise
    if not context.stop.requested:
        raise RuntimeError("the stream ended by itself")


def _refuse_taken_slot(context: ProcessContext, crew: Crew, slot: int) -> None:
    """One slot, one worker: on one machine the second is refused; elsewhere Kafka fences the first."""
    for record in read_run_files(context.settings.data):
        if record.name == f"{crew.process}-{slot}" and record.pid != os.getpid() and record.alive():
            raise SettingsError(f"slot {slot} is in use by pid {record.pid}: choose another with --slot")


def stream(
    settings: Settings, crew: Crew, outputs: tuple[Topic, ...], slot: int, worker: StatefulWorker[Any, Any, Any]
) -> Application:
    """The stream of a slot: facts to the worker, its records to their topics, all in one transaction."""
    app = _application(settings, crew, slot, worker.write_states)
    emitted = {topic.name: EMITTED.labels(topic.name) for topic in outputs}

    def take(messages: list[Message]) -> None:
        records = [_record(message) for message in messages]
        counts: Counter[str] = Counter()
        try:
            for record, outgoing in zip(records, worker.handle_all(records, app.store), strict=True):
                app.write(outgoing, record.recorded_ms)
                app.done(record)
                for out in outgoing:
                    counts[out.topic.name] += 1
        except ParkingFull:
            app.commit()  # what was parked before is there to be looked at
            raise
        DECIDED.inc(len(records))
        for topic, count in counts.items():
            emitted[topic].inc(count)
        PARKED_METRIC.labels(crew.input.name).inc(counts[PARKED.name])

    app.take_batches(app.topic(crew.input.name), take)
    return app


def _record(message: Message) -> Incoming:
    topic, partition, offset = place(message)
    _, recorded_ms = message.timestamp()
    return Incoming(
        topic, partition, offset, message.key() or b"", message.value(), message.headers() or [], recorded_ms
    )


def _application(settings: Settings, crew: Crew, slot: int, before_commit: Callable[[], None]) -> Application:
    return Application(
        before_commit,
        broker_address=settings.kafka.bootstrap,
        consumer_group=crew.group,
        auto_offset_reset="earliest",
        processing_guarantee="exactly-once",
        auto_create_topics=False,
        auto_recover_from_source_offset_out_of_range=False,
        state_dir=settings.data / "state" / f"{crew.process}-{slot}",
        loglevel="WARNING",
        producer_extra_config={
            "transactional.id": crew.transactional_id(slot),
            "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
            "partitioner": PARTITIONER,
            "linger.ms": LINGER_MS,
            "message.max.bytes": DERIVED_BYTES,
        },
        consumer_extra_config={
            "group.instance.id": crew.instance_id(slot),
            "session.timeout.ms": SESSION_TIMEOUT_MS,
            "heartbeat.interval.ms": HEARTBEAT_MS,
            "fetch.wait.max.ms": 20,
        },
    )
