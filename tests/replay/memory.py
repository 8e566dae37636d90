"""A history in memory, written as the decider would have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from schemas.codec import FINGERPRINT, Codec, FixedIds
from schemas.decisions import Emitted
from schemas.policy import Policy
from schemas.topics import DECISION_LOG, JOURNAL
from streams.records import Incoming, Outgoing
from streams.replay.history import StoredRecord
from streams.run.worker import Worker
from tests.decide.story import Story

CODEC = Codec(FixedIds())


class Store:
    """A state store for one job."""

    def __init__(self) -> None:
        self.held: dict[str, bytes] = {}

    def get_bytes(self, key: str) -> bytes | None:
        return self.held.get(key)

    def set_bytes(self, key: str, value: bytes) -> None:
        self.held[key] = value


class MemoryHistory:
    """One partition of each topic."""

    def __init__(self, journal: list[StoredRecord], decisions: list[StoredRecord], decided: int | None = None) -> None:
        self.facts = journal
        self.decided = decisions
        self._up_to = len(journal) if decided is None else decided

    def partitions(self) -> int:
        return 1

    def decided_up_to(self, partition: int) -> int:  # noqa: ARG002 - there is only one
        return self._up_to

    def journal(self, partition: int) -> Iterator[StoredRecord]:  # noqa: ARG002
        return iter(self.facts)

    def decisions(self, partition: int) -> Iterator[StoredRecord]:  # noqa: ARG002
        return iter(self.decided)


def record(story: Story, garbage_at: int | None = None) -> MemoryHistory:
    """Run the story's facts through the real worker; a record of garbage lies at `garbage_at`."""
    journal = [
        StoredRecord(JOURNAL.name, 0, i, recorded_ms, b"local/7", CODEC.encode_value(fact), "")
        for i, (fact, recorded_ms) in enumerate(story.facts)
    ]
    if garbage_at is not None:
        bad = StoredRecord(JOURNAL.name, 0, 0, journal[garbage_at].timestamp_ms, b"local/7", b"garbage", "")
        journal.insert(garbage_at, bad)
    journal = [replace(entry, offset=i) for i, entry in enumerate(journal)]
    return MemoryHistory(journal, decide_all(journal, {story.policy.digest(): story.policy}))


def decide_all(journal: list[StoredRecord], policies: Mapping[str, Policy]) -> list[StoredRecord]:
    worker, store = Worker(CODEC, policies, "test"), Store()
    written: list[Outgoing] = []
    for entry in journal:
        incoming = Incoming(entry.topic, 0, entry.offset, entry.key, entry.value, [], entry.timestamp_ms)
        written += worker.handle(incoming, store)
        worker.write_states()
    decisions = [out for out in written if out.topic is DECISION_LOG]
    return [
        StoredRecord(DECISION_LOG.name, 0, i, 0, out.key, out.value, dict(out.headers)[FINGERPRINT].decode())
        for i, out in enumerate(decisions)
    ]


def change(entry: StoredRecord, **changes: object) -> StoredRecord:
    """The same record with another event in it."""
    event: Emitted = replace(CODEC.decode(entry.value or b"", entry.headers), **changes)
    return replace(entry, value=CODEC.encode_value(event))
