"""Devices and ranks that do the same work, side by side: one that is much slower than another is broken."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import reduce
from operator import or_

FACTOR, OF_ITEMS = 1.5, 3
"""So many times slower: peers differ by a few per cent, and a device that is throttled is slower by half and more. What
a device takes for an item differs more, as items do."""
MOST_PEERS = 4096

# `[gpu0] 12/400 items done, 66.0 s/item`, `GEMM [I] (ADAPTER#0)  Ending with 6698.4 GFlops`
_SECONDS = re.compile(
    rb"\s*\[?((?:gpu|device|cuda:)[ _]?\d+)\]?:? .{0,120}?\b(\d{1,6}(?:\.\d{1,6})?) ?s/(?:it|item|iter|step|sample)\b"
)
# `node012 cuda:1 forward 2.873 s`
_PART = re.compile(
    rb"\s*((?:[A-Za-z][\w.-]{0,62} )?\[?(?:gpu|device|cuda:)[ _]?\d{1,3}\]?):? "
    rb"(forward|backward|step|gemm|matmul|iteration)[ :=]{1,3}(\d{1,6}(?:\.\d{1,6})?) ?(m?s)\s*$"
)
# A row of nvidia-smi's table of GPUs that are busy: `1, 100 %, 150.02 W, 787 MHz, Active`.
_CLOCK = re.compile(rb"\s*(\d{1,3}), +(?:9\d|100) %, [^\n]{0,80}?\b(\d{2,5}) MHz\b")
_SPEED = re.compile(
    rb"(?i)((?:gpu|device|adapter|cuda:)[ _#]?\d+)\b(.{0,80}?)\b(\d{1,9}(?:\.\d{1,9})?) ?([GT])FLOP(?:S|/s)\b"
)
# How fast it might be, and how much work there is.
_NO_SPEED = re.compile(rb"(?i)\bpeak\b|params|\bper\b|\bspec")
# Megatron-LM's straggler detector and what others made of it: `MnRtt/Rnk: 3461.15ms/8 | MxRtt/Rnk: 9877.42ms/28`,
# `Train MinThroughput/Rank: 61.20TF/11` with the other end on a line of its own.
_EXTREME = re.compile(
    rb"\b(?:Mi?n|Ma?x)(Rtt|RoundTripTime|Etpt|Throughput)/Ra?nk: (\d{1,9}(?:\.\d{1,9})?)(?:ms|TF)/(\d{1,7})\b"
)
_TIMES = {b"Rtt", b"RoundTripTime"}
_GIGA = {b"G": 1, b"T": 1000}
_ITEMS = b"s/item"
_A_SECOND = {b"s": 1, b"ms": 1000}


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
            self._note(_ITEMS, timed[1], float(timed[2]))
        clock = _CLOCK.match(line)
        if clock is not None:
            self._note(b"MHz", b"GPU " + clock[1], 1 / float(clock[2]))
        part = _PART.match(line)
        if part is not None:
            self._note(_ITEMS + part[2], part[1], float(part[3]) / _A_SECOND[part[4]])
        if fast is not None and float(fast[3]) and _NO_SPEED.search(line) is None:
            what = b"FLOPS" + b"".join(fast[2].split())  # what it did stands before the number
            self._note(what, fast[1], 1 / (float(fast[3]) * _GIGA[fast[4].upper()]))

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
        found = [_slowest(kind, costs) for kind, costs in self._cost.items() if len(costs) > 1]
        return max((one for one in found if one is not None), key=lambda one: one.factor, default=None)

    def __or__(self, other: Peers) -> Peers:
        """What two files tell together."""
        kinds = self._cost | other._cost
        return Peers({kind: self._cost.get(kind, {}) | other._cost.get(kind, {}) for kind in kinds})

    def _note(self, kind: bytes, peer: bytes, cost: float) -> None:
        costs = self._cost.setdefault(kind, {})
        if cost > 0 and (peer in costs or len(costs) < MOST_PEERS):
            costs[peer] = cost


def slowest(peers: Iterable[Peers]) -> Slower | None:
    """The slowest of all that several files compare."""
    return reduce(or_, peers, Peers()).slower


def _slowest(kind: bytes, costs: dict[bytes, float]) -> Slower | None:
    peer = max(costs, key=lambda name: costs[name])
    factor = costs[peer] / min(costs.values())
    return Slower(peer.decode(), factor) if factor >= (OF_ITEMS if kind.startswith(_ITEMS) else FACTOR) else None
