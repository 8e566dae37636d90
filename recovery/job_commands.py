"""What a person asks for one attempt: it enters the journal as a fact, and passes the same gates as everything else."""

import time

from confluent_kafka import Message

from recovery.writing import write_now
from schemas.codec import Codec
from schemas.decisions import JobView
from schemas.facts import CommandGiven
from schemas.identity import AttemptId, InvalidIdentity, JobKey, Position, derived_id, job_key
from schemas.topics import JOBS, fact_route
from schemas.vocabulary import CommandKind
from streams.kafka import TopicView, decode, reader

CLIENT = "recovery-job"
READ_TIMEOUT_S = 30.0


class CommandError(Exception):
    """No attempt is meant by this; the text says which there are."""


def parse_target(text: str, cluster: str) -> tuple[JobKey, int | None]:
    """Read `JOB` or `JOB/ATTEMPT`, such as 123_4/1. Raises CommandError."""
    job_id, slash, index = text.partition("/")
    if slash and not index.isdecimal():
        raise CommandError(f"{text!r} names no attempt: expected JOB or JOB/ATTEMPT, such as 123 or 123_4/1")
    try:
        return job_key(cluster, job_id), int(index) if slash else None
    except InvalidIdentity as error:
        raise CommandError(str(error)) from error


def find(bootstrap: str, codec: Codec, key: JobKey, index: int | None) -> AttemptId:
    """Return the attempt with this index, or the latest. Raises CommandError, and streams.kafka.KafkaUnavailable."""
    view = _view(bootstrap, codec, key)
    if view is None:
        raise CommandError(f"job {key} is not known: the controller has not seen it, or it is of another cluster")
    if view.closed or not view.attempts:
        raise CommandError(f"job {key} is closed: it ended long ago")
    chosen = [one for one in view.attempts if index is None or one.attempt.index == index]
    if not chosen:
        known = ", ".join(str(one.attempt.index) for one in view.attempts)
        raise CommandError(f"job {key} has no attempt {index}; the recent ones are {known}")
    return chosen[-1].attempt


def command(bootstrap: str, codec: Codec, attempt: AttemptId, kind: CommandKind, by: str, reason: str) -> CommandGiven:
    """Write the command to the journal and return it. Raises recovery.writing.WriteError."""
    now_ms = time.time_ns() // 1_000_000
    fact = CommandGiven(
        event_id=derived_id("command", attempt.key, kind, by, now_ms),
        cause="",
        attempt=attempt,
        position=Position(f"person:{by}", 0, now_ms),
        kind=kind,
        by=by,
        reason=reason,
        given_ms=now_ms,
    )
    topic, key = fact_route(fact)
    encoded = codec.encode(fact, source=f"recovery/job/{by}", time_ms=now_ms, subject=attempt.key)
    write_now(bootstrap, CLIENT, [(topic, key, encoded)])
    return fact


def _view(bootstrap: str, codec: Codec, key: JobKey) -> JobView | None:
    newest: list[JobView] = []

    def take(message: Message) -> None:
        if message.key() == key.encode():
            newest[:] = [] if message.value() is None else [decode(codec, message)]

    consumer = reader(bootstrap, CLIENT)
    try:
        TopicView(consumer, (JOBS,), take).read_to_stable_end(timeout_s=READ_TIMEOUT_S)
    finally:
        consumer.close()
    return newest[0] if newest else None
