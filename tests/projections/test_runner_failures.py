"""What the runner does when something is wrong: with a record, with PostgreSQL, with Kafka, with another runner."""

from __future__ import annotations

import struct
import time

import psycopg
import pytest
from sqlalchemy import Engine, select, text, update
from sqlalchemy.engine import make_url

from infra.local.endpoints import Endpoints
from projections import metrics
from projections.runner import HistoryMissing
from projections.tables import OFFSETS, PROBLEMS
from schemas.codec import UnknownSchema
from tests.histories import gpu_xid_failure
from tests.projections.parts import Topics, Writer, caught_up, dump, runner_process, running, wait_until

pytestmark = pytest.mark.stack

RECORDS = gpu_xid_failure().records


def test_an_unreadable_record_is_set_aside_and_the_rest_is_projected(topics: Topics, url: str, engine: Engine) -> None:
    writer = Writer(topics)
    writer.write(RECORDS[:3])
    [partition] = {partition for topic, partition in writer.ends if topic == topics.journal}
    writer.write_raw(topics.journal, b"local/42", b"no event", partition)
    writer.write_raw(topics.journal, b"local/42", None, partition)
    writer.write(RECORDS[3:])
    with running(topics, url) as runner:
        runner.until(lambda: caught_up(engine, writer.ends), "everything else in the tables")
    with engine.connect() as connection:
        problems = connection.execute(select(PROBLEMS).order_by(PROBLEMS.c.offset)).all()
    assert ["Confluent's wire format" in problems[0].reason, "without a value" in problems[1].reason] == [True, True]
    assert len(dump(engine)["audit_rows"]) == len(RECORDS)


def test_an_unknown_schema_stops_the_runner_before_it(topics: Topics, url: str, engine: Engine) -> None:
    writer = Writer(topics)
    writer.write(RECORDS[:1])
    known = dict(writer.ends)
    [(_, partition)] = known
    writer.write_raw(topics.journal, b"local/42", struct.pack(">bI", 0, 99_999) + b"x", partition)
    with pytest.raises(UnknownSchema, match=r"99999.*upgrade"), running(topics, url) as runner:
        runner.until(lambda: False, "the runner's end")
    assert not caught_up(engine, writer.ends)


def test_tables_of_another_kafka_stop_the_runner_and_say_so(topics: Topics, url: str, engine: Engine) -> None:
    writer = Writer(topics)
    writer.write(RECORDS)
    with running(topics, url) as runner:
        runner.until(lambda: caught_up(engine, writer.ends), "the story in the tables")
    with engine.begin() as connection:
        connection.execute(update(OFFSETS).values(next_offset=1_000_000))
    with pytest.raises(HistoryMissing, match="rebuild"), running(topics, url) as runner:
        runner.until(lambda: False, "the runner's end")


def test_the_runner_waits_for_postgresql_and_goes_on(
    topics: Topics, url: str, engine: Engine, stack: Endpoints
) -> None:
    admin = make_url(stack.postgres).set(drivername="postgresql").render_as_string(hide_password=False)
    name = make_url(url).database
    writer = Writer(topics)
    with running(topics, url) as runner, psycopg.connect(admin, autocommit=True) as postgres:
        writer.write(RECORDS[:4])
        runner.until(lambda: caught_up(engine, writer.ends), "the beginning in the tables")
        engine.dispose()
        postgres.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false".encode())
        postgres.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
        writer.write(RECORDS[4:])
        time.sleep(1)  # time enough for it to try in vain; nothing is awaited here
        postgres.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true".encode())
        runner.until(lambda: caught_up(engine, writer.ends), "the rest in the tables")
    assert len(dump(engine)["audit_rows"]) == len(RECORDS)


def test_two_runners_on_the_same_partitions_apply_each_batch_once(topics: Topics, url: str, engine: Engine) -> None:
    stories = [gpu_xid_failure(str(job)) for job in range(100, 112)]
    writer = Writer(topics)
    conflicts = metrics.CONFLICTS.labels(topics.journal)
    # Each counts the rows of its transactions: an insert that met a row would not.
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE counted (n int)"))
        connection.execute(
            text(
                "CREATE FUNCTION count_audit() RETURNS trigger LANGUAGE plpgsql AS"
                " $$ BEGIN INSERT INTO counted VALUES (1); RETURN NEW; END $$"
            )
        )
        connection.execute(
            text("CREATE TRIGGER counting BEFORE INSERT ON audit_rows FOR EACH ROW EXECUTE FUNCTION count_audit()")
        )
    before = conflicts._value.get()
    with running(topics, url, group="one") as one, running(topics, url, group="two") as two:
        for story in stories:
            writer.write(story.records)
        one.until(lambda: caught_up(engine, writer.ends), "all stories in the tables")
        two.until(lambda: caught_up(engine, writer.ends), "all stories in the tables")
    with engine.connect() as connection:
        counted = connection.execute(text("SELECT count(*) FROM counted")).scalar_one()
    assert counted == sum(len(story.records) for story in stories)
    assert conflicts._value.get() > before


def test_a_runner_that_is_killed_while_it_writes_leaves_whole_batches(topics: Topics, url: str, engine: Engine) -> None:
    stories = [gpu_xid_failure(str(job)) for job in range(100)]
    writer = Writer(topics)
    writer.write(record for story in stories for record in story.records)

    def placed() -> int:
        with engine.connect() as connection:
            return sum(connection.execute(select(OFFSETS.c.next_offset)).scalars())

    reached = 0
    for _ in range(3):
        with runner_process(topics, url) as process:
            wait_until(lambda before=reached: placed() > before, "more in the tables")  # type: ignore[misc]
            process.kill()
        process.wait()
        reached = placed()
    with running(topics, url) as runner:
        runner.until(lambda: caught_up(engine, writer.ends), "all stories in the tables")
    assert len(dump(engine)["audit_rows"]) == sum(len(story.records) for story in stories)


def test_once_all_is_read_the_noted_lag_is_nothing_in_spite_of_transaction_markers(
    topics: Topics, url: str, engine: Engine
) -> None:
    writer = Writer(topics)
    writer.write(RECORDS)

    def lags() -> list[int | None]:
        with engine.connect() as connection:
            return list(connection.execute(select(OFFSETS.c.lag)).scalars())

    with running(topics, url) as runner:
        runner.until(lambda: caught_up(engine, writer.ends), "the story in the tables")
        runner.until(lambda: len(lags()) == 4 and not any(lag != 0 for lag in lags()), "no lag in any partition")
