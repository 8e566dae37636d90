"""One side's turn of the decider benchmark, in a process of its own: `python -m bench.deciding_side TURN RESULT`.

The time is taken from the first fact to the last, so that neither starting nor joining the group counts.
"""

from __future__ import annotations

import json
import pickle
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.harness import cpu_s, peak_mb
from bench.history import Step
from bench.passthrough import application as passthrough
from bench.stories import POLICIES
from recovery.garbage import collect_rarely
from recovery.settings import load_settings
from schemas.codec import Codec
from schemas.registry import RegistryIds
from streams.records import Incoming, Outgoing
from streams.run.decide import application as deciders
from streams.run.stateful import StoreOf
from streams.run.worker import Worker


@dataclass(frozen=True)
class Turn:
    """What one side needs: where everything is, how many facts, and for the pass-through what they leave."""

    kind: str
    kafka: str
    registry: str
    folder: Path
    facts: int
    plan: dict[bytes, list[Step]]


class Clock:
    """Notes when the first and the last fact were handled, and stops the stream after the last."""

    def __init__(self, facts: int, stop: Callable[[], None]) -> None:
        self._stop = stop
        self._left = facts
        self.began: tuple[float, float] = (0.0, 0.0)
        self.ended: tuple[float, float] = (0.0, 0.0)
        self._facts = facts

    def start(self) -> None:
        """The first fact is to be handled, or one after it."""
        if self._left == self._facts:
            self.began = (time.perf_counter(), cpu_s())

    def tick(self) -> None:
        """A fact was handled."""
        self._left -= 1
        if self._left == 0:
            self.ended = (time.perf_counter(), cpu_s())
            self._stop()


class _Ours(Worker):
    clock: Clock

    def handle_all(self, records: Sequence[Incoming], store_of: StoreOf) -> Iterator[list[Outgoing]]:
        self.clock.start()
        for outgoing in super().handle_all(records, store_of):
            self.clock.tick()
            yield outgoing


class _Plan(dict[bytes, list[Step]]):
    clock: Clock

    def __getitem__(self, key: bytes) -> list[Step]:
        self.clock.start()
        self.clock.tick()
        return super().__getitem__(key)


def main() -> None:
    turn: Turn = pickle.loads(Path(sys.argv[1]).read_bytes())
    clock = Clock(turn.facts, lambda: app.stop())
    app = (_ours if turn.kind == "ours" else _theirs)(turn, clock)
    app.run()
    wall_s, used_s = (after - before for before, after in zip(clock.began, clock.ended, strict=True))
    Path(sys.argv[2]).write_text(json.dumps({"wall_s": wall_s, "cpu_s": used_s, "peak_mb": peak_mb()}))


def _ours(turn: Turn, clock: Clock) -> Any:
    environment = {"RECOVERY_DATA": str(turn.folder), "RECOVERY_KAFKA__BOOTSTRAP": turn.kafka}
    worker = _Ours(Codec(RegistryIds(turn.registry)), POLICIES, "0")
    worker.clock = clock
    collect_rarely()
    return deciders(load_settings(None, environment), 0, worker)


def _theirs(turn: Turn, clock: Clock) -> Any:
    plan = _Plan(turn.plan)
    plan.clock = clock
    return passthrough(turn.kafka, turn.folder / "passthrough", plan)


if __name__ == "__main__":
    main()
