"""Writes a few records for a person at the command line, and says whether Kafka took them."""

from collections.abc import Sequence

from confluent_kafka import KafkaException

from schemas.codec import Encoded
from schemas.topics import Topic
from streams.kafka import producer, send

TIMEOUT_S = 10.0


class WriteError(Exception):
    """Kafka did not take the records; the text says why, and that it may be tried again."""


def write_now(bootstrap: str, client: str, records: Sequence[tuple[Topic, str, Encoded]]) -> None:
    """Write (topic, key, event) in this order, each delivered before the next is sent. Raises WriteError."""
    failed: list[str] = []
    try:
        to = producer(bootstrap, client, **{"message.timeout.ms": int(TIMEOUT_S * 1000)})
        for topic, key, encoded in records:
            send(to, topic, key, encoded, lambda error, _message: failed.append(error.str()) if error else None)
            if to.flush(TIMEOUT_S + 1) or failed:
                break
    except KafkaException as error:
        raise WriteError(f"Kafka at {bootstrap} did not take it: {error.args[0].str()}; try again") from error
    if failed or len(to):
        raise WriteError(f"Kafka at {bootstrap} did not take it: {', '.join(failed) or 'no answer'}; try again")
