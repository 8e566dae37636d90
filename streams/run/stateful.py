"""What the workers of all deciders do alike: state from bytes and back, one record decided, or parked.

A worker never raises for a record that can't be handled: before any state is set it parks the record, in the same
transaction. What can't be known (an unknown schema, policy, logic or state version) and a flood of parked records stop
the worker instead.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, Protocol, TypeVar

from schemas.codec import Codec, UnknownSchema
from streams.decide.decide import MissingPolicy
from streams.parking import Parking, refuse_oversize
from streams.records import Incoming, Outgoing
from streams.run.state_codec import StateCodec, UnknownState

DECODED_LIMIT = 2000
"""Keys whose decoded state is kept at hand, the most recently written ones."""

State = TypeVar("State")
Event = TypeVar("Event")
Read = TypeVar("Read")


class Store(Protocol):
    """The key's place in the state store, good until the next commit."""

    def get_bytes(self, key: str) -> bytes | None: ...

    def set_bytes(self, key: str, value: bytes) -> None: ...


Place = tuple[int, bytes]
"""A partition and a key: one that was written wrongly may have another state in another partition."""
StoreOf = Callable[[Incoming], Store]


class StatefulWorker(ABC, Generic[Read, State, Event]):
    """Decides records. `source` names the worker in what it writes, `state_key` its state in the store."""

    def __init__(self, codec: Codec, states: StateCodec[State], source: str, state_key: str) -> None:
        self._codec = codec
        self._states = states
        self._source = source
        self._state_key = state_key
        self._decoded: dict[bytes, tuple[bytes, State]] = {}
        self._unwritten: dict[Place, tuple[Store, State]] = {}
        self._parking = Parking(codec, source)

    def handle_all(self, records: Sequence[Incoming], store_of: StoreOf) -> Iterator[list[Outgoing]]:
        """Give for each record what `handle` gives, in its order.

        All are read, then all decided, then all written, unless one of them can't be: then one is handled at a time.
        Nothing is changed before, so that nothing need be taken back. Raises only what must stop the worker.
        """
        handled: Iterable[list[Outgoing]]
        try:
            handled = self._together(records, store_of)
        except Exception:  # noqa: BLE001 - what it is, and whose, is seen when they are handled one by one
            handled = (self.handle(record, store_of(record)) for record in records)
        return iter(handled)

    def _together(self, records: Sequence[Incoming], store_of: StoreOf) -> list[list[Outgoing]]:
        for record in records:
            refuse_oversize(record)
        read = [self._read(record) for record in records]
        changed: dict[Place, tuple[Store, State]] = {}
        decided = []
        for record, fact in zip(records, read, strict=True):
            at = record.partition, record.key
            store, state = changed.get(at) or self._known(record, store_of)
            after, events = self._decide(record, fact, state)
            changed[at] = store, after
            decided.append((record.recorded_ms, events))
        written = [[self._outgoing(event, now_ms) for event in events] for now_ms, events in decided]
        self._parking.handled(len(records))
        self._unwritten |= changed
        return written

    def handle(self, record: Incoming, store: Store) -> list[Outgoing]:
        """Return what to write for one record; its key's new state waits for `write_states`.

        Raises only what must stop the worker.
        """
        store, state = self._known(record, lambda _: store)
        try:
            refuse_oversize(record)
            after, events = self._decide(record, self._read(record), state)
            outgoing = [self._outgoing(event, record.recorded_ms) for event in events]
        except (MissingPolicy, UnknownSchema, UnknownState):
            raise
        except Exception as error:  # noqa: BLE001 - whatever a record does to us, it is parked and its key told so
            return self._park(record, state, error, store)
        self._parking.handled()
        self._unwritten[record.partition, record.key] = (store, after)
        return outgoing

    def write_states(self) -> None:
        """Put the states of all keys that were handled since the last call into their stores."""
        for (_, key), (store, state) in self._unwritten.items():
            self._write_state(key, state, store)
        self._unwritten.clear()

    @abstractmethod
    def _read(self, record: Incoming) -> Read:
        """What the record says. Raises for one that can't be handled."""

    @abstractmethod
    def _decide(self, record: Incoming, fact: Read, state: State | None) -> tuple[State, Iterable[Event]]:
        """The new state and what was concluded. Raises for a record that can't be handled."""

    @abstractmethod
    def _parked(self, record: Incoming, state: State | None, reason: str) -> tuple[State, Iterable[Event]]:
        """What follows from a record that is parked; it must not raise."""

    @abstractmethod
    def _outgoing(self, event: Event, now_ms: int) -> Outgoing:
        """The record of an event."""

    def _known(self, record: Incoming, store_of: StoreOf) -> tuple[Store, State | None]:
        """The place of the key in this partition, and its state: as decided since the last commit, or as stored."""
        unwritten = self._unwritten.get((record.partition, record.key))
        if unwritten is not None:
            return unwritten
        store = store_of(record)
        return store, self._load(record.key, store)

    def _load(self, key: bytes, store: Store) -> State | None:
        """The stored state, decoded only where it is not byte for byte what this worker wrote last."""
        held = store.get_bytes(self._state_key)
        if held is None:
            return None
        written, state = self._decoded.get(key, (b"", None))
        return state if state is not None and written == held else self._states.load(held)

    def _write_state(self, key: bytes, state: State, store: Store) -> None:
        data = self._states.dump(state)
        store.set_bytes(self._state_key, data)
        self._decoded.pop(key, None)
        self._decoded[key] = (data, state)
        if len(self._decoded) > DECODED_LIMIT:
            self._decoded.pop(next(iter(self._decoded)))

    def _park(self, record: Incoming, state: State | None, error: Exception, store: Store) -> list[Outgoing]:
        reason, parked = self._parking.park(record, error)
        after, events = self._parked(record, state, reason)
        self._unwritten[record.partition, record.key] = (store, after)
        return [parked, *(self._outgoing(event, record.recorded_ms) for event in events)]
