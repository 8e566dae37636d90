"""The mix as history: journal records, and the decisions that the real worker writes for them, in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from bench.mix import facts
from bench.stories import POLICIES
from schemas.codec import FINGERPRINT, Codec, FixedIds
from schemas.facts import job_of
from schemas.topics import DECISION_LOG, JOURNAL, partition_of
from streams.records import Incoming, Outgoing
from streams.replay.history import StoredRecord
from streams.run.worker import Worker


class MemoryStore:
    """A state store for one job."""

    def __init__(self) -> None:
        self.held: dict[str, bytes] = {}

    def get_bytes(self, key: str) -> bytes | None:
        return self.held.get(key)

    def set_bytes(self, key: str, value: bytes) -> None:
        self.held[key] = value


@dataclass(frozen=True)
class Step:
    """What deciding one record leaves: the state's bytes, and the records to write."""

    state: bytes
    outgoing: tuple[Outgoing, ...]


@dataclass
class MixHistory:
    """History with all partitions, as replay wants it."""

    codec: Codec
    facts_at: list[list[StoredRecord]] = field(default_factory=lambda: [[] for _ in range(JOURNAL.partitions)])
    decisions_at: list[list[StoredRecord]] = field(default_factory=lambda: [[] for _ in range(JOURNAL.partitions)])

    def partitions(self) -> int:
        return JOURNAL.partitions

    def decided_up_to(self, partition: int) -> int:
        return len(self.facts_at[partition])

    def journal(self, partition: int) -> Iterator[StoredRecord]:
        return iter(self.facts_at[partition])

    def decisions(self, partition: int) -> Iterator[StoredRecord]:
        return iter(self.decisions_at[partition])


def journal_records(codec: Codec, sets: int, first_job: int = 1) -> Iterator[Incoming]:
    """The mix as records of the journal, in the order of their times."""
    ends = [0] * JOURNAL.partitions
    for timed in facts(sets, first_job):
        key = job_of(timed.fact)
        encoded = codec.encode(timed.fact, source="bench", time_ms=timed.recorded_ms, subject=key)
        partition = partition_of(key.encode(), JOURNAL.partitions)
        yield Incoming(
            JOURNAL.name,
            partition,
            ends[partition],
            key.encode(),
            encoded.value,
            encoded.headers,
            timed.recorded_ms,
        )
        ends[partition] += 1


def steps(records: list[Incoming], codec: Codec) -> list[Step]:
    """What the real worker leaves for each record."""
    worker = Worker(codec, POLICIES, "0")
    stores: dict[bytes, MemoryStore] = {}
    done = []
    for record in records:
        store = stores.setdefault(record.key, MemoryStore())
        outgoing = worker.handle(record, store)
        worker.write_states()
        done.append(Step(store.held["job"], tuple(outgoing)))
    return done


def mix_history(sets: int) -> MixHistory:
    """The mix and its decisions."""
    history = MixHistory(Codec(FixedIds()))
    records = list(journal_records(history.codec, sets))
    for record, step in zip(records, steps(records, history.codec), strict=True):
        history.facts_at[record.partition].append(
            _stored(JOURNAL.name, record.partition, record.offset, record.recorded_ms, record)
        )
        decided = history.decisions_at[record.partition]
        for out in step.outgoing:
            if out.topic is DECISION_LOG:
                decided.append(_stored(DECISION_LOG.name, record.partition, len(decided), record.recorded_ms, out))
    return history


def _stored(topic: str, partition: int, offset: int, at_ms: int, record: Incoming | Outgoing) -> StoredRecord:
    fingerprint = dict(record.headers)[FINGERPRINT].decode()
    return StoredRecord(topic, partition, offset, at_ms, record.key, record.value, fingerprint)
