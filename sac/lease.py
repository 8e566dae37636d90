"""Who leads a cluster: the member of consumer group `sac-<cluster>` that has the lease topic's one partition."""

from __future__ import annotations

from typing import Any

import structlog
from confluent_kafka import Consumer, KafkaException

from schemas.topics import SAC_LEASE

SESSION_MS = 6_000
"""The least that brokers accept by default: a dead leader is replaced after this long."""
log = structlog.get_logger(__name__)


class Lease:
    """Call `poll` often: all changes arrive in it. Not thread-safe."""

    def __init__(self, bootstrap: str, cluster: str) -> None:
        self.held = False
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": f"sac-{cluster}",
                "client.id": f"sac-lease-{cluster}",
                "enable.auto.commit": False,
                "auto.offset.reset": "latest",
                "session.timeout.ms": SESSION_MS,
                "heartbeat.interval.ms": 2_000,
                "max.poll.interval.ms": 60_000,
                "partition.assignment.strategy": "range",
            }
        )
        self._consumer.subscribe(
            [SAC_LEASE.name], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked
        )

    def poll(self, timeout_s: float) -> bool:
        """Return whether this process leads. Raises KafkaException for a fatal error."""
        message = self._consumer.poll(timeout_s)
        error = message.error() if message is not None else None
        if error is not None and error.fatal():
            raise KafkaException(error)
        return self.held

    def close(self) -> None:
        """Leave the group, so that the next one takes over at once."""
        self._consumer.close()

    def _assigned(self, _consumer: Any, partitions: list[Any]) -> None:
        if partitions:
            self.held = True
            log.info("leading", group=SAC_LEASE.name)

    def _revoked(self, _consumer: Any, partitions: list[Any]) -> None:
        if partitions and self.held:
            self.held = False
            log.warning("no longer leading", next="stand by")
