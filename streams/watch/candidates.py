"""The lines of a block in which hyperscan found something, and which of them are worth reading.

A chatty program prints many steps a second, and watch keeps one an interval. So of steps in a row that tell the same
second (or none), only the first and the last are read: the first may be kept, the last tells how far it came.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import NamedTuple

from streams.watch.stamps import PREFIX_BYTES

_SECOND = re.compile(rb"\d\d:\d\d:\d\d")


class Candidate(NamedTuple):
    """A line with matches: from `start` to `end`, the first match ending at `to`, and the numbers of its patterns."""

    start: int
    end: int
    to: int
    patterns: frozenset[int]


def candidates(text: bytes, hits: Sequence[tuple[int, int]]) -> Iterator[Candidate]:
    """Group hits (where the match ends, which pattern; ascending) by line."""
    position, count = 0, len(hits)
    while position < count:
        to, number = hits[position]
        start = text.rfind(b"\n", 0, to - 1) + 1
        end = text.find(b"\n", to - 1)
        end = len(text) if end < 0 else end
        numbers = [number]
        position += 1
        while position < count and hits[position][0] <= end + 1:
            numbers.append(hits[position][1])
            position += 1
        yield Candidate(start, end, to, frozenset(numbers))


def thinned(text: bytes, found: Iterable[Candidate], steps: Container[frozenset[int]]) -> Iterator[Candidate]:
    """Leave out steps between the first and the last of a row that tells one second.

    `steps`: the sets of patterns that make a line a step and nothing else.
    """
    told: tuple[frozenset[int], bytes] | None = None
    last: Candidate | None = None
    for one in found:
        tells = (one.patterns, _second(text, one)) if one.patterns in steps else None
        if tells is not None and tells == told:
            last = one
            continue
        if last is not None:
            yield last
            last = None
        told = tells
        yield one
    if last is not None:
        yield last


def _second(text: bytes, line: Candidate) -> bytes:
    """The time of day in the line's head, to the second; empty where there is none."""
    match = _SECOND.search(text, line.start, min(line.end, line.start + PREFIX_BYTES))
    return b"" if match is None else match[0]
