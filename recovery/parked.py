"""What could not be handled, and what a person does about it.

A job whose fact was parked is quarantined: it gets no new Advice until somebody has looked. To dismiss a record lifts
that; to re-append it lifts it and gives the fact once more, in this order, so that a fact which still can't be handled
quarantines the job again. Lines that watch could not attribute are parked too; no job waits for those.
"""

import time
from dataclasses import dataclass, replace
from typing import cast, get_args

from confluent_kafka import Message

from recovery.writing import WriteError, write_now
from schemas.bookkeeping import RecordParked
from schemas.codec import Codec, UnknownSchema, UnreadableRecord
from schemas.decisions import FactParked, QuarantineEnded
from schemas.facts import Fact, QuarantineLifted
from schemas.identity import InvalidIdentity, Position, derived_id, job_key
from schemas.topics import DECISION_LOG, JOURNAL, PARKED, fact_route
from streams.kafka import TopicView, decode, reader

READ_TIMEOUT_S = 60.0
CLIENT = "recovery-parked"
_OF_QUARANTINE = (b"recovery.FactParked", b"recovery.QuarantineEnded")


class ParkedError(Exception):
    """Nothing can be done about this record in this way. The text says why."""


@dataclass(frozen=True)
class Parked:
    """A parked record. `number` is its offset in `recovery.parked`; `open` while its job is quarantined."""

    number: int
    record: RecordParked
    open: bool

    @property
    def key(self) -> str:
        """Return the record key as text: the job, for a fact."""
        return self.record.key.decode("utf-8", "replace")


def read_parked(bootstrap: str, codec: Codec) -> list[Parked]:
    """Return all parked records, oldest first. Raises streams.kafka.KafkaUnavailable."""
    found: list[tuple[int, RecordParked]] = []
    quarantined: dict[str, bool] = {}

    def take(message: Message) -> None:
        if message.topic() == PARKED.name:
            found.append((message.offset() or 0, decode(codec, message)))
        elif dict(message.headers() or []).get("ce_type") in _OF_QUARANTINE:
            _follow(quarantined, decode(codec, message))

    consumer = reader(bootstrap, CLIENT)
    try:
        TopicView(consumer, (PARKED, DECISION_LOG), take).read_to_stable_end(timeout_s=READ_TIMEOUT_S)
    finally:
        consumer.close()
    return [
        Parked(
            number,
            record,
            record.topic == JOURNAL.name and quarantined.get(record.key.decode("utf-8", "replace"), False),
        )
        for number, record in found
    ]


def _follow(quarantined: dict[str, bool], decision: FactParked | QuarantineEnded) -> None:
    if isinstance(decision, FactParked):
        quarantined[decision.key] = True
    else:
        quarantined[f"{decision.cluster}/{decision.job_id}"] = False


def lift(bootstrap: str, codec: Codec, parked: Parked, *, by: str, reason: str, again: bool) -> None:
    """Lift the quarantine of a record's job, and give the record once more if `again`.

    Raises ParkedError where no job waits for the record or Kafka did not take the answer.
    """
    record = parked.record
    if record.topic != JOURNAL.name:
        raise ParkedError(f"record {parked.number} came from {record.topic}, not from the journal: no job waits for it")
    try:
        key = job_key(*parked.key.split("/"))
    except (InvalidIdentity, TypeError) as error:
        raise ParkedError(
            f"the key of record {parked.number}, {parked.key!r}, names no job: none waits for it"
        ) from error
    cluster, job_id = key.split("/")
    now_ms = time.time_ns() // 1_000_000
    fact = QuarantineLifted(
        event_id=derived_id("lifted", record.event_id, by, now_ms),
        cause=record.event_id,
        cluster=cluster,
        job_id=job_id,
        position=Position(f"person:{by}", 0, now_ms),
        by=by,
        reason=reason,
        lifted_ms=now_ms,
    )
    facts: list[Fact] = [fact, _again(codec, parked)] if again else [fact]
    records = [
        (*fact_route(one), codec.encode(one, source=f"recovery/parked/{by}", time_ms=now_ms, subject=key))
        for one in facts
    ]
    try:
        write_now(bootstrap, CLIENT, records)
    except WriteError as error:
        raise ParkedError(str(error)) from error


def _again(codec: Codec, parked: Parked) -> Fact:
    """The parked fact as of a source of its own: in its old one later facts have passed, so it would count as late."""
    record = parked.record
    headers = [(name, value.encode()) for name, _, value in (text.partition("=") for text in record.headers)]
    try:
        fact = codec.decode(record.value, headers)
    except (UnreadableRecord, UnknownSchema) as error:
        raise ParkedError(
            f"record {parked.number} still can't be read ({error}): dismiss it, or keep it for software that can"
        ) from error
    if not isinstance(fact, get_args(Fact)):
        raise ParkedError(f"record {parked.number} is {type(fact).__name__}, no fact: dismiss it")
    known = cast(Fact, fact)
    return replace(known, position=replace(known.position, source=f"parked:{known.position.source}"))
