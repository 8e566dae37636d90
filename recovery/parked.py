"""What could not be handled, and what a person does about it.

A job whose fact was parked is quarantined: it gets no new Advice until somebody has looked. To dismiss a record lifts
that; to re-append it lifts it and gives the fact once more, in this order, so that a fact which still can't be handled
quarantines the job again. Lines that watch could not attribute are parked too; no job waits for those.
"""

import time
from dataclasses import dataclass

from confluent_kafka import KafkaException, Message

from schemas.bookkeeping import RecordParked
from schemas.codec import Codec, Encoded, Headers
from schemas.decisions import FactParked, QuarantineEnded
from schemas.facts import QuarantineLifted
from schemas.identity import InvalidIdentity, Position, derived_id, job_key
from schemas.topics import DECISION_LOG, JOURNAL, PARKED, fact_route
from streams.kafka import TopicView, decode, producer, reader, send

READ_TIMEOUT_S = 60.0
WRITE_TIMEOUT_S = 10.0
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
    _, fact_key = fact_route(fact)
    encoded = codec.encode(fact, source=f"recovery/parked/{by}", time_ms=now_ms, subject=fact_key)
    _write(bootstrap, fact_key, [encoded, *([Encoded(record.value, _headers(record))] if again else [])])


def _headers(record: RecordParked) -> Headers:
    pairs = (text.partition("=") for text in record.headers)
    return [(name, value.encode()) for name, _, value in pairs]


def _write(bootstrap: str, key: str, records: list[Encoded]) -> None:
    """Write in this order; the producer is idempotent, and one key is one partition."""
    failed: list[str] = []
    to = producer(bootstrap, CLIENT)
    try:
        for encoded in records:
            send(to, JOURNAL, key, encoded, lambda error, _message: failed.append(error.str()) if error else None)
        unsent = to.flush(WRITE_TIMEOUT_S)
    except KafkaException as error:
        raise ParkedError(f"Kafka at {bootstrap} did not take it: {error.args[0].str()}; try again") from error
    if unsent or failed:
        raise ParkedError(f"Kafka at {bootstrap} did not take it: {', '.join(failed) or 'no answer'}; try again")
