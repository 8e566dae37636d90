"""All ways of a line through watch and diagnose. Whatever comes out must fit its event, as it would for Kafka."""

from __future__ import annotations

import json
import os
import random
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC
from pathlib import Path

from schemas.bookkeeping import RecordParked
from schemas.codec import Codec, FixedIds
from schemas.decisions import JobView
from schemas.nodes import NodeFaultSeen
from schemas.vocabulary import AttemptState
from streams.diagnose.formats import detect
from streams.diagnose.matching import general_matcher, known_formats
from streams.diagnose.report import diagnosis_json, diagnosis_text
from streams.diagnose.verdict import diagnose
from streams.sources.lines import Batch, Cursor, SourceLine
from streams.sources.records import Fields, read_record
from streams.watch.events import LineFact
from streams.watch.guessing import guess
from streams.watch.nodes.lines import NodeLines
from streams.watch.nodes.logs import NodeLogs
from streams.watch.source import Source
from streams.watch.store import StoreReader
from streams.watch.telling import Reading
from streams.watch.throttle import Throttle
from streams.watch.whose.claims import Claim, claims_of
from streams.watch.whose.labelled import Directory
from tests.fuzz.answers import read_answers
from tests.fuzz.lines import pieces
from tests.watch.parts import T0, attempt, attempt_view, job_view, matcher

TICK_MS = 1_000
TOPIC = "kafka:raw/0"


class Paths:
    """What lives as long as a process does: memory that grows here would grow in watch."""

    def __init__(self, folder: Path) -> None:
        self.now_ms = T0 + TICK_MS
        self._folder = folder
        self._codec = Codec(FixedIds())
        self._reading = Reading(matcher(), Throttle(), UTC, 2_000, 60_000)
        self._reading.own.use(attempt(0), r"(?i)(?:step|it|batch)\W+(?P<step>\d+)", T0)
        self._node_lines = NodeLines(matcher(), "local", UTC, 2_000)
        self._records = _Records()
        general_matcher(), known_formats()  # compiled before anything is measured
        self._store = StoreReader(self._records, "local", self._reading)

    def each(self) -> dict[str, Callable[[bytes, random.Random], int]]:
        """The ways by name; each takes a file's content, and returns how many events came of it."""
        return {
            "file": self.file,
            "node log": self.node_log,
            "records": self.records,
            "answers of stores": self.answers,
            "diagnose": self.diagnosis,
            "formats detect": self.formats,
            "what is proposed": lambda data, _chance: int(guess(data) is not None),
        }

    def write_long(self, piece: bytes, times: int) -> int:
        """Write one line of so many pieces, for `each_of_long`; return its size."""
        path = self._folder / "long.out"
        with path.open("wb") as file:
            for _ in range(times):
                file.write(piece)
        return path.stat().st_size

    def each_of_long(self) -> dict[str, Callable[[], int]]:
        """The ways of a file that no memory should hold whole."""
        path = self._folder / "long.out"
        return {
            "file": lambda: self._followed(path),
            "diagnose": lambda: self._diagnosed(path),
            "formats detect": lambda: self._detected(path),
        }

    def file(self, data: bytes, chance: random.Random) -> int:
        """A followed file that grows in pieces, is truncated, rotated, taken away, and ends."""
        path = self._folder / "slurm-7.out"
        path.write_bytes(b"")
        source, count = Source(str(path), self._reading), 0
        for piece in pieces(data, chance):
            _disturb(path, chance)
            with path.open("ab") as file:
                file.write(piece)
            count += self._written(self._turns(source, _claim(path, over=False)))
        self.now_ms += 10 * TICK_MS
        count += self._written(self._turns(source, _claim(path, over=True)))
        self._codec.encode(source.position(self.now_ms), source="fuzz", time_ms=0, subject="7")
        source.close()
        return count

    def node_log(self, data: bytes, chance: random.Random) -> int:
        path = self._folder / "kern.log"
        path.write_bytes(b"")
        logs, count = NodeLogs((str(path),), 0.001, self._node_lines, {}, "login1"), 0
        for piece in pieces(data, chance):
            with path.open("ab") as file:
                file.write(piece)
            self.now_ms += TICK_MS
            before = -1
            while before != count:
                before, self.now_ms = count, self.now_ms + 10
                count += self._written(logs.turn(self.now_ms))
        logs.close()
        return count

    def records(self, data: bytes, chance: random.Random) -> int:
        """The lines as records of a topic, as they are and as a collector wraps them."""
        count, lines = 0, data.split(b"\n")
        for low in range(0, len(lines), 200):
            self._records.add(lines[low : low + 200], self.now_ms, chance)
            self.now_ms += TICK_MS
            count += self._told()
        return count

    def answers(self, data: bytes, chance: random.Random) -> int:
        """What VictoriaLogs and Loki might answer, as lines of a source."""
        count = 0
        for lines in read_answers(data, chance):
            self._records.give(Batch(lines, (Cursor(TOPIC, "t", 0, T0),)))
            count += len(lines) + self._told()
        return count

    def diagnosis(self, data: bytes, _chance: random.Random) -> int:
        path = self._folder / "dead.out"
        path.write_bytes(data)
        return self._diagnosed(path)

    def formats(self, data: bytes, _chance: random.Random) -> int:
        path = self._folder / "unknown.out"
        path.write_bytes(data)
        return self._detected(path)

    def _followed(self, path: Path) -> int:
        source = Source(str(path), self._reading)
        count = self._written(self._turns(source, _claim(path, over=False)))
        source.close()
        return count

    def _diagnosed(self, path: Path) -> int:
        said = diagnose([str(path)], general_matcher(), self.now_ms, _told)
        assert json.dumps(diagnosis_json(said), ensure_ascii=False).encode()
        return len(list(diagnosis_text(said)))

    def _detected(self, path: Path) -> int:
        return detect(str(path), *known_formats(), _told).lines

    def _turns(self, source: Source, claim: Claim) -> Iterator[LineFact | RecordParked]:
        self.now_ms += TICK_MS
        yield from source.turn(self.now_ms, claim)
        while source.more:
            yield from source.turn(self.now_ms, claim)

    def _told(self) -> int:
        """Have the source's new lines told, and its place."""
        directory = Directory.of("local", [_view(Path("/logs/slurm-7.out"), over=False)])
        count = self._written(self._store.turn(lambda: self.now_ms, directory, lambda _path: False))
        for position in self._store.positions(self.now_ms):
            self._codec.encode(position, source="fuzz", time_ms=0, subject="7")
        return count

    def _written(self, events: Iterator[LineFact | RecordParked] | Iterator[NodeFaultSeen]) -> int:
        count = 0
        for event in events:
            count += 1
            self._codec.encode(event, source="fuzz", time_ms=0, subject="7")
        return count


