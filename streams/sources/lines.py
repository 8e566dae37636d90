"""What every log source gives: lines with their labels, in order, and how far all of them were given.

A source is read by `follow`, which goes on from durable cursors and never raises for what a source does: it says so in
`state` and `problem`, waits, and tries again until it is told to stop. `query` looks at one job's lines, now.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b
from threading import Event
from typing import Protocol

RETRY_S = (0.5, 1.0, 2.0, 5.0, 10.0)
"""Waits between tries of a source that does not answer; the last one repeats."""
LONGEST_LINE = 1 << 20
"""Bytes of one record that are looked at."""


class SourceState(StrEnum):
    """How a source was at the last look."""

    FOLLOWED = "followed"
    DOWN = "down"
    DENIED = "denied"
    BROKEN = "broken"


class SourceProblem(Exception):
    """A source does not give what it was asked for. The message says what was found and names its address."""

    def __init__(self, state: SourceState, problem: str) -> None:
        super().__init__(problem)
        self.state = state


@dataclass(frozen=True)
class Labels:
    """What the collector says of a line; None for what it does not say."""

    job_id: str | None = None
    filename: str | None = None
    attempt: int | None = None
    """slurm_job_attempt: Slurm's restart count."""
    node: str | None = None
    rank: int | None = None


@dataclass(frozen=True)
class SourceLine:
    """One record of a source, and its durable place. The same record read again has the same place and identity."""

    text: bytes
    at_ms: int
    """The record's own time, as the collector or the store gives it."""
    labels: Labels
    source: str
    """What places are counted in: a partition, or one stream of a store."""
    epoch: int
    offset: int
    index: int
    """Tells apart several records at one offset, in order."""
    identity: str
    """The same for the same record, whatever else was read with it."""
    cursor: str
    """The cursor that holds this line's place."""
    mark: int
    """The line's place in that cursor's own count: holding the cursor at it holds the line."""


@dataclass(frozen=True)
class Cursor:
    """How far one source was read: everything before `offset` was given. Durable."""

    source: str
    identity: str = ""
    epoch: int = 0
    offset: int = 0


@dataclass(frozen=True)
class Batch:
    """What one look gave. `cursors` are where the source stands after these lines."""

    lines: tuple[SourceLine, ...]
    cursors: tuple[Cursor, ...]
    state: SourceState = SourceState.FOLLOWED
    problem: str = ""
    caught_up: bool = False
    """Nothing more is there to read at once."""


@dataclass(frozen=True)
class Wanted:
    """Which lines a query is for: those of a job by any of its ids, or of its files; from `start_ms` to `end_ms`."""

    job_ids: tuple[str, ...]
    filenames: tuple[str, ...]
    start_ms: int
    end_ms: int


@dataclass(frozen=True)
class Answer:
    """The newest lines that a query found, oldest first; `problem` where it could not look at all of them."""

    lines: tuple[SourceLine, ...]
    problem: str = ""


class LogSource(Protocol):
    """One place that lines come from."""

    @property
    def name(self) -> str:
        """The source in positions, such as `loki:main`."""

    def follow(self, cursors: Mapping[str, Cursor], since_ms: int, stop: Event) -> Iterator[Batch]:
        """Give batches until `stop` is set, from the cursors; where there is none, from `since_ms`."""

    def query(self, wanted: Wanted, limit: int) -> Answer:
        """Return the newest lines of a job, at most `limit`. May be called from any thread, beside `follow`."""

    def sample(self, start_ms: int, end_ms: int, limit: int) -> Answer:
        """Return some of the newest lines of all jobs, to show what labels they carry."""

    def close(self) -> None:
        """Let go of connections. Call it after `follow` has ended."""


def stream_of(labels: Labels) -> str:
    """The stream that a line belongs to: what a collector reads from one file on one node is in order."""
    return f"{labels.filename or labels.job_id or ''}{f'@{labels.node}' if labels.node else ''}"


def digest(*parts: bytes) -> str:
    """A short name of content."""
    return blake2b(b"\x1f".join(parts), digest_size=8).hexdigest()


def of_wanted(line: SourceLine, wanted: Wanted) -> bool:
    """Whether a query is for this line."""
    labels = line.labels
    if not wanted.start_ms <= line.at_ms <= wanted.end_ms:
        return False
    return labels.job_id in wanted.job_ids or labels.filename in wanted.filenames


def newest(lines: Sequence[SourceLine], limit: int) -> tuple[SourceLine, ...]:
    """The newest of some lines, oldest first."""
    return tuple(sorted(lines, key=lambda line: (line.at_ms, line.offset, line.index))[-limit:])
