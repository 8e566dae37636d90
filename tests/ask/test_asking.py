"""The asking process: real Faust on a real Kafka, against a small provider that answers as each test says."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest

from infra.local.endpoints import Endpoints
from recovery.topics import create_topics
from schemas.bookkeeping import RecordParked
from schemas.codec import Codec
from schemas.decisions import OutputAsked, RequestMade
from schemas.facts import AttributionAnswered
from schemas.identity import AttemptId, Position, derived_id
from schemas.registry import RegistryIds
from schemas.topics import JOURNAL, PARKED, REQUESTS, partition_of
from schemas.vocabulary import FaultClass, Scope
from streams.kafka import producer, send
from tests.ask.provider import Provider, body, naming, provider
from tests.run.parts import Follower, Process, Room

pytestmark = pytest.mark.stack


@dataclass
class Scene:
    """The asker, its provider, and the journal from this test's beginning."""

    room: Room
    ask: Process
    provider: Provider
    journal: Follower
    cluster: str

    def request(self, *jobs: int, deadline_ms: int = 5000, age_ms: int = 0) -> list[RequestMade]:
        """Write requests, as the relay copies them."""
        made = []
        to = producer(self.room.bootstrap, "test")
        for job in jobs:
            of = AttemptId(self.cluster, str(job), 1_700_000_000, 0)
            decided_ms = time.time_ns() // 1_000_000 - age_ms
            request = RequestMade(
                derived_id("request", of.key, uuid4().hex),
                "c",
                of,
                decided_ms,
                f"incident-{job}",
                "nightly",
                ("node1", "node2"),
                FaultClass.NCCL_TIMEOUT,
                decided_ms - 60_000,
                None,
                decided_ms - 1000,
                deadline_ms,
            )
            send(to, REQUESTS, of.job, self.room.encode(request, of.key))
            made.append(request)
        assert to.flush(20) == 0
        return made

    def answers(self, requests: list[RequestMade], deadline_s: float = 40.0) -> list[AttributionAnswered]:
        """The answers to these requests, in the order of the journal, once each has one."""
        wanted = {request.event_id for request in requests}

        def found() -> list[AttributionAnswered]:
            return [one for one in self.journal.events(AttributionAnswered) if one.cause in wanted]

        self.journal.until(lambda _: {one.cause for one in found()} == wanted, "an answer to each", deadline_s)
        return found()