class _Records:
    """A topic's batches."""

    name = "kafka:raw"

    def __init__(self) -> None:
        self._batches: deque[Batch] = deque()
        self._offset = 0

    def add(self, values: list[bytes], now_ms: int, chance: random.Random) -> None:
        lines = []
        for value in values:
            self._offset += 1
            for index, read in enumerate(read_record(value, Fields())):
                labels = read.labels if chance.random() < 0.3 else replace(read.labels, job_id="7", attempt=0)
                at_ms = now_ms if read.at_ns is None else read.at_ns // 1_000_000
                identity = f"t:{self._offset}:{index}"
                lines.append(
                    SourceLine(read.text, at_ms, labels, TOPIC, 0, self._offset, index, identity, TOPIC, self._offset)
                )
        self._batches.append(Batch(tuple(lines), (Cursor(TOPIC, "t", 0, self._offset + 1),)))

    def give(self, batch: Batch) -> None:
        self._batches.append(batch)

    def take(self) -> Batch | None:
        return self._batches.popleft() if self._batches else None

    def close(self) -> None:
        self._batches.clear()


def _disturb(path: Path, chance: random.Random) -> None:
    what = chance.random()
    if what < 0.05:
        os.truncate(path, 0)
    elif what < 0.1:
        os.truncate(path, path.stat().st_size // 2)
    elif what < 0.15:
        path.rename(path.with_suffix(".1"))
    elif what < 0.2:
        path.unlink()


def _view(path: Path, *, over: bool) -> JobView:
    state = AttemptState.FAILED if over else AttemptState.RUNNING
    return job_view(attempt_view(0, path, state=state, end_ms=2 * T0 if over else None))


def _claim(path: Path, *, over: bool) -> Claim:
    return claims_of([_view(path, over=over)])[str(path)]


def _told(_name: str, _read: int, _size: int) -> None:
    """Nobody looks on."""
