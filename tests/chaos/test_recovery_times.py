"""How long the world waits for a decider that was killed, with much in its memory and a transaction open."""

from __future__ import annotations

import itertools
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
from confluent_kafka import Message, Producer
from confluent_kafka.admin import AdminClient

from schemas.codec import Codec
from schemas.decisions import AttemptMoved, AttemptOpened, TimerSet
from schemas.topics import DECISION_LOG, JOURNAL, TIMERS
from schemas.vocabulary import AttemptState, TimerPurpose
from streams.kafka import TopicView, decode, producer, reader, stable_ends
from streams.run.slots import ATTEMPT_CREW, GROUP
from tests.chaos.looks import CLUSTER, partition, write
from tests.chaos.world import World, world

pytestmark = [pytest.mark.stack, pytest.mark.chaos]

LIVE = 10_000
PATIENCE_S = 120.0
BURST = 300
OTHERS_WAIT_S = 10.0
BACK_WITHIN_S = 15.0
PROBES = itertools.count(1_000_000)
LOAD = itertools.count(7_000_000_000)
LOAD_KEY = f"{CLUSTER}/70000".encode()


@pytest.fixture(scope="module")
def deciders() -> Iterator[World]:
    """Two deciders alone, kept alive by their supervisor."""
    with world(print, parts=("kafka", "registry"), processes=("decide-0", "decide-1")) as here:
        yield here


@dataclass
class Seen:
    """Follows what deciders commit."""

    codec: Codec
    view: TopicView | None = None
    opened: set[str] = field(default_factory=set)
    moved: set[tuple[str, AttemptState]] = field(default_factory=set)
    timers: set[str] = field(default_factory=set)

    def take(self, message: Message) -> None:
        if message.value() is None or (message.key() or b"").startswith(LOAD_KEY):
            return
        event = decode(self.codec, message)
        if isinstance(event, AttemptOpened):
            self.opened.add(event.attempt.job_id)
        elif isinstance(event, AttemptMoved):
            self.moved.add((event.attempt.job_id, event.after))
        elif isinstance(event, TimerSet) and event.purpose is TimerPurpose.CRASH_FALLBACK:
            self.timers.add(event.attempt.job_id)

    def until(self, condition: Callable[[], bool], what: str) -> float:
        """Follow until it holds; returns the seconds that took."""
        began = time.monotonic()
        assert self.view is not None
        while not condition():
            self.view.poll(0.02)
            assert time.monotonic() - began < PATIENCE_S, f"not within {PATIENCE_S:g} s: {what}"
        return time.monotonic() - began


@contextmanager
def following(here: World) -> Iterator[Seen]:
    source = reader(here.settings.kafka.bootstrap, "chaos-follow")
    seen = Seen(here.codec)
    seen.view = TopicView(source, (DECISION_LOG, TIMERS), seen.take)
    seen.view.read_to_stable_end()
    try:
        yield seen
    finally:
        source.close()


def partitions_of(here: World, slot: int) -> set[int]:
    """The journal partitions that a slot's worker has. Kafka stays up here, so its groups may be described."""
    admin = AdminClient({"bootstrap.servers": here.settings.kafka.bootstrap})
    group = admin.describe_consumer_groups([GROUP])[GROUP].result(20)
    for member in group.members:
        if member.group_instance_id == ATTEMPT_CREW.instance_id(slot):
            return {p.partition for p in member.assignment.topic_partitions if p.topic == JOURNAL.name}
    raise LookupError(f"slot {slot} is in no group")


def probe(numbers: Iterator[int], where: set[int]) -> int:
    """A job that nobody has heard of, in one of these partitions."""
    return next(number for number in numbers if partition(number) in where)


def open_transaction(here: World, where: set[int]) -> bool:
    """Whether somebody's transaction is open on the decisions of these partitions."""
    ends = []
    for committed in (True, False):
        source = reader(here.settings.kafka.bootstrap, "chaos-ends", committed=committed)
        ends.append(stable_ends(source, DECISION_LOG))
        source.close()
    return any(ends[1].get(p, 0) > ends[0].get(p, 0) for p in where)


def kill_in_a_transaction(here: World, to: Producer, mine: set[int]) -> None:
    """Stop decide-0 under load until it has a transaction open, and kill it so."""
    for _ in range(40):
        for _ in range(BURST):
            write(to, here.codec, probe(LOAD, mine), AttemptState.FAILED)
        pid = here.stop("decide-0")
        assert pid is not None
        if open_transaction(here, mine):
            here.kill("decide-0")
            return
        here.resume(pid)
    pytest.fail("no transaction of decide-0 was ever open when it was stopped")


def test_a_decider_killed_with_a_transaction_open_delays_no_other_job_by_more_than_10_s(deciders: World) -> None:
    mine, others = partitions_of(deciders, 0), partitions_of(deciders, 1)
    assert mine
    assert others
    to = producer(deciders.settings.kafka.bootstrap, "chaos-load")
    with following(deciders) as seen:
        kill_in_a_transaction(deciders, to, mine)
        probes = [probe(PROBES, {p}) for p in sorted(others) for _ in range(10)]
        killed = time.monotonic()
        for job in probes:
            write(to, deciders.codec, job, AttemptState.FAILED)
        to.flush(10)
        wanted = {str(job) for job in probes}
        decided = seen.until(lambda: wanted <= seen.opened, "others' decisions")
        # Timers are keyed apart from journal partitions, so the dead worker's open transaction is in their way, too.
        seen.until(lambda: wanted <= seen.timers, "others' timers")
        timers = time.monotonic() - killed
        print(f"others' decisions after {decided:.2f} s, their timers after {timers:.2f} s")
        assert timers <= OTHERS_WAIT_S


@pytest.mark.parametrize("state_lost", [False, True], ids=["state on disk", "state from the changelog"])
def test_a_killed_decider_with_10000_live_attempts_decides_again_within_15_s(
    deciders: World, *, state_lost: bool
) -> None:
    to = producer(deciders.settings.kafka.bootstrap, "chaos-load")
    with following(deciders) as seen:
        for job in range(1, LIVE + 1):
            if str(job) not in seen.opened:
                write(to, deciders.codec, job, AttemptState.RUNNING)
        to.flush(30)
        live = {str(job) for job in range(1, LIVE + 1)}
        seen.until(lambda: live <= seen.opened, "10,000 attempts opened")
        mine = partitions_of(deciders, 0)
        known = [next(n for n in itertools.count(5_000 if state_lost else 1) if partition(n) == p) for p in mine]
        if state_lost:
            shutil.rmtree(deciders.data / "state" / "decide-0", ignore_errors=True)
        deciders.kill("decide-0")
        for job in known:
            write(to, deciders.codec, job, AttemptState.COMPLETED)
        to.flush(10)
        took = seen.until(lambda: all((str(j), AttemptState.COMPLETED) in seen.moved for j in known), "the new facts")
        print(f"decided again after {took:.2f} s")
        assert took <= BACK_WITHIN_S
