"""The agent that asks attribution providers: requests in, `AttributionAnswered` facts out, at least once."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import faust
import structlog

from recovery.metrics import FACTS_WRITTEN, counter, latency
from recovery.metrics import PARKED as PARKED_METRIC
from schemas.codec import Codec, UnknownSchema
from schemas.decisions import RequestMade
from schemas.facts import AttributionAnswered
from schemas.identity import Position, derived_id
from schemas.topics import JOURNAL, PARKED, REQUESTS, Topic, event_types
from streams.ask.attribution import NOTHING
from streams.ask.provider import Answer, HttpProvider, Nobody
from streams.ask.window import Window
from streams.parking import Parking
from streams.records import Incoming, Outgoing

log = structlog.get_logger(__name__)

GROUP = "recovery-ask"
SOURCE = "recovery/ask"
MOST_AT_ONCE = 64
SESSION_TIMEOUT_S = 10
HEARTBEAT_S = 3
COMMIT_INTERVAL_S = 0.5
TRACE_HEADERS = ("traceparent", "tracestate")

ASKED = counter("questions_asked", "Questions put to attribution providers, by how they ended.", "outcome")
TOOK = latency("answer", "From reading a request to having its answer.")


class Attributions:
    """Answers requests. It raises only what must stop the process."""

    def __init__(self, codec: Codec, provider: HttpProvider | Nobody) -> None:
        self._codec = codec
        self._provider = provider
        self._parking = Parking(codec, SOURCE)

    async def answer(self, record: Incoming) -> Outgoing | None:
        """Return the fact for one request, or the parked record; None for a question that is somebody else's.

        Raises UnknownSchema and ParkingFull.
        """
        try:
            request = self._codec.decode(record.value or b"", record.headers)
            if not isinstance(request, event_types(REQUESTS)):
                raise TypeError(f"{type(request).__name__} is no request")
        except UnknownSchema:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a record does to us, it is parked
            PARKED_METRIC.labels(record.topic).inc()
            return self._parking.park(record, error)[1]
        self._parking.handled()
        if not isinstance(request, RequestMade):
            return None
        return await self._ask(record, request)

    async def _ask(self, record: Incoming, request: RequestMade) -> Outgoing:
        asked_ms = _now_ms()
        if asked_ms - request.decided_ms > request.deadline_ms:
            answer = Answer("none", NOTHING, "the deadline had passed before the question could be asked")
        else:
            trace = {name: value.decode("ascii", "replace") for name, value in record.headers if name in TRACE_HEADERS}
            answer = await self._provider.ask(request, trace)
        return self._fact(record, request, answer, asked_ms)

    def _fact(self, record: Incoming, request: RequestMade, answer: Answer, asked_ms: int) -> Outgoing:
        now_ms = _now_ms()
        fact = AttributionAnswered(
            event_id=derived_id("answered", request.event_id),
            cause=request.event_id,
            attempt=request.attempt,
            position=Position(f"topic:{record.topic}/{record.partition}", 0, record.offset),
            provider=answer.provider,
            incident_id=request.incident_id,
            fault_class=answer.attribution.fault_class,
            scope=answer.attribution.scope,
            nodes=answer.attribution.nodes,
            explanation=answer.attribution.explanation,
            error=answer.error,
            asked_ms=asked_ms,
            answered_ms=now_ms,
        )
        ASKED.labels("answered" if answer.error is None else answer.error.partition(":")[0]).inc()
        TOOK.observe((now_ms - asked_ms) / 1000)
        if answer.error is not None:
            log.warning("no attribution", job=request.attempt.job, error=answer.error, next="decided without it")
        encoded = self._codec.encode(fact, source=SOURCE, time_ms=now_ms, subject=fact.attempt.key)
        return Outgoing(JOURNAL, request.attempt.job.encode(), encoded.value, encoded.headers)


def make_app(bootstrap: str, data: Path, instance: str) -> faust.App:
    """Return the Faust app, used for at-least-once asking alone: no tables, no topics of its own, no web server."""
    folder = data / "state" / "ask"
    folder.mkdir(parents=True, exist_ok=True)
    return faust.App(
        GROUP,
        broker=f"kafka://{bootstrap.replace(',', ';')}",
        datadir=str(folder),
        web_enabled=False,
        key_serializer="raw",
        value_serializer="raw",
        topic_allow_declare=False,
        topic_disable_leader=True,
        consumer_auto_offset_reset="earliest",
        consumer_group_instance_id=instance,
        broker_session_timeout=SESSION_TIMEOUT_S,
        broker_heartbeat_interval=HEARTBEAT_S,
        broker_commit_interval=COMMIT_INTERVAL_S,
        stream_wait_empty=False,
    )


def attach(app: faust.App, attributions: Attributions, window: Window[Outgoing | None]) -> None:
    """Give the app its one agent."""
    out = {topic.name: _raw_topic(app, topic) for topic in (JOURNAL, PARKED)}

    async def write(record: Outgoing | None) -> None:
        if record is None:
            return
        sent = await out[record.topic.name].send(key=record.key, value=record.value, headers=list(record.headers))
        await sent
        if record.topic is JOURNAL:
            FACTS_WRITTEN.labels(AttributionAnswered.__name__).inc()

    async def ask(stream: Any) -> None:
        async for event in stream.noack().events():
            record = _incoming(event.message)
            await window.add(
                record.partition,
                record.key,
                lambda record=record: attributions.answer(record),  # type: ignore[misc]
                write,
                event.ack,
            )

    app.agent(_raw_topic(app, REQUESTS), name="attribution", concurrency=1)(ask)


def _raw_topic(app: faust.App, topic: Topic) -> Any:
    return app.topic(topic.name, key_serializer="raw", value_serializer="raw")


def _incoming(message: Any) -> Incoming:
    headers = message.headers.items() if isinstance(message.headers, dict) else message.headers or ()
    return Incoming(
        message.topic,
        message.partition,
        message.offset,
        message.key or b"",
        message.value,
        [(name, value) for name, value in headers if value is not None],
        int(message.timestamp * 1000) if message.timestamp else 0,
    )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