@pytest.fixture(scope="module")
def room(stack: Endpoints, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    create_topics(stack.kafka)
    one = Room(stack.kafka, stack.registry, tmp_path_factory.mktemp("ask"), Codec(RegistryIds(stack.registry)))
    try:
        yield one
    finally:
        one.close()


@pytest.fixture(scope="module")
def asker(room: Room) -> Iterator[tuple[Process, Provider]]:
    with provider(lambda _: (200, body())) as one:
        ask = room.process("ask", RECOVERY_ASK__ATTRIBUTION_URL=one.url, RECOVERY_ASK__TIMEOUT_S="20")
        ask.start()
        yield ask, one
        if ask.running.poll() is None:
            assert ask.stop() == 0, ask.tail()


@pytest.fixture
def scene(room: Room, asker: tuple[Process, Provider]) -> Iterator[Scene]:
    ask, one = asker
    if ask.running.poll() is not None:
        ask.start()  # the test before this one failed, or stopped it
    one.asked.clear()
    with room.following(JOURNAL) as journal:
        yield Scene(room, ask, one, journal, f"ask-{uuid4().hex[:8]}")


def test_an_answer_becomes_a_fact_of_its_request(scene: Scene) -> None:
    scene.provider.answer = lambda _: (200, body(naming("node2")))
    [request] = scene.request(1)
    [answer] = scene.answers([request])
    assert answer.event_id == derived_id("answered", request.event_id)
    assert (answer.fault_class, answer.scope, answer.nodes, answer.error) == (
        FaultClass.NVLINK,
        Scope.NODE,
        ("node2",),
        None,
    )
    assert (answer.attempt, answer.incident_id) == (request.attempt, request.incident_id)
    assert answer.provider == scene.provider.url.removeprefix("http://")
    [record] = [m for m in scene.room.read(REQUESTS) if m.key() == request.attempt.job.encode()]
    assert answer.position == Position(f"topic:recovery.requests/{record.partition()}", 0, record.offset() or 0)
    [asked] = scene.provider.asked
    assert asked.body["workload_id"] == request.attempt.heimdall_job_id
    assert asked.headers["traceparent"] == dict(record.headers() or [])["traceparent"].decode()


def test_silence_ends_at_the_deadline_and_holds_nobody_else_up(scene: Scene) -> None:
    def answer(question: dict[str, Any]) -> tuple[int, bytes]:
        if question["timeout_ms"] == 3000:
            time.sleep(6)
        return 200, body(naming("node1"))

    scene.provider.answer = answer
    slow = scene.request(*range(10), deadline_ms=3000)
    quick = scene.request(*range(100, 140))
    answers = scene.answers(slow + quick)
    by_cause = {one.cause: one for one in answers}
    assert {by_cause[one.event_id].error for one in slow} == {"timeout: no answer within 3 s"}
    assert {by_cause[one.event_id].error for one in quick} == {None}
    last_quick = max(by_cause[one.event_id].answered_ms for one in quick)
    assert last_quick < min(by_cause[one.event_id].answered_ms for one in slow)
    places = {m.key() or b"": m.partition() for m in scene.journal.seen}
    assert places == {key: partition_of(key, JOURNAL.partitions) for key in places}, "Faust has the one partitioner"


@pytest.mark.parametrize(
    ("status", "text", "error"),
    [
        (500, b"out of order", "refused: 500 out of order"),
        (422, b"{}", "refused: 422"),
        (200, b"<html>", "malformed answer: not JSON"),
        (200, body(naming("node77")), "malformed answer: node 'node77' is none of the attempt's"),
        (200, b" " * 1_100_000, "malformed answer: longer than"),
    ],
)
def test_what_can_not_be_used_is_an_answer_with_an_error(scene: Scene, status: int, text: bytes, error: str) -> None:
    scene.provider.answer = lambda _: (status, text)
    [answer] = scene.answers(scene.request(2))
    assert (answer.error or "").startswith(error)
    assert (answer.fault_class, answer.nodes) == (None, ())


def test_a_request_that_waited_beyond_its_deadline_is_not_asked_any_more(scene: Scene) -> None:
    [answer] = scene.answers(scene.request(3, deadline_ms=1000, age_ms=5000))
    assert answer.error == "the deadline had passed before the question could be asked"
    assert scene.provider.asked == []


def test_what_is_no_request_is_parked_and_the_next_is_answered(scene: Scene) -> None:
    scene.provider.answer = lambda _: (200, body())
    key = f"{scene.cluster}/4"
    scene.room.write_raw(REQUESTS, key.encode(), b"garbage")
    [answer] = scene.answers(scene.request(4))
    assert (answer.error, answer.explanation) == (None, "The provider names no cause.")
    events = [scene.room.codec.decode(m.value() or b"", m.headers()) for m in scene.room.read(PARKED) if m.value()]
    assert [one.value for one in events if isinstance(one, RecordParked) and one.key == key.encode()] == [b"garbage"]


def test_a_question_for_watch_is_left_to_watch(scene: Scene) -> None:
    of = AttemptId(scene.cluster, "8", 1_700_000_000, 0)
    to = producer(scene.room.bootstrap, "test")
    asked = OutputAsked("o", "c", of, 1, ("/logs/8.out",), None, None, 60_000)
    send(to, REQUESTS, of.job, scene.room.encode(asked, of.key))
    assert to.flush(20) == 0
    scene.answers(scene.request(8))
    keys = {m.key() for m in scene.room.read(PARKED)}
    places = [m for m in scene.room.read(REQUESTS) if m.key() == of.job.encode()]
    assert not keys & {f"{m.topic()}/{m.partition()}/{m.offset()}".encode() for m in places}


def test_no_request_is_lost_through_kill_9(scene: Scene) -> None:
    def answer(_: dict[str, Any]) -> tuple[int, bytes]:
        time.sleep(0.3)
        return 200, body(naming("node1"))

    scene.provider.answer = answer
    requests = scene.request(*range(300), deadline_ms=60_000)
    for enough in (40, 120):
        scene.journal.until(lambda seen, enough=enough: len(seen) >= enough, "some answers")  # type: ignore[misc]
        scene.ask.kill()
        scene.ask.start(ready=False)
    answers = scene.answers(requests, deadline_s=60)
    scene.ask.wait_ready()
    assert {one.error for one in answers} == {None}
    assert len({one.event_id for one in answers}) == 300, "an answer that comes twice is the same fact"


def test_a_stop_amid_questions_is_fast_and_loses_none(scene: Scene) -> None:
    def answer(_: dict[str, Any]) -> tuple[int, bytes]:
        time.sleep(1)
        return 200, body()

    scene.provider.answer = answer
    requests = scene.request(*range(400, 420), deadline_ms=60_000)
    deadline = time.monotonic() + 20
    while len(scene.provider.asked) < 20:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    before = time.monotonic()
    assert scene.ask.stop() == 0, scene.ask.tail()
    assert time.monotonic() - before < 5
    scene.ask.start(ready=False)
    scene.answers(requests)
    scene.ask.wait_ready()


def test_a_provider_that_is_down_is_said(scene: Scene) -> None:
    with provider(lambda _: (200, b"")) as gone:
        pass
    scene.ask.stop()
    down = scene.room.process("ask", RECOVERY_ASK__ATTRIBUTION_URL=gone.url)
    down.start()
    [answer] = scene.answers(scene.request(5))
    assert (answer.error or "").startswith("out of reach: ConnectError")
    assert down.stop() == 0


def test_with_no_provider_configured_it_answers_that_nobody_was_asked(scene: Scene) -> None:
    scene.ask.stop()
    off = scene.room.process("ask")
    off.start()
    [answer] = scene.answers(scene.request(6))
    assert (answer.provider, answer.error) == ("none", "no provider is configured: set ask.attribution_url")
    assert off.stop() == 0
