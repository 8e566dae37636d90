"""The decider as a process on a real Kafka: what it writes is what deciding in memory gives, once, through any kill."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

import pytest

from schemas.bookkeeping import RecordParked
from schemas.decisions import AdviceIssued, AdviceWithheld, FactParked, JobView
from schemas.facts import Fact, JobObserved, QuarantineLifted, TimerFired
from schemas.policy import DEFAULT_POLICY
from schemas.topics import ADVICE, DECISION_LOG, JOBS, JOURNAL, PARKED, TIMERS, partition_of
from schemas.vocabulary import AttemptState
from streams.kafka import place, recorded_ms
from streams.records import Incoming
from streams.run.worker import Worker
from tests.decide.story import Story
from tests.replay.memory import Store
from tests.run.parts import Process, Room, until

pytestmark = pytest.mark.stack

COMPARED = (DECISION_LOG, JOBS, ADVICE, TIMERS)
DECADES_MS = 2_000_000_000_000
Written = dict[tuple[str, bytes], list[bytes | None]]


@pytest.fixture(scope="module")
def decider(room: Room) -> Iterator[Process]:
    """The one decider of this module, in slot 0."""
    one = room.process("decide", "--slot", "0")
    one.start()
    yield one
    if one.running.poll() is None:
        assert one.stop() == 0, one.tail()


def told(cluster: str, job_id: str) -> list[Fact]:
    """A job runs, makes progress, fails by a GPU fault, is restarted without that node, and runs on."""
    story = Story()
    story.observe(AttemptState.RUNNING)
    for step in range(1, 8):
        story.progress(step * 10)
    story.checkpoint(70)
    story.run_and_fail()
    story.wait(60)
    story.held_then_running(1)
    story.progress(80, 1)
    story.progress(90, 1)
    story.progress(100, 1)
    return [renamed(fact, cluster, job_id) for fact, _ in story.facts]


def renamed(fact: Fact, cluster: str, job_id: str) -> Fact:
    if isinstance(fact, JobObserved | QuarantineLifted):
        return replace(fact, cluster=cluster, job_id=job_id)
    fact = replace(fact, attempt=replace(fact.attempt, cluster=cluster, job_id=job_id))
    # The story's clock is not the broker's: a timer of it was set for a time that the broker has long passed.
    return replace(fact, due_ms=fact.due_ms + DECADES_MS) if isinstance(fact, TimerFired) else fact


def in_memory(room: Room, cluster: str) -> Written:
    """What deciding gives for the journal as it is, by topic and key, for the jobs of one cluster."""
    worker = Worker(room.codec, {DEFAULT_POLICY.digest(): DEFAULT_POLICY}, "memory")
    stores: dict[bytes, Store] = defaultdict(Store)
    written: Written = defaultdict(list)
    for message in room.read(JOURNAL):
        key = message.key() or b""
        if not key.startswith(f"{cluster}/".encode()):
            continue
        headers = [(name, value or b"") for name, value in message.headers() or []]
        record = Incoming(*place(message), key, message.value(), headers, recorded_ms(message))
        for out in worker.handle(record, stores[key]):
            if out.topic in COMPARED:
                written[out.topic.name, out.key].append(out.value)
        worker.write_states()
    return dict(written)


def on_kafka(room: Room, cluster: str) -> Written:
    """What the decider wrote for the jobs of one cluster, read committed."""
    written: Written = defaultdict(list)
    for topic in COMPARED:
        for message in room.read(topic):
            key = message.key() or b""
            if key.startswith(f"{cluster}/".encode()):
                written[topic.name, key].append(message.value())
    return dict(written)


def decided_as_in_memory(room: Room, decider: Process, cluster: str, deadline_s: float = 40.0) -> Written:
    """Wait until the decider has written as much as deciding in memory gives; assert that it is the same."""
    expected = in_memory(room, cluster)
    assert expected

    def all_of_it() -> Written | None:
        """A transaction becomes visible partition by partition, so no one topic tells when all is there."""
        assert decider.running.poll() is None, decider.tail()
        written = on_kafka(room, cluster)
        return written if _count(written) >= _count(expected) else None

    found = until(all_of_it, f"{_count(expected)} records of {cluster}", deadline_s)
    assert found.keys() == expected.keys()
    for where, values in expected.items():
        assert found[where] == values, where
    return found


def _count(written: Written) -> int:
    return sum(len(values) for values in written.values())


def test_what_it_writes_is_byte_for_byte_what_deciding_in_memory_gives(room: Room, decider: Process) -> None:
    room.write(*told("same", "7"))
    written = decided_as_in_memory(room, decider, "same")
    assert {topic for topic, _ in written} == {topic.name for topic in COMPARED}
    assert any(isinstance(one, AdviceIssued) for one in room.events(DECISION_LOG, "same/7"))


def test_through_kill_9_each_fact_is_decided_once_and_no_state_is_lost(room: Room, decider: Process) -> None:
    jobs = [told("killed", str(number)) for number in range(100)]
    assert len(jobs[0]) == 20
    interleaved = [job[i] for i in range(19) for job in jobs]
    with room.following(DECISION_LOG) as decisions:
        for i, chunk in enumerate(interleaved[n : n + 500] for n in range(0, 1900, 500)):
            room.write(*chunk)
            if i in (0, 2):
                some = len(decisions.seen) + 20
                decisions.until(lambda seen, some=some: len(seen) >= some, "some decisions")  # type: ignore[misc]
                decider.kill()
                decider.start(ready=False)
    decided_as_in_memory(room, decider, "killed", 60)
    room.write(*(job[19] for job in jobs))  # the state that came back is the right one: this is decided on it
    decided_as_in_memory(room, decider, "killed")
    decider.wait_ready()


def test_workers_that_come_and_go_under_load_hand_states_over(room: Room, decider: Process) -> None:
    jobs = [told("shared", str(number)) for number in range(300)]
    interleaved = [job[i] for i in range(20) for job in jobs]
    chunks = iter([interleaved[n : n + 15] for n in range(0, len(interleaved), 15)])
    second = room.process("decide", "--slot", "1")
    second.start(ready=False)

    def shared() -> bool | None:
        room.write(*next(chunks))
        return second.takes_part()

    until(shared, "a second worker decides, too")
    for chunk in islice(chunks, 40):
        room.write(*chunk)
    second.running.terminate()
    for chunk in chunks:
        room.write(*chunk)
    assert second.running.wait(30) == 0, second.tail()
    decided_as_in_memory(room, decider, "shared", 60)


def test_garbage_is_parked_its_job_quarantined_and_others_go_on(room: Room, decider: Process) -> None:
    first, *rest = told("parked", "1")
    room.write(first)
    room.write_raw(JOURNAL, b"parked/1", b"garbage")
    room.write(*rest, *told("parked", "2"))
    decided_as_in_memory(room, decider, "parked")
    [parked] = [one for one in room.events(DECISION_LOG, "parked/1") if isinstance(one, FactParked)]
    [record] = room.events(PARKED, f"recovery.journal/{parked.partition}/{parked.offset}")
    assert isinstance(record, RecordParked)
    assert (record.key, record.value, record.reason) == (b"parked/1", b"garbage", parked.reason)
    assert not any(isinstance(one, AdviceIssued) for one in room.events(DECISION_LOG, "parked/1"))
    assert any(isinstance(one, AdviceWithheld) for one in room.events(DECISION_LOG, "parked/1"))
    assert any(isinstance(one, AdviceIssued) for one in room.events(DECISION_LOG, "parked/2"))
    views = [one for one in room.events(JOBS, "parked/1") if isinstance(one, JobView)]
    assert views[-1].quarantined


def test_a_record_as_large_as_kafka_takes_stops_nobody(room: Room, decider: Process) -> None:
    room.write_raw(JOURNAL, b"large/1", b"x" * 999_900)
    room.write(*told("large", "2"))
    decided_as_in_memory(room, decider, "large")
    [parked] = [one for one in room.events(DECISION_LOG, "large/1") if isinstance(one, FactParked)]
    [record] = room.events(PARKED, f"recovery.journal/{parked.partition}/{parked.offset}")
    assert isinstance(record, RecordParked)
    assert (record.key, record.value, record.reason) == (b"large/1", b"", parked.reason)
    assert "999900 bytes are more than" in parked.reason


def test_a_key_as_large_as_kafka_takes_stops_nobody(room: Room, decider: Process) -> None:
    key = b"large/" + b"3" * 900_000
    room.write_raw(JOURNAL, key, b"garbage")
    room.write(*told("key", "4"))
    decided_as_in_memory(room, decider, "key")
    [parked] = [one for one in room.events(DECISION_LOG, key.decode()) if isinstance(one, FactParked)]
    [record] = room.events(PARKED, f"recovery.journal/{parked.partition}/{parked.offset}")
    assert isinstance(record, RecordParked)
    assert (record.key, record.reason) == (key, parked.reason)


def test_a_record_without_a_key_is_parked(room: Room, decider: Process) -> None:
    fact = told("keyless", "3")[0]
    before = len(room.read(PARKED))
    room.write_raw(JOURNAL, None, room.encode(fact, "").value)
    room.write(*told("keyless", "4"))
    decided_as_in_memory(room, decider, "keyless")
    with room.following(PARKED, whole=True) as parked:
        parked.until(lambda seen: len(seen) > before, "the record without a key")
        last = parked.events(RecordParked)[-1]
    assert (last.key, "is not its job" in last.reason) == (b"", True)


def test_its_records_and_ours_lie_where_the_one_partitioner_puts_their_keys(room: Room, decider: Process) -> None:
    jobs = [f"{number}_{number}" for number in range(40)]
    room.write(*(told("spread", job)[0] for job in jobs))
    decided_as_in_memory(room, decider, "spread")
    for topic in (JOURNAL, DECISION_LOG, JOBS):  # written with confluent-kafka; the others with Quix
        places = {m.key() or b"": m.partition() for m in room.read(topic) if (m.key() or b"").startswith(b"spread/")}
        assert len(places) == len(jobs)
        assert places == {key: partition_of(key, topic.partitions) for key in places}


def test_a_second_worker_in_a_slot_is_refused_on_this_machine(room: Room, decider: Process) -> None:
    second = room.process("decide", "--slot", "0")
    second.start(ready=False)
    assert second.running.wait(30) == 2
    assert f"slot 0 is in use by pid {decider.running.pid}" in second.tail()


def test_a_worker_whose_slot_was_taken_elsewhere_exits_to_be_started_again(room: Room, decider: Process) -> None:
    elsewhere = room.process("decide", "--slot", "0", data="elsewhere")
    elsewhere.start()
    room.write(*told("fenced", "5"))
    decided_as_in_memory(room, elsewhere, "fenced")
    assert decider.running.wait(30) == 75, decider.tail()
    assert elsewhere.stop() == 0
    decider.start()


def test_a_flood_of_garbage_stops_the_worker_which_says_so(room: Room, decider: Process) -> None:
    room.write_raw(JOURNAL, b"flood/1", *[b"garbage"] * 150)
    assert decider.running.wait(30) == 70, decider.tail()
    assert "records can't be handled" in decider.tail()
    assert "see `recovery parked list`" in decider.tail()
    parked = [room.codec.decode(message.value() or b"", message.headers()) for message in room.read(PARKED)]
    assert len([one for one in parked if isinstance(one, RecordParked) and one.key == b"flood/1"]) >= 100
