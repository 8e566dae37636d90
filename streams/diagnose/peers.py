"""Devices and ranks that do the same work, side by side: one that is much slower than another is broken."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

FACTOR = 1.5
"""So many times slower: peers differ by a few per cent, and a device that is throttled is slower by half and more."""
MOST_PEERS = 4096

# `[gpu0] 12/400 items done, 66.0 s/item`, `GEMM [I] (ADAPTER#0)  Ending with 6698.4 GFlops`
_SECONDS = re.compile(
    rb"\s*\[?((?:gpu|device|cuda:)[ _]?\d+)\]?:? .{0,120}?\b(\d{1,6}(?:\.\d{1,6})?) ?s/(?:it|item|iter|step|sample)\b"
)
_SPEED = re.compile(
    rb"(?i)((?:gpu|device|adapter|cuda:)[ _#]?\d+)\b.{0,80}?\b(\d{1,9}(?:\.\d{1,9})?) ?([GT])FLOP(?:/?s)?\b"
)
# Megatron-LM's straggler detector and what others made of it: `MnRtt/Rnk: 3461.15ms/8 | MxRtt/Rnk: 9877.42ms/28`,
# `Train MinThroughput/Rank: 61.20TF/11` with the other end on a line of its own.
_EXTREME = re.compile(
    rb"\b(?:Mi?n|Ma?x)(Rtt|RoundTripTime|Etpt|Throughput)/Ra?nk: (\d{1,9}(?:\.\d{1,9})?)(?:ms|TF)/(\d{1,7})\b"
)
_TIMES = {b"Rtt", b"RoundTripTime"}
_GIGA = {b"G": 1, b"T": 1000}


@dataclass(frozen=True)
class Slower:
    """Of the peers that were compared last, the slowest, and how many times the fastest is faster."""

    name: str
    factor: float


@dataclass
class Peers:
    """Give it lines, in order. Of each peer the last word counts."""

    _cost: dict[bytes, dict[bytes, float]] = field(default_factory=dict)
    """For each kind of measure: what a unit of work takes each peer, in time."""

    def take(self, line: bytes) -> None:
        """A line that may say how fast a device is."""
        timed, fast = _SECONDS.match(line), _SPEED.search(line) if b"flop" in line.lower() else None
        if timed is not None:
            self._note(b"s", timed[1], float(timed[2]))
        if fast is not None and float(fast[2]):
            self._note(b"FLOPS", fast[1], 1 / (float(fast[2]) * _GIGA[fast[3].upper()]))

    def compare(self, text: bytes) -> None:
        """Lines that may name the slowest and the fastest rank; what was named before is forgotten."""
        if b"/Rnk: " not in text and b"/Rank: " not in text:
            return
        for kind, value, rank in _EXTREME.findall(text):
            if not float(value):
                continue
            if len(self._cost.get(kind, ())) >= 2:  # both ends are told: these are the next ones
                del self._cost[kind]
            self._note(kind, b"rank " + rank, float(value) if kind in _TIMES else 1 / float(value))

    @property
    def slower(self) -> Slower | None:
        """A peer that is much slower than another; None where none is."""
        found = max((_slowest(costs) for costs in self._cost.values() if len(costs) > 1), default=None)
        return None if found is None or found[0] < FACTOR else Slower(found[1].decode(), found[0])

    def _note(self, kind: bytes, peer: bytes, cost: float) -> None:
        costs = self._cost.setdefault(kind, {})
        if cost > 0 and (peer in costs or len(costs) < MOST_PEERS):
            costs[peer] = cost


def slowest(peers: Iterable[Peers]) -> Slower | None:
    """The slowest of all that several files compare."""
    return max(_found(peers), key=lambda one: one.factor, default=None)


def _found(peers: Iterable[Peers]) -> Iterator[Slower]:
    for one in peers:
        if one.slower is not None:
            yield one.slower


def _slowest(costs: dict[bytes, float]) -> tuple[float, bytes]:
    peer = max(costs, key=lambda name: costs[name])
    return costs[peer] / min(costs.values()), peer
