"""What watch remembers of an attempt lasts as long as its job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from schemas.bookkeeping import SourceRead
from schemas.codec import Codec, FixedIds
from schemas.vocabulary import BlindKind
from streams.watch import jobs
from streams.watch.jobs import read_positions
from streams.watch.memories import Memories, of_blindness, of_proposal
from streams.watch.own import OwnFormats
from tests.watch.parts import T0, attempt, attempt_view, job_view

FILE = "file:/logs/slurm-7.out"


def test_what_is_remembered_of_closed_jobs_is_taken_out_once() -> None:
    open_now, closed = attempt(0, "7"), attempt(0, "8")
    kept = [FILE, of_proposal(open_now), of_blindness(open_now, BlindKind.UNKNOWN_FORMAT)]
    gone = [of_blindness(closed, BlindKind.UNKNOWN_FORMAT), of_proposal(closed)]
    memories = Memories([*kept, gone[0]])
    memories.wrote(gone[1])
    memories.wrote("loki:main")
    view = job_view(attempt_view(0, "/logs/slurm-7.out"))
    assert memories.forget([view]) == gone
    assert memories.forget([view]) == []
    assert memories.forget([]) == sorted(kept[1:])


@dataclass(frozen=True)
class Message:
    """What Kafka gives of a position; without one it is a tombstone."""

    name: str
    position: SourceRead | None
    codec: Codec

    def key(self) -> bytes:
        return self.name.encode()

    def value(self) -> bytes | None:
        return None if self.position is None else self._encoded.value

    def headers(self) -> Any:
        return self._encoded.headers

    @property
    def _encoded(self) -> Any:
        return self.codec.encode(self.position, source="test", time_ms=0, subject=self.name)


def test_a_position_that_was_taken_out_is_none_at_the_next_start(monkeypatch: pytest.MonkeyPatch) -> None:
    codec = Codec(FixedIds())
    memory = OwnFormats().use(attempt(0), r"^it (?P<step>\d+) ", T0)
    messages: list[Message] = []

    class Consumer:
        def close(self) -> None:
            pass

    class View:
        def __init__(self, _consumer: Any, _topics: Sequence[Any], take: Callable[[Message], None]) -> None:
            self.take = take

        def read_to_stable_end(self) -> None:
            for message in messages:
                self.take(message)

    monkeypatch.setattr(jobs, "TopicView", View)
    monkeypatch.setattr(jobs, "reader", lambda *_: Consumer())
    messages.append(Message(memory.source, memory, codec))
    assert read_positions("", codec) == {memory.source: memory}
    messages.append(Message(memory.source, None, codec))
    assert read_positions("", codec) == {}
