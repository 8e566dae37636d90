"""The stateful function of the attempt decider: raw bytes in, records for several topics out.

A record that can't be handled is parked and its job quarantined.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, cast, get_args

from schemas.codec import Codec
from schemas.decisions import Emitted, TimerCleared
from schemas.facts import Fact, TimerFired, job_of
from schemas.identity import JobKey, job_key
from schemas.policy import Policy
from schemas.topics import emitted_route
from streams.decide.decide import Decided, decide, park
from streams.decide.state import JobState
from streams.records import Incoming, Outgoing
from streams.run.state_codec import JOB_STATES
from streams.run.stateful import StatefulWorker, Store

__all__ = ["Store", "Worker"]

FACT_TYPES: frozenset[type] = frozenset(get_args(Fact))


class Worker(StatefulWorker[Fact, JobState, Emitted]):
    """Decides facts of jobs."""

    def __init__(self, codec: Codec, policies: Mapping[str, Policy], name: str) -> None:
        super().__init__(codec, JOB_STATES, f"recovery/decide/{name}", "job")
        self._policies = policies

    def _read(self, record: Incoming) -> Fact:
        if record.value is None:
            raise ValueError("the journal has no tombstones")
        decoded = self._codec.decode(record.value, record.headers)
        if type(decoded) not in FACT_TYPES:
            raise TypeError(f"{type(decoded).__name__} is no fact")
        return cast(Fact, decoded)

    def _decide(self, record: Incoming, fact: Fact, state: JobState | None) -> Decided:
        key = job_of(fact)
        if _record_key(key) != record.key:
            raise ValueError(f"the record's key {record.key!r} is not its job, {key!r}")
        return decide(state, fact, record.recorded_ms, self._policies)

    def _parked(self, record: Incoming, state: JobState | None, reason: str) -> Decided:
        key = record.key.decode("utf-8", "replace")
        place = (record.topic, record.partition, record.offset)
        after, events = park(state, key, place, reason, record.recorded_ms)
        return after, (*self._withdrawn(record), *events)

    def _withdrawn(self, record: Incoming) -> tuple[Emitted, ...]:
        """The tombstone of a timer whose firing was parked: else the relay would fire it, and we park it, for ever."""
        try:
            fact = self._read(record)
        except Exception:  # noqa: BLE001 - it is parked for just this
            return ()
        return (TimerCleared(fact.attempt, fact.purpose),) if isinstance(fact, TimerFired) else ()

    def _outgoing(self, event: Emitted, now_ms: int) -> Outgoing:
        topic, key = emitted_route(event)
        if isinstance(event, TimerCleared):
            return Outgoing(topic, key.encode(), None, [])
        encoded = self._codec.encode(event, source=self._source, time_ms=now_ms, subject=_subject(event, key))
        return Outgoing(topic, key.encode(), encoded.value, encoded.headers)


@lru_cache(maxsize=16384)
def _record_key(key: JobKey) -> bytes:
    """The bytes of a job's key. Raises InvalidIdentity."""
    return job_key(*key.split("/")).encode()


def _subject(event: Any, key: str) -> str:
    attempt = getattr(event, "attempt", None)
    return attempt.key if attempt is not None else key
