"""The lines of a block in which hyperscan found something, and which of them are worth reading.

A chatty program prints many steps an interval, and watch keeps one. So of steps in a row only those are read that tell
another time than the one before, in pieces of a sixth of the interval at most; and the last, which tells how far the
program came.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from streams.watch.stamps import PREFIX_BYTES

_SECOND = re.compile(rb"\d\d:\d\d:\d\d")
_TEN_SECONDS = re.compile(rb"\d\d:\d\d:\d")
PIECES = 6
"""How many pieces an interval has at least."""

Hit = tuple[int, int, int]
"""What hyperscan found: where the match ends, where its line ends, and the pattern."""
Candidate = tuple[int, int, int, tuple[int, ...]]
"""A line with matches: where it starts and ends, where its first match ends, and the patterns, in that order."""


def candidates(text: bytes, hits: Sequence[Hit]) -> Iterator[Candidate]:
    """Group hits, ascending, by line."""
    position, count = 0, len(hits)
    while position < count:
        to, end, number = hits[position]
        first = position
        position += 1
        while position < count and hits[position][1] == end:
            position += 1
        patterns = (number,) if position == first + 1 else tuple([number for _, _, number in hits[first:position]])
        yield text.rfind(b"\n", 0, to - 1) + 1, end, to, patterns


def thinned(text: bytes, found: Iterable[Candidate], steps: frozenset[int], interval_ms: int) -> Iterator[Candidate]:
    """Leave out steps that are closer to the one before than anybody needs who keeps one an interval.

    `steps`: the patterns of steps; a line that matches any other as well is read.
    """
    clock = _TEN_SECONDS if interval_ms >= PIECES * 10_000 else _SECOND if interval_ms >= PIECES * 1_000 else None
    if clock is None:
        yield from found
        return
    told: tuple[int, ...] | None = None  # the patterns of the step before, and when it was printed
    time, at, length = b"", 0, 0
    passed: Candidate | None = None
    for one in found:
        start, end, _to, patterns = one
        same = patterns == told
        if same and text[start + at : start + at + length] == time and length:
            passed = one
            continue
        is_step = same or steps.issuperset(patterns)
        match = clock.search(text, start, min(end, start + PREFIX_BYTES)) if is_step else None
        now = b"" if match is None else match[0]
        if same and now == time:
            passed = one
            continue
        if passed is not None and not is_step:
            yield passed
        passed, told, time = None, patterns if is_step else None, now
        at, length = (0, 0) if match is None else (match.start() - start, len(now))
        yield one
    if passed is not None:
        yield passed
