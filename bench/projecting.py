"""Projections beside COPY: the same events into the tables, and the rows that they made copied in by PostgreSQL itself.

The projector's side reads encoded records from memory, decodes them, and applies rows and offsets in batches, one being
prepared while PostgreSQL writes the one before, as the process does with what it reads from Kafka. COPY gets finished
rows: no decoding, no rules, no conflicts.
"""

from __future__ import annotations

import tempfile
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import psycopg
from sqlalchemy import Engine, text

from bench.harness import Figure, Run, cpu, in_turns, paired, peak_mb, timed, wall
from bench.history import MixHistory, mix_history
from infra.local.stack import Stack
from projections.migrate import upgrade
from projections.records import Record
from projections.runner import switch_often
from projections.store import Batch, Source, Store, engine_of, prepare
from projections.tables import OFFSETS, PROJECTED
from recovery.garbage import collect_rarely
from streams.replay.history import StoredRecord

SETS = 50
ROUNDS = 5
BATCH = 1000
TABLES = tuple(table.name for table in PROJECTED)


def figures() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="recovery-bench-") as folder:
        stack = Stack(Path(folder))
        try:
            endpoints = stack.start(lambda _: None, only=("kafka", "registry", "postgres"))
            if endpoints is None:
                raise RuntimeError("the local stack did not start")
            upgrade(endpoints.postgres)
            engine = engine_of(endpoints.postgres)
            try:
                return [_measure(engine)]
            finally:
                engine.dispose()
        finally:
            stack.stop()


def _measure(engine: Engine) -> Figure:
    address = engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    history = mix_history(SETS)
    batches = _batches(history)
    events = sum(len(batch) for _, batch in batches)
    collect_rarely()  # as the process does; the history itself is not what is measured
    switch_often()
    copies: dict[str, bytes] = {}

    def project() -> Run:
        _empty(engine)
        store = Store(engine)
        run = timed(lambda: _apply(store, history, batches))
        copies.update({name: _copy_out(address, name) for name in TABLES})
        return run

    def copy() -> Run:
        _empty(engine)
        return timed(lambda: _copy_in(address, copies))

    ours, base = in_turns(ROUNDS, project, copy)
    rate = events / wall(ours)
    megabytes = sum(map(len, copies.values())) / 1e6
    return Figure(
        "projection",
        rate,
        "events/s of one process",
        "COPY of the finished rows into the same tables, indexes included",
        paired(base, ours, lambda run: run.wall_s),
        f"{events} events, {megabytes:.0f} MB of rows; {events / cpu(ours):,.0f} events a CPU second of ours;"
        f" COPY {events / wall(base):,.0f} events/s; peak {peak_mb():.0f} MB with the history in memory",
        ">= 10,000 events/s",
        rate >= 10_000,
    )


def _batches(history: MixHistory) -> list[tuple[Source, list[StoredRecord]]]:
    parts = [*history.facts_at, *history.decisions_at]
    return [
        (Source(part[0].topic, part[0].partition), part[low : low + BATCH])
        for part in parts
        for low in range(0, len(part), BATCH)
    ]


def _apply(store: Store, history: MixHistory, batches: list[tuple[Source, list[StoredRecord]]]) -> None:
    store.offsets({source: 0 for source, _ in batches})
    with ThreadPoolExecutor(1) as writer:
        under_way: Future[None] | None = None
        for source, records in batches:
            prepared = prepare([Batch(source, records[0].offset, _decoded(history, records))])
            if under_way is not None:
                under_way.result()
            under_way = writer.submit(store.apply, prepared)
        if under_way is not None:
            under_way.result()


def _decoded(history: MixHistory, records: list[StoredRecord]) -> tuple[Record, ...]:
    return tuple(
        Record(
            one.topic,
            one.partition,
            one.offset,
            one.timestamp_ms,
            "recovery/bench",
            history.codec.decode(one.value or b"", one.headers),
        )
        for one in records
    )


def _empty(engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(text(f"TRUNCATE {', '.join(TABLES)}, {OFFSETS.name}"))


def _copy_out(address: str, table: str) -> bytes:
    with psycopg.connect(address) as connection, connection.cursor().copy(f"COPY {table} TO STDOUT") as copy:
        return b"".join(bytes(piece) for piece in copy)


def _copy_in(address: str, copies: dict[str, bytes]) -> None:
    with psycopg.connect(address) as connection, connection.cursor() as cursor:
        for table, rows in copies.items():
            with cursor.copy(f"COPY {table} FROM STDIN") as copy:
                copy.write(rows)
