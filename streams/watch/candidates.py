"""The lines of a block in which hyperscan found something, and which of them are worth reading.

A chatty program prints many steps an interval, and watch keeps one. So of steps of a kind with nothing else between
them only those are read that tell another time than the one before, in pieces of a sixth of the interval at most; and
the last, which tells how far the program came.
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


_Told = tuple[int, bytes, int]
"""Of the step of a kind that was read last: where it starts, its time, and where in its line that stands."""


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


def thinned(
    text: bytes, found: Iterable[Candidate], steps: frozenset[int], interval_ms: int, stride: int = 0
) -> Iterator[Candidate]:
    """Leave out steps that are closer to the one before than anybody needs who keeps one an interval.

    `steps`: the patterns of steps; a line that matches any other as well is read. `stride`: so many bytes after a step
    no other of its kind is read, whatever its time.
    """
    clock = _TEN_SECONDS if interval_ms >= PIECES * 10_000 else _SECOND if interval_ms >= PIECES * 1_000 else None
    if clock is None:
        yield from found
        return
    told: dict[tuple[int, ...], _Told] = {}
    passed: dict[tuple[int, ...], Candidate] = {}
    for one in found:
        start, end, _to, patterns = one
        before = told.get(patterns)
        if before is not None and (start < before[0] + stride or _is_of_same_time(text, start, before)):
            passed[patterns] = one
            continue
        if before is not None or steps.issuperset(patterns):
            match = clock.search(text, start, min(end, start + PREFIX_BYTES))
            now = (start, b"", 0) if match is None else (start, match[0], match.start() - start)
            if before is not None and now[1] == before[1]:
                passed[patterns] = one
                continue
            told[patterns] = now
            passed.pop(patterns, None)
        else:
            told.clear()
        yield from sorted(passed.values())
        passed.clear()
        yield one
    yield from sorted(passed.values())


def _is_of_same_time(text: bytes, start: int, told: _Told) -> bool:
    _, time, at = told
    return time != b"" and text.startswith(time, start + at)
