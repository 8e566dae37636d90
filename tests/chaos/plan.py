"""What happens in a run, drawn from its seed: the same seed gives the same jobs, victims and moments. Pure."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from tests.chaos.jobs import KINDS, Kind

OURS = ("watch", "decide-0", "decide-1", "nodes-0", "relay", "ask", "project", "sac", "watchdog", "gateway")
PARTS = ("kafka", "registry", "postgres", "slurmctld")
SLOTS = 2
GAP_S = (1.5, 5.5)
STOPPED_S = (1.0, 12.0)
DOWN_S = (0.0, 4.0)
SAVE_EVERY = 5


class Deed(StrEnum):
    KILL = "kill -9"
    STOP = "stop and continue"
    RESTART = "kill and start again"


@dataclass(frozen=True)
class Disturbance:
    """One thing done to one victim: `after_s` counts from when the one before began, `lasts_s` until it is undone."""

    number: int
    after_s: float
    victim: str
    deed: Deed
    lasts_s: float

    def __str__(self) -> str:
        lasts = "" if self.deed is Deed.KILL else f" for {self.lasts_s:.1f} s"
        return f"#{self.number} {self.victim}: {self.deed}{lasts}"


@dataclass(frozen=True)
class Job:
    """One job of a run. Its name is the fault's id, too."""

    name: str
    kind: Kind
    after_s: float
    fault_iteration: int
    iterations: int
    step_seconds: float


def jobs(seed: int, count: int) -> tuple[Job, ...]:
    """The jobs in the order in which they are submitted; every kind comes once before one comes again."""
    chance = random.Random(f"jobs {seed}")
    deck: list[Kind] = []
    drawn = []
    for number in range(count):
        if not deck:
            deck = chance.sample(KINDS, len(KINDS))
        kind = deck.pop()
        fault_iteration = chance.randint(SAVE_EVERY + 2, 3 * SAVE_EVERY) if not kind.early else SAVE_EVERY - 2
        drawn.append(
            Job(
                name=f"chaos-{seed}-{number:03d}-{kind.name}",
                kind=kind,
                after_s=chance.uniform(1.0, 9.0),
                fault_iteration=fault_iteration,
                iterations=fault_iteration + chance.randint(3, 10),
                step_seconds=chance.uniform(0.1, 0.3),
            )
        )
    return tuple(drawn)


def disturbances(seed: int) -> Iterator[Disturbance]:
    """Without end: everything that can be done comes once, in random order, before anything comes again."""
    chance = random.Random(f"disturbances {seed}")
    everything = [(name, deed) for name in OURS for deed in (Deed.KILL, Deed.STOP)]
    everything += [(name, Deed.RESTART) for name in PARTS]
    number = 0
    while True:
        for victim, deed in chance.sample(everything, len(everything)):
            lasts = {Deed.KILL: (0.0, 0.0), Deed.STOP: STOPPED_S, Deed.RESTART: DOWN_S}[deed]
            yield Disturbance(number, chance.uniform(*GAP_S), victim, deed, chance.uniform(*lasts))
            number += 1
