"""Answers a decider's question: does this silent attempt still print?

The files are looked at on the mounts that watch has. What can't be seen is said as an error, never guessed: an
attempt that nobody can see is left alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import structlog
from confluent_kafka import Message, TopicPartition

from schemas.codec import Codec, UnreadableRecord
from schemas.decisions import OutputAsked
from schemas.facts import OutputChecked
from schemas.identity import Position, derived_id
from schemas.topics import REQUESTS
from streams.kafka import REQUEST_TIMEOUT_S, decode, messages, place, reader

log = structlog.get_logger(__name__)

STILL_WAITED_FOR_MS = 60_000
"""Questions older than this at the start of watch are not answered any more: their deciders have given up."""


class Questions:
    """Follows `recovery.requests` for questions about output. Not thread-safe."""

    def __init__(self, bootstrap: str, codec: Codec) -> None:
        """Raises KafkaException where Kafka does not answer."""
        self._codec = codec
        self._consumer = reader(bootstrap, "recovery-watch-requests")
        since_ms = time.time_ns() // 1_000_000 - STILL_WAITED_FOR_MS
        wanted = [TopicPartition(REQUESTS.name, partition, since_ms) for partition in range(REQUESTS.partitions)]
        self._consumer.assign(self._consumer.offsets_for_times(wanted, timeout=REQUEST_TIMEOUT_S))

    def new(self) -> Iterator[tuple[OutputAsked, Position]]:
        """The questions that have come, without waiting."""
        for message in messages(self._consumer, 0):
            asked = self._question(message)
            if asked is not None:
                topic, partition, offset = place(message)
                yield asked, Position(f"topic:{topic}/{partition}", 0, offset)

    def close(self) -> None:
        self._consumer.close()

    def _question(self, message: Message) -> OutputAsked | None:
        try:
            event = decode(self._codec, message)
        except UnreadableRecord as error:
            log.error("unreadable request", record=place(message), error=str(error), next="it gets no answer")
            return None
        return event if isinstance(event, OutputAsked) else None


@dataclass(frozen=True)
class StoreSaid:
    """What one log source beside files says: when the attempt's newest line was written, and what it could not see."""

    source: str
    last_ms: int | None
    delay_ms: int
    problem: str
    dead: bool = False
    """It gave lines of several running attempts, and then of none: its collector may have died."""
    empty: bool = False
    """It answered, and has no line of the attempt: the attempt may well print elsewhere."""


def answer(
    asked: OutputAsked,
    position: Position,
    seen_ms: Callable[[str], int | None],
    now_ms: int,
    said: Sequence[StoreSaid] = (),
) -> OutputChecked:
    """Look at the attempt's files now. `seen_ms` says when a path was last seen to grow, if it is followed.

    `said` is what stores answer beside. Who sees a file itself need not wait for what a store may get late. Silence is
    told only by all places together: where one of them can't be seen, only recent output elsewhere is an answer.
    """
    written, unseen = _files(asked, seen_ms)
    told = [one.last_ms for one in said if one.last_ms is not None]
    if told:
        unseen = []  # they are collected from somewhere else
    problems = [*unseen, *(one.problem for one in said if one.problem and not one.empty)]
    newest_ms = max([*written, *told], default=None)
    if newest_ms is None:
        problems += [one.problem for one in said if one.empty]
        problems = problems or ["nothing was written to its files since it began"]
    recent = newest_ms is not None and now_ms - newest_ms < asked.budget_ms // 2
    return OutputChecked(
        event_id=derived_id("checked", asked.event_id),
        cause=asked.event_id,
        attempt=asked.attempt,
        position=position,
        last_output_ms=newest_ms,
        delay_ms=0 if written else max((one.delay_ms for one in said if one.last_ms is not None), default=0),
        error=None if recent or not problems else "; ".join(problems),
        checked_ms=now_ms,
    )


def _files(asked: OutputAsked, seen_ms: Callable[[str], int | None]) -> tuple[list[int], list[str]]:
    """When the attempt's files were last written, and why some can't be seen. What was written before the attempt
    began is of another: such a file has none of its output yet."""
    written: list[int] = []
    unseen: list[str] = []
    for path in asked.log_paths:
        try:
            written.append(max(Path(path).stat().st_mtime_ns // 1_000_000, seen_ms(path) or 0))
        except OSError as error:
            unseen.append(f"{path}: {error.strerror}")
    if not asked.log_paths:
        unseen.append("the scheduler names no output of this attempt")
    return [at_ms for at_ms in written if at_ms >= (asked.start_ms or 0)], unseen
