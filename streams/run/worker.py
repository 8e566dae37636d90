"""The stateful function of the attempt decider: raw bytes in, records for several topics out.

It never raises for a record that can't be handled: before any state is set it parks the record, in the same
transaction, and quarantines the job. What can't be known (an unknown schema, policy, logic or state version) and a
flood of parked records stop the worker instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, cast, get_args

from schemas.codec import Codec, UnknownSchema
from schemas.decisions import Emitted, TimerCleared
from schemas.facts import Fact, TimerFired, job_of
from schemas.identity import job_key
from schemas.policy import Policy
from schemas.topics import emitted_route
from streams.decide.decide import MissingPolicy, Outcome, decide, park
from streams.decide.state import JobState
from streams.parking import Parking
from streams.records import Incoming, Outgoing
from streams.run.state_codec import UnknownState, dump, load

DECODED_LIMIT = 2000
"""Jobs whose decoded state is kept at hand, the most recently written ones."""

STATE_KEY = "job"
FACT_TYPES: tuple[type, ...] = get_args(Fact)


class Store(Protocol):
    """The job's place in the state store."""

    def get_bytes(self, key: str) -> bytes | None: ...

    def set_bytes(self, key: str, value: bytes) -> None: ...


class Worker:
    """Decides one record at a time."""

    def __init__(self, codec: Codec, policies: Mapping[str, Policy], name: str) -> None:
        self._codec = codec
        self._policies = policies
        self._source = f"recovery/decide/{name}"
        self._decoded: dict[bytes, tuple[bytes, JobState]] = {}
        self._parking = Parking(codec, self._source)

    def handle(self, record: Incoming, store: Store) -> list[Outgoing]:
        """Return what to write for one record, the state being set. Raises only what must stop the worker."""
        state = self._load(record.key, store)
        try:
            outcome = self._decide(record, state)
        except (MissingPolicy, UnknownSchema, UnknownState):
            raise
        except Exception as error:  # noqa: BLE001 - whatever a record does to us, it is parked and its job quarantined
            return self._park(record, state, error, store)
        self._parking.handled()
        self._save(record.key, outcome[0], store)
        return [self._outgoing(event, record.recorded_ms) for event in outcome[1]]

    def _load(self, key: bytes, store: Store) -> JobState | None:
        """The state in the store; decoded only where it is not byte for byte what this worker wrote last."""
        held = store.get_bytes(STATE_KEY)
        if held is None:
            return None
        written, state = self._decoded.get(key, (b"", None))
        return state if state is not None and written == held else load(held)

    def _save(self, key: bytes, state: JobState, store: Store) -> None:
        data = dump(state)
        store.set_bytes(STATE_KEY, data)
        self._decoded.pop(key, None)
        self._decoded[key] = (data, state)
        if len(self._decoded) > DECODED_LIMIT:
            self._decoded.pop(next(iter(self._decoded)))

    def _decide(self, record: Incoming, state: JobState | None) -> Outcome:
        fact = self._fact(record)
        key = job_of(fact)
        job_key(*key.split("/"))
        if key.encode() != record.key:
            raise ValueError(f"the record's key {record.key!r} is not its job, {key!r}")
        return decide(state, fact, record.recorded_ms, self._policies)

    def _fact(self, record: Incoming) -> Fact:
        if record.value is None:
            raise ValueError("the journal has no tombstones")
        decoded = self._codec.decode(record.value, record.headers)
        if not isinstance(decoded, FACT_TYPES):
            raise TypeError(f"{type(decoded).__name__} is no fact")
        return cast(Fact, decoded)

    def _park(self, record: Incoming, state: JobState | None, error: Exception, store: Store) -> list[Outgoing]:
        reason, parked = self._parking.park(record, error)
        key = record.key.decode("utf-8", "replace")
        place = (record.topic, record.partition, record.offset)
        after, events = park(state, key, place, reason, record.recorded_ms)
        self._save(record.key, after, store)
        return [parked, *self._withdrawn(record), *(self._outgoing(event, record.recorded_ms) for event in events)]

    def _withdrawn(self, record: Incoming) -> list[Outgoing]:
        """The tombstone of a timer whose firing was parked: else the relay would fire it, and we park it, for ever."""
        try:
            fact = self._fact(record)
        except Exception:  # noqa: BLE001 - it is parked for just this
            return []
        if not isinstance(fact, TimerFired):
            return []
        return [self._outgoing(TimerCleared(fact.attempt, fact.purpose), record.recorded_ms)]

    def _outgoing(self, event: Emitted, now_ms: int) -> Outgoing:
        topic, key = emitted_route(event)
        if isinstance(event, TimerCleared):
            return Outgoing(topic, key.encode(), None, [])
        encoded = self._codec.encode(event, source=self._source, time_ms=now_ms, subject=_subject(event, key))
        return Outgoing(topic, key.encode(), encoded.value, encoded.headers)


def _subject(event: Any, key: str) -> str:
    attempt = getattr(event, "attempt", None)
    return attempt.key if attempt is not None else key
