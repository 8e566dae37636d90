"""Whether a member of a consumer group has its partitions, and how far the group is behind on those.

Groups are not described through the admin interface: librdkafka ends the whole process (an assertion) when the broker
goes away during such a request (its issue 4605, seen with 2.12).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from confluent_kafka import Consumer, IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from recovery.health import Health
from recovery.metrics import LAG
from streams.kafka import LIBRARY_LOG

PERIOD_S = 1.0
TIMEOUT_S = 5.0


@contextmanager
def membership_watched(
    bootstrap: str,
    group: str,
    health: Health,
    assigned: Callable[[], Sequence[TopicPartition]],
    busy: Callable[[], str | None] = lambda: None,
) -> Iterator[None]:
    """While the block runs, a thread tells `health` whether this member has partitions, and the lag gauge how far it is
    behind on them. `assigned` and `busy` (why a member with partitions is not ready yet) are called there. A partition
    may come with the place up to which the member has read: that is beyond transaction markers, which are no records.
    """
    done = threading.Event()
    watch = _Watch(bootstrap, group, health, assigned, busy)
    watcher = threading.Thread(target=watch.run, args=(done,), name="membership", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join(timeout=2 * TIMEOUT_S)


class _Watch:
    def __init__(
        self,
        bootstrap: str,
        group: str,
        health: Health,
        assigned: Callable[[], Sequence[TopicPartition]],
        busy: Callable[[], str | None],
    ) -> None:
        common = {"bootstrap.servers": bootstrap, "client.id": f"{group}-watch", "logger": LIBRARY_LOG, "log_level": 2}
        self._common = common
        self._admin = AdminClient(common)
        self._offsets = Consumer(common | {"group.id": group, "enable.auto.commit": False})  # never joins the group
        self._group, self._health, self._assigned, self._busy = group, health, assigned, busy

    def run(self, done: threading.Event) -> None:
        while not done.wait(PERIOD_S):
            try:
                self._look()
            except (KafkaException, TimeoutError) as error:
                self._health.not_ready(f"Kafka does not answer: {error}")
                # One that has seen a broker's restart keeps asking with an old leader epoch, and is refused for ever.
                self._admin = AdminClient(self._common)
        self._offsets.close()

    def _look(self) -> None:
        mine = self._assigned()
        behind = self._lags(mine) if mine else {}
        reason = self._busy() if mine else f"no partitions of group {self._group} yet"
        if reason is None:
            self._health.ready()
        else:
            self._health.not_ready(reason)
        for topic, lag in behind.items():
            LAG.labels(topic, self._group).set(lag)

    def _lags(self, assigned: Sequence[TopicPartition]) -> dict[str, int]:
        """Records between what is committed or read, and the stable ends, by topic."""
        read = {(place.topic, place.partition): place.offset for place in assigned}
        places = [TopicPartition(topic, partition) for topic, partition in read]
        ends = self._admin.list_offsets(
            {place: OffsetSpec.latest() for place in places},
            isolation_level=IsolationLevel.READ_COMMITTED,
            request_timeout=TIMEOUT_S,
        )
        end_of = {(place.topic, place.partition): end.result(TIMEOUT_S).offset for place, end in ends.items()}
        behind: dict[str, int] = {}
        for place in self._offsets.committed(places, timeout=TIMEOUT_S):
            where = place.topic, place.partition
            lag = end_of[where] - max(place.offset, read[where], 0)
            behind[place.topic] = behind.get(place.topic, 0) + max(lag, 0)
        return behind
