"""History on trial: decided again it gives the same, and tables made from nothing are those that lived through it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from confluent_kafka import TopicPartition
from sqlalchemy import Engine, Row, create_engine, select, text
from sqlalchemy.engine import make_url
from sqlalchemy.pool import NullPool

from projections.reading import consumer
from projections.rebuild import rebuild
from projections.runner import Runner
from projections.store import Store, engine_of
from projections.tables import OFFSETS, PROJECTED
from recovery.health import Health
from recovery.process import Stop
from schemas.topics import DECISION_LOG, JOURNAL
from streams.kafka import reader
from streams.replay.history import TopicHistory
from streams.replay.verify import verify
from streams.run.policies import PolicyDocuments
from streams.run.slots import GROUP
from tests.chaos.oracle import Violation
from tests.chaos.world import World

SECOND = "chaos_rebuilt"
CATCH_UP_S = 120.0
Ends = dict[tuple[str, int], int]


def replayed(world: World) -> tuple[int, list[Violation]]:
    """How many facts were decided again, and the violation where that gave something else."""
    bootstrap, codec = world.settings.kafka.bootstrap, world.codec
    report = verify(TopicHistory(bootstrap, GROUP), codec, PolicyDocuments(bootstrap, codec, "chaos-policies"))
    found = []
    if report.difference is not None:
        different = report.difference
        seen = f"at {different.fact}: {different.why}\n  recorded {different.recorded}\n  derived  {different.derived}"
        found.append(Violation(None, "all decisions derived again, none different", seen))
    if report.undecided:
        found.append(Violation(None, "every fact is decided", f"{report.undecided} are not"))
    if not report.decisions:
        found.append(Violation(None, "there are decisions", "none"))
    return report.facts, found


def rebuilt(world: World) -> tuple[int, list[Violation]]:
    """How many rows the tables have, and each table that comes out different when it is made from nothing."""
    live_url = world.settings.postgres.url
    ends = _ends(world)
    with _second_database(live_url) as url:
        rebuild(url)
        live, made = engine_of(live_url), engine_of(url)
        try:
            _await(live, ends)
            _project(world, made, ends)
            return _compare(_dump(live), _dump(made))
        finally:
            live.dispose()
            made.dispose()


def _compare(live: dict[str, list[Row[Any]]], made: dict[str, list[Row[Any]]]) -> tuple[int, list[Violation]]:
    found = []
    for name, rows in live.items():
        again = made[name]
        first = next(((a, b) for a, b in zip(rows, again, strict=False) if a != b), None)
        if first is not None or len(rows) != len(again):
            seen = f"{len(rows)} rows live, {len(again)} rebuilt; first difference: {first}"
            found.append(Violation(None, f"{name} rebuilt from nothing is the live one", seen))
    return sum(len(rows) for rows in live.values()), found


def _project(world: World, into: Engine, ends: Ends) -> None:
    """A runner of its own group, until it has read everything."""
    stop = Stop()
    runner = Runner(consumer(world.settings.kafka.bootstrap, "chaos-rebuild"), world.codec, Store(into), stop, Health())
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(runner.run, (JOURNAL.name, DECISION_LOG.name))
        try:
            _await(into, ends)
        finally:
            stop.request()
        future.result(CATCH_UP_S)


def _await(engine: Engine, ends: Ends) -> None:
    deadline = time.monotonic() + CATCH_UP_S
    while behind := _behind(engine, ends):
        if time.monotonic() > deadline:
            raise TimeoutError(f"tables did not catch up within {CATCH_UP_S:g} s: {behind}")
        time.sleep(0.1)


def _behind(engine: Engine, ends: Ends) -> list[str]:
    with engine.connect() as connection:
        rows = connection.execute(select(OFFSETS.c.topic, OFFSETS.c.partition, OFFSETS.c.next_offset)).all()
    reached = {(topic, partition): next_offset for topic, partition, next_offset in rows}
    return [f"{place}: {reached.get(place, 0)} of {end}" for place, end in ends.items() if reached.get(place, 0) < end]


def _ends(world: World) -> Ends:
    """One past the last record of each partition. The end that Kafka names may be past markers that are no records."""
    found: Ends = {}
    source = reader(world.settings.kafka.bootstrap, "chaos-ends")
    try:
        for topic in (JOURNAL, DECISION_LOG):
            for partition in range(topic.partitions):
                place = TopicPartition(topic.name, partition, 0)
                _, high = source.get_watermark_offsets(place, timeout=20)
                source.assign([place])
                while source.position([place])[0].offset < high and high:
                    message = source.poll(1.0)
                    if message is not None and message.error() is None:
                        found[topic.name, partition] = int(message.offset() or 0) + 1
    finally:
        source.close()
    return found


def _dump(engine: Engine) -> dict[str, list[Row[Any]]]:
    with engine.connect() as connection:
        return {
            table.name: list(connection.execute(select(table).order_by(*table.primary_key.columns)))
            for table in PROJECTED
        }


@contextmanager
def _second_database(server: str) -> Iterator[str]:
    url = make_url(server)
    engine = create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {SECOND}"))
    try:
        yield url.set(database=SECOND).render_as_string(hide_password=False)
    finally:
        with engine.connect() as connection:
            connection.execute(text(f"DROP DATABASE {SECOND} WITH (FORCE)"))
