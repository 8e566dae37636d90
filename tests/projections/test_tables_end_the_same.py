"""However the journal and the decisions interleave, repeat or are interrupted, the tables end the same."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import pytest
from sqlalchemy import Engine, select, text

from infra.local.endpoints import Endpoints
from projections import migrate
from projections.rebuild import rebuild
from projections.store import engine_of
from projections.tables import AUDIT
from schemas.catalogue import DECISIONS
from tests.histories import gpu_xid_failure, observed_only
from tests.history import Recorded
from tests.projections.parts import (
    Topics,
    Writer,
    caught_up,
    database,
    dump,
    make_topics,
    runner_process,
    running,
    wait_until,
)

pytestmark = pytest.mark.stack

STORIES = [gpu_xid_failure("42"), gpu_xid_failure("123_4", workflow_id="other"), observed_only()]
# A place in Kafka differs from run to run; everything else must not.
PLACES = ("offset", "partition", "topic")


def content(engine: Engine) -> dict[str, list[dict[str, object]]]:
    """Every projected row without its place in Kafka."""
    return {
        name: [{key: value for key, value in row._mapping.items() if key not in PLACES} for row in rows]
        for name, rows in dump(engine).items()
    }


def shuffled(seed: int, *, repeat: bool) -> Iterator[Recorded]:
    """The stories' records, each topic in its own order, the topics anyhow; with a second copy of some in place."""
    chance = random.Random(seed)
    lanes: list[list[Recorded]] = []
    for story in STORIES:
        lanes.append([record for record in story.records if not isinstance(record.event, DECISIONS)])
        lanes.append([record for record in story.records if isinstance(record.event, DECISIONS)])
    while lanes := [lane for lane in lanes if lane]:
        record = chance.choice(lanes).pop(0)
        yield record
        if repeat and not isinstance(record.event, DECISIONS) and chance.random() < 0.3:
            yield record


def distinct(records: Sequence[Recorded]) -> int:
    return len({record.event.event_id for record in records})


@pytest.fixture(scope="module")
def expected(stack: Endpoints) -> dict[str, list[dict[str, object]]]:
    """The tables after the stories were written one after the other."""
    topics = make_topics(stack.kafka)
    with database(stack.postgres) as url:
        migrate.upgrade(url)
        engine = engine_of(url)
        writer = Writer(topics)
        writer.write(record for story in STORIES for record in story.records)
        with running(topics, url) as runner:
            runner.until(lambda: caught_up(engine, writer.ends), "the stories in the tables")
        tables = content(engine)
        engine.dispose()
    assert len(tables["audit_rows"]) == distinct([record for story in STORIES for record in story.records])
    return tables


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_order_between_topics_and_repeated_facts_change_nothing(
    seed: int, topics: Topics, url: str, engine: Engine, expected: dict[str, list[dict[str, object]]]
) -> None:
    writer = Writer(topics)
    with running(topics, url) as runner:
        writer.write(shuffled(seed, repeat=True))
        runner.until(lambda: caught_up(engine, writer.ends), "the shuffled stories in the tables")
    assert content(engine) == expected


def test_a_killed_runner_loses_nothing_and_repeats_nothing(
    topics: Topics, url: str, engine: Engine, expected: dict[str, list[dict[str, object]]]
) -> None:
    writer, records = Writer(topics), list(shuffled(4, repeat=False))
    third = len(records) // 3
    for part in (records[:third], records[third : 2 * third]):
        with runner_process(topics, url) as process:
            writer.write(part)
            wait_until(lambda: caught_up(engine, writer.ends), "this part in the tables")
            writer.write(records[2 * third : 2 * third + 1])
            process.kill()
    with running(topics, url) as runner:
        writer.write(records[2 * third :])
        runner.until(lambda: caught_up(engine, writer.ends), "the rest in the tables")
    assert content(engine) == expected


def test_a_decision_of_an_aborted_transaction_is_nowhere(topics: Topics, url: str, engine: Engine) -> None:
    records = STORIES[0].records
    decided = [record for record in records if isinstance(record.event, DECISIONS)]
    writer = Writer(topics)
    writer.write(decided[:2])
    writer.abort(decided[2])
    writer.write(decided[3:5])
    with running(topics, url) as runner:
        runner.until(lambda: caught_up(engine, writer.ends), "the committed decisions in the tables")
    with engine.connect() as connection:
        seen = set(connection.execute(select(AUDIT.c.event_id)).scalars())
    assert seen == {record.event.event_id for record in (*decided[:2], *decided[3:5])}


def test_a_rebuild_under_a_living_runner_makes_the_same_tables(topics: Topics, url: str, engine: Engine) -> None:
    writer = Writer(topics)
    writer.write(shuffled(5, repeat=True))
    with running(topics, url) as runner:
        runner.until(lambda: caught_up(engine, writer.ends), "the stories in the tables")
        live = dump(engine)
        with engine.begin() as connection:
            connection.execute(text("UPDATE attempt_rows SET state = 'LOST', last_step = 999999"))
        rebuild(url)
        runner.until(lambda: caught_up(engine, writer.ends), "the rebuilt tables")
    assert dump(engine) == live
