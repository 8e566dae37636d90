"""Whether a member of a consumer group has its partitions, and how far the group is behind."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from confluent_kafka import ConsumerGroupTopicPartitions, IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from recovery.health import Health
from recovery.metrics import LAG

PERIOD_S = 1.0
TIMEOUT_S = 5.0


@contextmanager
def membership_watched(
    bootstrap: str, group: str, instance: str, health: Health, busy: Callable[[], str | None] = lambda: None
) -> Iterator[None]:
    """While the block runs, a thread tells `health` whether the static member `instance` has partitions, and the lag
    gauge how far they are behind. `busy` gives the reason why a member that has them is still not ready."""
    done = threading.Event()
    watcher = threading.Thread(
        target=_watch, args=(bootstrap, group, instance, health, busy, done), name="membership", daemon=True
    )
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join(timeout=TIMEOUT_S)


def _watch(
    bootstrap: str,
    group: str,
    instance: str,
    health: Health,
    busy: Callable[[], str | None],
    done: threading.Event,
) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    while not done.wait(PERIOD_S):
        try:
            mine = _assignment(admin, group, instance)
            reason = busy() if mine else f"no partitions of group {group} yet"
            if reason is None:
                health.ready()
            else:
                health.not_ready(reason)
            for topic, lag in lags(admin, group, mine).items():
                LAG.labels(topic, group).set(lag)
        except (KafkaException, TimeoutError) as error:
            health.not_ready(f"Kafka does not answer: {error}")


def _assignment(admin: AdminClient, group: str, instance: str) -> list[TopicPartition]:
    described = admin.describe_consumer_groups([group], request_timeout=TIMEOUT_S)[group].result(TIMEOUT_S)
    for member in described.members:
        if member.group_instance_id == instance:
            return list(member.assignment.topic_partitions)
    return []


def lags(admin: AdminClient, group: str, partitions: list[TopicPartition]) -> dict[str, int]:
    """Records between the group's committed offsets and the stable ends, by topic."""
    if not partitions:
        return {}
    asked = ConsumerGroupTopicPartitions(group, partitions)
    offsets = admin.list_consumer_group_offsets([asked], request_timeout=TIMEOUT_S)[group].result(TIMEOUT_S)
    ends = admin.list_offsets(
        {TopicPartition(p.topic, p.partition): OffsetSpec.latest() for p in partitions},
        isolation_level=IsolationLevel.READ_COMMITTED,
        request_timeout=TIMEOUT_S,
    )
    end_of = {(p.topic, p.partition): future.result(TIMEOUT_S).offset for p, future in ends.items()}
    behind: dict[str, int] = {}
    for place in offsets.topic_partitions:
        lag = end_of[place.topic, place.partition] - max(place.offset, 0)
        behind[place.topic] = behind.get(place.topic, 0) + max(lag, 0)
    return behind
