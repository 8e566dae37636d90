"""The relay as a process on a real Kafka: what it carries, when timers fire, and that no kill loses anything."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from confluent_kafka import Consumer, Message, TopicPartition

from infra.local.stack import Stack
from recovery.process import EXIT_FENCED
from schemas.bookkeeping import RecordParked
from schemas.codec import FINGERPRINT
from schemas.decisions import RequestMade, TimerSet, timer_key
from schemas.facts import ActionIntended, TimerFired
from schemas.identity import AttemptId, Position, derived_id
from schemas.topics import ACTIONS, DECISION_LOG, JOURNAL, PARKED, REQUESTS, TIMERS, action_route
from schemas.vocabulary import FaultClass, Operation, TimerPurpose
from streams.run.relay_loop import GROUP
from tests.run.parts import Follower, Process, Room, until

pytestmark = pytest.mark.stack


@pytest.fixture(scope="module")
def relay(room: Room) -> Iterator[Process]:
    """The one relay of this module, running at the start of each test."""
    one = room.process("relay")
    one.start()
    yield one
    if one.running.poll() is None:
        assert one.stop() == 0, one.tail()


def attempt(job: int) -> AttemptId:
    return AttemptId("relaytest", str(job), 1_700_000_000, 0)


def intent(job: int, number: int = 0) -> ActionIntended:
    of = attempt(job)
    action = derived_id("action", of.key, number)
    nowhere = Position("unknown", 0, 0)
    operation = Operation.REQUEUE_HOLD
    return ActionIntended(f"{action}-i", "", of, nowhere, action, operation, 1, "scontrol requeuehold", (), 1)


def timer(job: int, due_ms: int, generation: int = 1) -> TimerSet:
    purpose = TimerPurpose.INCIDENT_QUIET
    return TimerSet(derived_id("set", job, generation), "cause", attempt(job), purpose, generation, due_ms)


def key_of(one: TimerSet) -> str:
    return timer_key(one.attempt, one.purpose)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def set_timers(room: Room, *timers: TimerSet) -> None:
    with room.transaction() as write:
        for one in timers:
            write(TIMERS, key_of(one), one)


def clear_timers(room: Room, *timers: TimerSet) -> None:
    with room.transaction() as write:
        for one in timers:
            write(TIMERS, key_of(one), None)


def test_what_the_controller_committed_becomes_a_fact_with_its_place(room: Room, relay: Process) -> None:  # noqa: ARG001
    aborted, kept = intent(1, 1), intent(1, 2)
    with room.following(JOURNAL) as journal:
        with room.transaction(commit=False) as write:
            write(*action_route(aborted), aborted)
        with room.transaction() as write:
            write(*action_route(kept), kept)
        journal.until(lambda seen: len(seen) > 0, "the copy of the intent")
        journal.for_s(0.3)
        [copied] = journal.events(ActionIntended)
        [message] = journal.seen
    [original] = [m for m in room.read(ACTIONS) if m.key() == action_route(kept)[1].encode()]
    assert copied == replace(kept, position=Position("topic:recovery.actions/0", 0, original.offset() or 0))
    assert message.key() == b"relaytest/1"
    assert dict(message.headers() or [])["ce_id"] == kept.event_id.encode()
    assert dict(message.headers() or [])["traceparent"] == dict(original.headers() or [])["traceparent"]
    assert FINGERPRINT in dict(message.headers() or [])


def test_a_request_is_copied_as_it_is_and_no_other_decision_is(room: Room, relay: Process) -> None:  # noqa: ARG001
    of = attempt(2)
    asked = RequestMade("ask-1", "c", of, 1, "incident", "train", ("n1",), FaultClass.NVLINK, None, None, 1, 5000)
    with room.following(REQUESTS) as requests:
        with room.transaction() as write:
            write(TIMERS, "unrelated", None)
            write(DECISION_LOG, of.job, asked)
        requests.until(lambda seen: len(seen) > 0, "the copy of the request")
        [copy] = requests.seen
    [original] = [m for m in room.read(DECISION_LOG) if m.key() == of.job.encode()]
    assert (copy.key(), copy.value(), copy.headers()) == (original.key(), original.value(), original.headers())


def test_timers_fire_when_due_again_until_answered_and_never_once_withdrawn(room: Room, relay: Process) -> None:
    start = now_ms() + 1500
    unanswered, withdrawn, answered, rearmed = (timer(job, start) for job in (10, 11, 12, 13))
    second = timer(13, start + 1200, generation=2)
    with room.following(JOURNAL) as journal:
        set_timers(room, unanswered, withdrawn, answered, rearmed)
        clear_timers(room, withdrawn)
        journal.until(lambda seen: len(seen) >= 3, "three firings")
        with room.transaction() as write:
            write(TIMERS, key_of(answered), None)
            write(TIMERS, key_of(second), second)
        journal.until(lambda _: len(journal.events(TimerFired)) >= 5, "the re-armed one, and the unanswered one again")
        fired = journal.events(TimerFired)
        clear_timers(room, unanswered, second)
    times = {job: [f for f in fired if f.attempt == attempt(job)] for job in (10, 11, 12, 13)}
    assert [len(times[job]) for job in (11, 12)] == [0, 1]
    assert [f.generation for f in times[13]] == [1, 2]
    assert [f.fired_ms >= f.due_ms for f in fired] == [True] * len(fired)
    first, again = times[10][:2]
    assert first.fired_ms - start < 500, "a loaded machine is slow, but not this slow"
    assert again.fired_ms - first.fired_ms >= 2000
    assert first.event_id == again.event_id == derived_id("fired", unanswered.event_id)
    assert first.position == Position(f"relay:{key_of(unanswered)}", 0, 1)
    assert "recovery_timers_fired_total 5" in relay.metrics()


def test_overdue_timers_fire_only_after_all_that_follows_them_was_read(room: Room, relay: Process) -> None:
    relay.kill()
    overdue = [timer(job, now_ms() - 60_000) for job in range(100, 1100)]
    set_timers(room, *overdue)
    clear_timers(room, *overdue[:-1])
    with room.following(JOURNAL) as journal:
        relay.start()
        journal.until(lambda seen: len(seen) > 0, "the one timer that is left")
        journal.for_s(0.5)
        assert {f.attempt for f in journal.events(TimerFired)} == {overdue[-1].attempt}
    clear_timers(room, overdue[-1])


def test_what_commits_after_the_relay_was_killed_is_carried_by_the_next(room: Room, relay: Process) -> None:
    relay.kill()
    one = intent(15)
    with room.following(JOURNAL) as journal:
        with room.transaction() as write:
            write(*action_route(one), one)
        relay.start()
        journal.until(lambda _: one.event_id in ids(journal), "the action")


def ids(journal: Follower) -> set[str]:
    return {one.event_id for one in journal.events(ActionIntended)}


def test_no_action_is_lost_and_each_has_its_place_while_the_relay_is_killed(room: Room, relay: Process) -> None:
    count = 200
    actions = [intent(20, number) for number in range(count)]

    def act() -> None:
        for number in range(0, count, 10):
            with room.transaction("acting") as write:
                for one in actions[number : number + 10]:
                    write(*action_route(one), one)

    with room.following(JOURNAL) as journal:
        acting = threading.Thread(target=act)
        acting.start()
        for enough in (20, 80):
            journal.until(lambda seen, enough=enough: len(seen) >= enough, "some copies")  # type: ignore[misc]
            relay.kill()
            relay.start(ready=False)
        acting.join(30)
        journal.until(lambda _: len(set(journal.events(ActionIntended))) == count, "a copy of each")
        copies = journal.events(ActionIntended)
    relay.wait_ready()
    assert {one.event_id for one in copies} == {one.event_id for one in actions}
    assert len({one.position for one in copies}) == count, "a repetition has the same position"
    first_seen = list(dict.fromkeys(one.position.offset for one in copies))
    assert first_seen == sorted(first_seen)


def test_what_is_no_action_is_parked_and_the_rest_go_on(room: Room, relay: Process) -> None:  # noqa: ARG001
    after = intent(30)
    with room.following(JOURNAL) as journal:
        room.write_raw(ACTIONS, b"nonsense", b"garbage", None)
        with room.transaction() as write:
            write(*action_route(after), after)
        journal.until(lambda seen: len(seen) > 0, "the action after the garbage")
        assert [one.event_id for one in journal.events(ActionIntended)] == [after.event_id]
    parked = [room.codec.decode(m.value() or b"", m.headers()) for m in room.read(PARKED)]
    ours = [one for one in parked if isinstance(one, RecordParked) and one.topic == ACTIONS.name]
    assert [(one.key, one.value) for one in ours] == [(b"nonsense", b"garbage")]


def test_a_second_relay_shares_the_timers(room: Room, relay: Process) -> None:  # noqa: ARG001
    second = room.process("relay")
    second.start()
    assert "partitions assigned" in second.events()
    many = [timer(job, now_ms() + 300) for job in range(2000, 2040)]
    with room.following(JOURNAL) as journal:
        set_timers(room, *many)

        def all_fired(_: list[Message]) -> bool:
            return {f.attempt for f in journal.events(TimerFired)} == {one.attempt for one in many}

        journal.until(all_fired, "every timer, whoever has its partition")
    clear_timers(room, *many)
    assert "recovery_timers_fired_total 0.0" not in second.metrics()
    assert second.stop() == 0, second.tail()


def test_a_broker_restart_is_waited_for_or_the_next_relay_goes_on(room: Room, relay: Process, own_kafka: Stack) -> None:
    kafka = own_kafka.parts["kafka"]
    one = intent(40)
    with room.following(JOURNAL) as journal:
        kafka.stop()
        kafka.start(print)
        with room.transaction() as write:
            write(*action_route(one), one)

        def carried(_: list[Message]) -> bool:
            # Kept away for a whole session, its client may be fenced by its own rejoining: it ends to be started again.
            if (code := relay.running.poll()) is not None:
                assert code == EXIT_FENCED, relay.tail()
                relay.start(ready=False)
            return bool(journal.events(ActionIntended))

        journal.until(carried, "the action after the restart", 60)
    if relay.running.poll() is None:
        relay.kill()  # its session may still time out and fence it: not in the middle of the next test
    relay.start()


def test_an_idle_relay_never_commits_beyond_the_end(room: Room, relay: Process) -> None:
    with room.following(JOURNAL) as journal:
        with room.transaction() as write:
            write(*action_route(intent(50)), intent(50))
        journal.until(lambda _: bool(journal.events(ActionIntended)), "the copy")
    places = [(topic, partition) for topic in (ACTIONS, DECISION_LOG, TIMERS) for partition in range(topic.partitions)]
    wanted = [TopicPartition(topic.name, partition) for topic, partition in places]
    source = Consumer({"bootstrap.servers": room.bootstrap, "group.id": GROUP})  # looks at the group, never joins
    ends = {(t.name, p): source.get_watermark_offsets(TopicPartition(t.name, p), timeout=10)[1] for t, p in places}

    def committed() -> dict[tuple[str, int], int]:
        return {(place.topic, place.partition): place.offset for place in source.committed(wanted, timeout=10)}

    until(lambda: True if committed() == ends else None, "exactly the ends committed")
    time.sleep(1)  # ends of partitions are told again and again
    assert committed() == ends
    source.close()
    # What is written next lies at the end: a relay that starts from a place beyond it would never copy it.
    assert relay.stop() == 0
    with room.following(JOURNAL) as journal:
        with room.transaction() as write:
            write(*action_route(intent(51)), intent(51))
        relay.start()
        journal.until(lambda _: bool(journal.events(ActionIntended)), "the copy by the next relay")
        assert [one.event_id for one in journal.events(ActionIntended)] == [intent(51).event_id]


def test_it_stops_cleanly_and_fast_when_asked(room: Room, relay: Process) -> None:  # noqa: ARG001
    before = time.monotonic()
    assert relay.stop() == 0, relay.tail()
    assert time.monotonic() - before < 5
    assert relay.events()[-2:] == ["stopping", "stopped"]
