"""What the relay writes: copies of intents and requests, what other deciders concluded, and timers that fired."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from schemas.codec import FINGERPRINT, Codec, Headers
from schemas.decisions import FactParked, TimerSet, timer_key
from schemas.facts import ActionEnded, ActionIntended, ActionRefused, NodeFaultReported, TimerFired, job_of
from schemas.identity import Position, derived_id
from schemas.nodes import NodeFaultTold
from schemas.topics import JOURNAL, REQUESTS, event_types
from streams.records import Incoming, Outgoing

SOURCE = "recovery/relay"
REQUEST_TYPES = frozenset(f"recovery.{kind.__name__}".encode() for kind in event_types(REQUESTS))


def action_fact(codec: Codec, record: Incoming) -> Outgoing:
    """The controller's record as a fact: the same event, its position the record that committed it.

    Raises UnreadableRecord, UnknownSchema, and TypeError for an event that is none of the controller's.
    """
    event = codec.decode(record.value or b"", record.headers)
    if not isinstance(event, ActionIntended | ActionEnded | ActionRefused):
        raise TypeError(f"{type(event).__name__} is nothing that the scheduler controller did")
    position = Position(f"topic:{record.topic}/{record.partition}", 0, record.offset)
    fact = replace(event, position=position)
    encoded = codec.encode(fact, source=SOURCE, time_ms=record.recorded_ms, subject=fact.attempt.key)
    return Outgoing(JOURNAL, job_of(fact).encode(), encoded.value, _kept(encoded.headers, record.headers))


def node_fault_fact(codec: Codec, record: Incoming) -> Outgoing | None:
    """What the node decider tells an attempt, as a fact of that attempt's job; None for what concerns no attempt.

    Raises UnreadableRecord, UnknownSchema, and TypeError for an event that is none of the node decider's.
    """
    event = codec.decode(record.value or b"", record.headers)
    if isinstance(event, FactParked):
        return None
    if not isinstance(event, NodeFaultTold):
        raise TypeError(f"{type(event).__name__} is nothing that the node decider concludes")
    fact = NodeFaultReported(
        event_id=derived_id("reported", event.event_id),
        cause=event.event_id,
        attempt=event.attempt,
        position=Position(f"topic:{record.topic}/{record.partition}", 0, record.offset),
        fault=event.fault,
        distance_ms=event.distance_ms,
        told_ms=event.decided_ms,
    )
    encoded = codec.encode(fact, source=SOURCE, time_ms=record.recorded_ms, subject=fact.attempt.key)
    return Outgoing(JOURNAL, job_of(fact).encode(), encoded.value, encoded.headers)


def request(record: Incoming) -> Outgoing | None:
    """The copy of a request; None for any other decision. The bytes stay as they are."""
    if _header(record.headers, "ce_type") not in REQUEST_TYPES:
        return None
    return Outgoing(REQUESTS, record.key, record.value, record.headers)


def firing(codec: Codec, timer: TimerSet, now_ms: int) -> Outgoing:
    """The fact that a timer is due. Its id is that of the timer: firing again repeats the same fact."""
    fact = TimerFired(
        event_id=derived_id("fired", timer.event_id),
        cause=timer.event_id,
        attempt=timer.attempt,
        position=Position(f"relay:{timer_key(timer.attempt, timer.purpose)}", 0, timer.generation),
        purpose=timer.purpose,
        generation=timer.generation,
        due_ms=timer.due_ms,
        fired_ms=now_ms,
    )
    encoded = codec.encode(fact, source=SOURCE, time_ms=now_ms, subject=fact.attempt.key)
    return Outgoing(JOURNAL, job_of(fact).encode(), encoded.value, encoded.headers)


def _kept(new: Headers, old: Headers) -> Headers:
    """The event is the old one, so its headers are, except for what says how these bytes are written."""
    before = dict(old)
    return [(name, value if name == FINGERPRINT else before.get(name, value)) for name, value in new]


def _header(headers: Iterable[tuple[str, bytes]], name: str) -> bytes | None:
    return next((value for key, value in headers if key == name), None)
