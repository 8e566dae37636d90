"""Records beside facts and decisions: policies, read positions, parked records and the controller's heartbeat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated


@dataclass(frozen=True)
class PolicyPublished:
    """An immutable policy document, or (under `current/<cluster>`) the pointer to the one in force."""

    event_id: str
    cause: str
    digest: Annotated[str, "sha256 of the canonical document"]
    logic: Annotated[int, "deciding rules to use from now on; 0 in a document record"]
    document: Annotated[bytes, "canonical JSON; empty in a pointer"]


@dataclass(frozen=True)
class SourceRead:
    """How far watch has read one source. The value of `recovery.positions`."""

    event_id: str
    cause: str
    source: str
    identity: Annotated[str, "device, inode and a hash of the first bytes"]
    epoch: Annotated[int, "counts identities and truncations"]
    offset: Annotated[int, "bytes whose facts are all written"]
    line_no: Annotated[int, "lines before the offset"]
    line_ms: Annotated[int | None, "the last timestamp read, which lines without one inherit"]
    read_ms: int


@dataclass(frozen=True)
class RecordParked:
    """A record that could not be handled, as it was. The value of `recovery.parked`."""

    event_id: str
    cause: str
    topic: str
    partition: int
    offset: int
    key: bytes
    value: bytes
    headers: Annotated[tuple[str, ...], "name=value, in order"]
    reason: str
    parked_ms: int


@dataclass(frozen=True)
class ClusterSeen:
    """The scheduler controller's heartbeat: it can see its cluster."""

    event_id: str
    cause: str
    cluster: str
    jobs: int
    unknown: Annotated[bool, "Slurm did not answer: nothing is known, nothing is done"]
    detail: str
    seen_ms: int
