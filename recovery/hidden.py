"""Records that nobody can read: they stand behind a transaction that is open and that nobody ends.

A reader sees a partition up to its last stable offset and takes that for its end, so such a partition looks still and
its lag is nought. Kafka ends a transaction of ours after five seconds; where it forgot one (a broker that was killed
may), only its tools can.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

import structlog
from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from recovery.metrics import HIDDEN
from schemas.topics import Topic

STUCK_S = 30.0
"""A stable end that stays so long before the end of what was written is stuck: ours move each second under load."""
PERIOD_S = 10.0
TIMEOUT_S = 5.0
WAY_OUT = "find it with `kafka-transactions.sh find-hanging`, and end it with `kafka-transactions.sh abort`"

Place = tuple[str, int]
log = structlog.get_logger(__name__)


class Hidden:
    """Give it looks at the ends of partitions; it tells what has been hidden for too long."""

    def __init__(self) -> None:
        self._since: dict[Place, tuple[int, float]] = {}
        """Where a partition's stable end stands while it is not the end, and since when."""

    def look(self, ends: Mapping[Place, tuple[int, int]], now_s: float) -> Counter[str]:
        """How many records of each topic are hidden. `ends`: each partition's stable end, and its end."""
        since: dict[Place, tuple[int, float]] = {}
        hidden = Counter[str]()
        for place, (stable, end) in ends.items():
            if stable >= end:
                continue
            known = self._since.get(place)
            since[place] = known if known is not None and known[0] == stable else (stable, now_s)
            if now_s - since[place][1] >= STUCK_S:
                hidden[place[0]] += end - stable
        self._since = since
        return hidden


@contextmanager
def hidden_watched(bootstrap: str, topics: Iterable[Topic]) -> Iterator[None]:
    """While the block runs, a thread keeps the gauge of hidden records."""
    done = threading.Event()
    watch = _Watch(bootstrap, tuple(topics))
    thread = threading.Thread(target=watch.run, args=(done,), name="hidden", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(timeout=3 * TIMEOUT_S)


class _Watch:
    def __init__(self, bootstrap: str, topics: tuple[Topic, ...]) -> None:
        self._bootstrap, self._topics = bootstrap, topics
        self._hidden, self._told = Hidden(), Counter[str]()

    def run(self, done: threading.Event) -> None:
        admin = self._admin()
        while not done.wait(PERIOD_S):
            try:
                stable = self._ends(admin, IsolationLevel.READ_COMMITTED)
                end = self._ends(admin, IsolationLevel.READ_UNCOMMITTED)
            except (KafkaException, TimeoutError) as error:
                log.debug("the ends of topics are not known", error=str(error))
                HIDDEN.clear()
                admin = self._admin()  # one that has seen a broker's restart may be refused for ever
                continue
            self._tell(self._hidden.look({place: (at, end[place]) for place, at in stable.items()}, time.monotonic()))

    def _tell(self, hidden: Counter[str]) -> None:
        for topic in self._topics:
            HIDDEN.labels(topic.name).set(hidden[topic.name])
            if hidden[topic.name] and not self._told[topic.name]:
                log.error("records stand behind an open transaction", topic=topic.name, next=WAY_OUT)
        self._told = hidden

    def _ends(self, admin: AdminClient, level: IsolationLevel) -> dict[Place, int]:
        places = [TopicPartition(topic.name, number) for topic in self._topics for number in range(topic.partitions)]
        futures = admin.list_offsets(
            {place: OffsetSpec.latest() for place in places}, isolation_level=level, request_timeout=TIMEOUT_S
        )
        return {(place.topic, place.partition): end.result(TIMEOUT_S).offset for place, end in futures.items()}

    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self._bootstrap, "log_level": 0})
