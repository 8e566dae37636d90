"""Putting aside what can't be handled, up to a limit: past it something is wrong with us, not with the records."""

from __future__ import annotations

from collections import deque
from itertools import repeat

import structlog

from schemas.bookkeeping import RecordParked
from schemas.codec import Codec
from schemas.identity import derived_id
from schemas.topics import PARKED
from streams.records import Incoming, Outgoing

log = structlog.get_logger(__name__)

PARKING_WINDOW = 1000
PARKING_LIMIT = 100
"""More parked records than this among the last PARKING_WINDOW stop the process."""
REASON_LENGTH = 1000
MOST_BYTES = 256 << 10
"""Larger records are not handled, and their value is not copied: what comes of one might not fit into the megabyte that
Kafka takes. The largest fact of ours tells of a job on 10,000 nodes, in half of it."""


class ParkingFull(RuntimeError):
    """Too many of the last records can't be handled; the process stops and says so."""


def refuse_oversize(record: Incoming) -> None:
    """Raise ValueError for a record that is too large to be handled."""
    if len(record.value or b"") > MOST_BYTES:
        raise ValueError(f"{len(record.value or b'')} bytes are more than the {MOST_BYTES} that a record may have")


class Parking:
    """Counts what is handled and what is parked."""

    def __init__(self, codec: Codec, source: str) -> None:
        self._codec = codec
        self._source = source
        self._recent: deque[bool] = deque(maxlen=PARKING_WINDOW)

    def handled(self, records: int = 1) -> None:
        """Count records that were handled."""
        self._recent.extend(repeat(False, records))

    def park(self, record: Incoming, error: Exception) -> tuple[str, Outgoing]:
        """Return the reason in words and the record for `recovery.parked`. Raises ParkingFull past the limit.

        The value of an oversize record stays where it lies.
        """
        self._recent.append(True)
        if sum(self._recent) > PARKING_LIMIT:
            raise ParkingFull(
                f"{sum(self._recent)} of the last {len(self._recent)} records can't be handled (now"
                f" {record.place}: {error!r}): see `recovery parked list`"
            ) from error
        reason = f"{type(error).__name__}: {error}"[:REASON_LENGTH]
        log.error(
            "parked a record", topic=record.topic, partition=record.partition, offset=record.offset, reason=reason
        )
        value = record.value or b""
        event = RecordParked(
            event_id=derived_id("parked", record.place),
            cause="",
            topic=record.topic,
            partition=record.partition,
            offset=record.offset,
            key=record.key,
            value=value if len(value) <= MOST_BYTES else b"",
            headers=tuple(f"{name}={(value or b'').decode('utf-8', 'replace')}" for name, value in record.headers),
            reason=reason,
            parked_ms=record.recorded_ms,
        )
        encoded = self._codec.encode(event, source=self._source, time_ms=record.recorded_ms, subject=record.place)
        return reason, Outgoing(PARKED, record.place.encode(), encoded.value, encoded.headers)
