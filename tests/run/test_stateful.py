"""A worker's states are written once a commit, and what is decided does not depend on how often that is."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.aps import Aps
from schemas.topics import JOURNAL, PARKED
from schemas.vocabulary import AttemptState
from streams.decide.decide import MissingPolicy
from streams.parking import MOST_BYTES
from streams.records import Incoming, Outgoing
from streams.run.quix import BEHIND_MS, COMMIT_SOON_S, is_due
from streams.run.worker import Worker
from tests.decide.story import OPTED_IN, Story
from tests.decide.test_any_history import histories, told
from tests.replay.memory import CODEC, Store

POLICIES = {Story().policy.digest(): Story().policy}


class CountingStore(Store):
    """Counts how often a state was written."""

    written = 0

    def set_bytes(self, key: str, value: bytes) -> None:
        self.written += 1
        super().set_bytes(key, value)


def facts(story: Story) -> list[Incoming]:
    """The story as records."""
    return [
        Incoming(JOURNAL.name, 0, number, b"local/7", CODEC.encode_value(fact), [], recorded_ms)
        for number, (fact, recorded_ms) in enumerate(story.facts)
    ]


def looked_after() -> list[Incoming]:
    """A job that fails and is looked after."""
    story = Story()
    story.run_and_fail()
    story.wait(60)
    return facts(story)


def trained(aps: Aps) -> list[Incoming]:
    """A job with these wishes that trains."""
    story = Story(aps=aps)
    story.observe(AttemptState.RUNNING)
    story.progress(10)
    story.progress(20)
    return facts(story)


def decided(commit_after: int) -> tuple[list[Outgoing], CountingStore]:
    """What comes of it with a commit after every so many facts."""
    worker, store = Worker(CODEC, POLICIES, "0"), CountingStore()
    outgoing: list[Outgoing] = []
    for number, fact in enumerate(looked_after(), start=1):
        outgoing += worker.handle(fact, store)
        if number % commit_after == 0:
            worker.write_states()
    worker.write_states()
    return outgoing, store


def test_states_that_are_written_seldom_decide_the_same() -> None:
    (often, each_time), (seldom, at_the_end) = decided(1), decided(1_000)
    assert often
    assert often == seldom
    assert each_time.get_bytes("job") == at_the_end.get_bytes("job")
    assert (each_time.written, at_the_end.written) == (len(looked_after()), 1)


BAD = (
    looked_after()[0]._replace(value=b"garbage"),
    looked_after()[0]._replace(value=None),
    looked_after()[0]._replace(key=b"local/8"),
    *trained(replace(OPTED_IN, log_based_timeout_threshold_trainingloop=2**63 - 1)),
)
"""What can't be read, decided or written."""


@settings(max_examples=40, deadline=None)
@given(histories, st.lists(st.tuples(st.integers(0, 30), st.sampled_from(BAD)), max_size=3), st.integers(1, 12))
def test_in_batches_the_same_is_decided_as_one_by_one(
    history: list[tuple[object, ...]], bad: list[tuple[int, Incoming]], size: int
) -> None:
    records = facts(told(history))
    for at, record in bad:
        records.insert(at, record)
    records = [record._replace(offset=number) for number, record in enumerate(records)]
    (one, alone), (many, batched) = ((Worker(CODEC, POLICIES, "0"), defaultdict[bytes, Store](Store)) for _ in range(2))
    expected = [one.handle(record, alone[record.key]) for record in records]
    found: list[list[Outgoing]] = []
    for low in range(0, len(records), size):
        found += many.handle_all(records[low : low + size], lambda record: batched[record.key])
        many.write_states()
    one.write_states()
    assert found == expected
    assert {key: store.held for key, store in batched.items()} == {key: store.held for key, store in alone.items()}


def test_what_must_stop_the_worker_stops_it_after_what_came_before() -> None:
    first, *rest = looked_after()
    worker, store = Worker(CODEC, {}, "0"), Store()
    handled = worker.handle_all([first._replace(value=b"garbage"), first, *rest], lambda _: store)
    assert PARKED in [out.topic for out in next(handled)]
    with pytest.raises(MissingPolicy):
        next(handled)


def test_nothing_is_written_twice() -> None:
    worker, store = Worker(CODEC, POLICIES, "0"), CountingStore()
    worker.handle(looked_after()[0], store)
    worker.write_states()
    worker.write_states()
    assert store.written == 1


def test_a_key_that_lies_in_two_partitions_has_a_state_in_each() -> None:
    worker, stores = Worker(CODEC, POLICIES, "0"), (CountingStore(), CountingStore())
    for partition, store in enumerate(stores):
        worker.handle(looked_after()[0]._replace(partition=partition), store)
    worker.write_states()
    assert [store.written for store in stores] == [1, 1]


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ([looked_after()[0]._replace(value=b"x" * (MOST_BYTES + 1))], "more than the 262144 that a record may have"),
        (trained(replace(OPTED_IN, log_based_timeout_threshold_trainingloop=2**63 - 1)), "OverflowError"),
    ],
    ids=["more than Kafka takes of us", "more than a record of ours can hold"],
)
def test_a_fact_of_which_nothing_can_be_written_is_parked(told: list[Incoming], said: str) -> None:
    worker, store = Worker(CODEC, POLICIES, "0"), Store()
    written = [out for fact in told for out in worker.handle(fact, store)]
    worker.write_states()
    parked = [CODEC.decode(out.value or b"", out.headers) for out in written if out.topic is PARKED]
    assert parked
    assert said in parked[0].reason
    assert all(len(out.value or b"") < MOST_BYTES for out in written)


def test_a_worker_that_is_behind_commits_later() -> None:
    assert is_due(open_s=COMMIT_SOON_S, age_ms=BEHIND_MS - 1)
    assert not is_due(open_s=COMMIT_SOON_S / 2, age_ms=0)
    assert not is_due(open_s=COMMIT_SOON_S, age_ms=BEHIND_MS)
