"""How far a consumer is behind, from what its client knows already: nobody waits for a broker here."""

from __future__ import annotations

from confluent_kafka import Consumer, KafkaException, TopicPartition


def records_behind(consumer: Consumer, topic: str, partition: int, done: int = 0) -> int:
    """Return how many records the consumer has yet to read; 0 while nothing is known. `done`: what needs no reading.

    A position passes the markers of transactions, which are no records; a committed offset does not.
    """
    place = TopicPartition(topic, partition)
    [at] = consumer.position([place])
    try:
        low, high = consumer.get_watermark_offsets(place, cached=True)
    except KafkaException:
        return 0  # not heard of yet
    return int(max(0, high - max(at.offset, low, done)))
