"""A worker's states are written once a commit, and what is decided does not depend on how often that is."""

from __future__ import annotations

from dataclasses import replace

from schemas.topics import JOURNAL
from streams.records import Incoming, Outgoing
from streams.run.quix import BEHIND_MS, COMMIT_SOON_S, is_due
from streams.run.worker import Worker
from tests.decide.story import Story
from tests.replay.memory import CODEC, Store

POLICIES = {Story().policy.digest(): Story().policy}


class CountingStore(Store):
    """Counts how often a state was written."""

    written = 0

    def set_bytes(self, key: str, value: bytes) -> None:
        self.written += 1
        super().set_bytes(key, value)


def facts() -> list[Incoming]:
    """A job that fails and is looked after."""
    story = Story()
    story.run_and_fail()
    story.wait(60)
    return [
        Incoming(JOURNAL.name, 0, number, b"local/7", CODEC.encode_value(fact), [], recorded_ms)
        for number, (fact, recorded_ms) in enumerate(story.facts)
    ]


def decided(commit_after: int) -> tuple[list[Outgoing], CountingStore]:
    """What comes of it with a commit after every so many facts."""
    worker, store = Worker(CODEC, POLICIES, "0"), CountingStore()
    outgoing: list[Outgoing] = []
    for number, fact in enumerate(facts(), start=1):
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
    assert (each_time.written, at_the_end.written) == (len(facts()), 1)


def test_nothing_is_written_twice() -> None:
    worker, store = Worker(CODEC, POLICIES, "0"), CountingStore()
    worker.handle(facts()[0], store)
    worker.write_states()
    worker.write_states()
    assert store.written == 1


def test_a_key_that_lies_in_two_partitions_has_a_state_in_each() -> None:
    worker, stores = Worker(CODEC, POLICIES, "0"), (CountingStore(), CountingStore())
    for partition, store in enumerate(stores):
        worker.handle(replace(facts()[0], partition=partition), store)
    worker.write_states()
    assert [store.written for store in stores] == [1, 1]


def test_a_worker_that_is_behind_commits_later() -> None:
    assert is_due(open_s=COMMIT_SOON_S, age_ms=BEHIND_MS - 1)
    assert not is_due(open_s=COMMIT_SOON_S / 2, age_ms=0)
    assert not is_due(open_s=COMMIT_SOON_S, age_ms=BEHIND_MS)
