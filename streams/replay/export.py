"""Export files: the journal, the decisions and the policies of a time, to verify without Kafka or a registry.

One Avro container file, compressed; closed months may move to such files and still be replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from fastavro import reader, writer

from schemas.policy import Policy
from schemas.records import schema_of
from schemas.topics import DECISION_LOG, JOURNAL, POLICIES
from streams.replay.history import History, HistoryUnreadable, StoredRecord

META = "recovery.export"
FORMAT = "1"
PARTITIONS = "recovery.partitions"


@dataclass(frozen=True)
class _Exported:
    """One line of an export: a record, or (topic `decided`) how far a partition had been decided."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes
    value: bytes | None
    fingerprint: str


def export(history: History, policies: dict[str, Policy], path: Path, report: Callable[[str], None]) -> int:
    """Write all of `history` to `path`, whole or not at all; return the number of records."""
    draft = path.with_name(path.name + ".part")
    count = 0

    def lines() -> Iterator[dict[str, Any]]:
        nonlocal count
        for digest, policy in policies.items():
            yield asdict(_Exported(POLICIES.name, 0, 0, 0, digest.encode(), policy.document(), ""))
        for partition in range(history.partitions()):
            yield asdict(_Exported("decided", partition, history.decided_up_to(partition), 0, b"", None, ""))
            for record in (*history.journal(partition), *history.decisions(partition)):
                count += 1
                yield asdict(record)
            report(f"partition {partition}: {count} records so far")

    metadata = {META: FORMAT, PARTITIONS: str(history.partitions())}
    with draft.open("wb") as file:
        writer(file, schema_of(_Exported), lines(), codec="deflate", metadata=metadata)
    draft.replace(path)
    return count


class FileHistory:
    """History from an export file. Raises HistoryUnreadable for a file that is none."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._decided: dict[int, int] = {}
        self._held: tuple[int, list[StoredRecord]] = (-1, [])
        self._partitions = 0
        self.policies: dict[str, Policy] = {}
        for record in self._records():
            if record.topic == "decided":
                self._decided[record.partition] = record.offset
            elif record.topic == POLICIES.name:
                self.policies[record.key.decode()] = Policy.parse(record.value or b"")
        unmarked = sorted(set(range(self._partitions)) - self._decided.keys())
        if unmarked or not self._decided:
            which = f"partition {unmarked[0]}" if unmarked else "any partition"
            raise HistoryUnreadable(f"{path} does not say how far {which} had been decided: it is not the whole export")

    def partitions(self) -> int:
        return self._partitions

    def decided_up_to(self, partition: int) -> int:
        return self._decided[partition]

    def journal(self, partition: int) -> Iterator[StoredRecord]:
        return self._of(JOURNAL.name, partition)

    def decisions(self, partition: int) -> Iterator[StoredRecord]:
        return self._of(DECISION_LOG.name, partition)

    def _of(self, topic: str, partition: int) -> Iterator[StoredRecord]:
        """The records of one topic partition; the partition in hand is kept in memory, as both topics are read."""
        if self._held[0] != partition:
            self._held = (partition, [record for record in self._records() if record.partition == partition])
        return (record for record in self._held[1] if record.topic == topic)

    def _records(self) -> Iterator[StoredRecord]:
        try:
            with self._path.open("rb") as file:
                container = reader(cast(BinaryIO, file))
                if container.metadata.get(META) != FORMAT:
                    raise HistoryUnreadable(f"{self._path} is no export of this version; make one with `replay export`")
                self._partitions = int(str(container.metadata.get(PARTITIONS, "0")))
                for line in container:
                    yield StoredRecord(**cast(dict[str, Any], line))
        except OSError as error:
            raise HistoryUnreadable(f"{self._path}: {error.strerror}") from error
        except (ValueError, EOFError) as error:
            raise HistoryUnreadable(f"{self._path} is no export or is cut short: {error}") from error
