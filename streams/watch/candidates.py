"""The lines of a block in which hyperscan found something, and which of them are worth reading.

A chatty program prints many steps an interval, and watch keeps one. So of steps in a row only those are read that tell
another time than the one before, in pieces of a sixth of the interval at most; and the last, which tells how far the
program came.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from streams.watch.stamps import PREFIX_BYTES

_SECOND = re.compile(rb"\d\d:\d\d:\d\d")
_TEN_SECONDS = re.compile(rb"\d\d:\d\d:\d")
PIECES = 6
"""How many pieces an interval has at least."""


class Candidate(NamedTuple):
    """A line with matches: from `start` to `end`, the first match ending at `to`, and the patterns, in that order."""

    start: int
    end: int
    to: int
    patterns: tuple[int, ...]


def candidates(text: bytes, hits: Sequence[tuple[int, int]]) -> Iterator[Candidate]:
    """Group hits (where the match ends, which pattern; ascending) by line."""
    position, count = 0, len(hits)
    while position < count:
        to = hits[position][0]
        start = text.rfind(b"\n", 0, to - 1) + 1
        end = text.find(b"\n", to - 1)
        end = len(text) if end < 0 else end
        first = position
        position += 1
        while position < count and hits[position][0] <= end + 1:
            position += 1
        yield Candidate(start, end, to, tuple([number for _, number in hits[first:position]]))


def thinned(text: bytes, found: Iterable[Candidate], steps: frozenset[int], interval_ms: int) -> Iterator[Candidate]:
    """Leave out steps that are closer to the one before than anybody needs who keeps one an interval.

    `steps`: the patterns of steps; a line that matches any other as well is read.
    """
    clock = _TEN_SECONDS if interval_ms >= PIECES * 10_000 else _SECOND if interval_ms >= PIECES * 1_000 else None
    if clock is None:
        yield from found
        return
    told: tuple[tuple[int, ...], bytes] | None = None
    passed: Candidate | None = None
    for one in found:
        is_step = steps.issuperset(one.patterns)
        tells = (one.patterns, _time(clock, text, one)) if is_step else None
        if is_step and tells == told:
            passed = one
            continue
        if passed is not None and not is_step:
            yield passed
        passed, told = None, tells
        yield one
    if passed is not None:
        yield passed


def _time(clock: re.Pattern[bytes], text: bytes, line: Candidate) -> bytes:
    """The time of day in the line's head; empty where there is none."""
    match = clock.search(text, line.start, min(line.end, line.start + PREFIX_BYTES))
    return b"" if match is None else match[0]
