"""The lines of a block in which hyperscan found something, and which of them are worth reading.

A chatty program prints many steps an interval, and watch keeps one. So of steps of a kind with nothing else between
them only the first of each piece of time is read, half the interval at most; and the last, which tells how far
the program came.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

from streams.watch.whose.stamps import PREFIX_BYTES

_CLOCK = re.compile(rb"(\d\d):(\d\d):(\d\d)")
PIECES = 2
"""How many pieces an interval has at least."""

OWN_STEP, OWN_SAVED = -1, -2
"""What stands for a pattern's number where the line is a step or a save of the job's own format."""

MOST_SAVES = 10_000
"""Lines of a block that a job's own pattern of saves may find; where there are more, they are no saves."""

Own = tuple[int, Any]
"""Which of the two, and what finds such lines in a whole block."""

Hit = tuple[int, int, int]
"""What hyperscan found: where the match ends, where its line ends, and the pattern."""
Candidate = tuple[int, int, int, tuple[int, ...]]
"""A line with matches: where it starts and ends, where its first match ends, and the patterns, in that order."""


_Told = tuple[int, int, bytes, int]
"""Of the step of a kind that was read last: where it starts, and its piece of time; of that piece the last clock seen,
as far as all that begins so belongs to it, and where in its line that stands."""


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


def with_own(found: Iterable[Candidate], text: bytes, searches: Sequence[Own]) -> Iterator[Candidate]:
    """Add the lines in which one of the job's own patterns is found."""
    most = {OWN_SAVED: MOST_SAVES}  # of steps few are read, but each save is told
    own = [islice(_lines_with(number, search, text), most.get(number)) for number, search in searches]
    for start, same in groupby(merge(found, *own), key=itemgetter(0)):
        several = list(same)
        numbers = {number for one in several for number in one[3]}
        yield start, several[0][1], several[0][2], tuple(sorted(numbers))


def _lines_with(number: int, search: Any, text: bytes) -> Iterator[Candidate]:
    position = 0
    while position < len(text) and (match := search.search(text, position)) is not None:
        end = text.find(b"\n", match.start())
        end = len(text) if end < 0 else end
        yield text.rfind(b"\n", 0, match.start()) + 1, end, match.end(), (number,)
        position = end + 1


def thinned(
    text: bytes, found: Iterable[Candidate], steps: frozenset[int], interval_ms: int, stride: int = 0
) -> Iterator[Candidate]:
    """Leave out steps that are closer to the one before than anybody needs who keeps one an interval.

    `steps`: the patterns of steps; a line that matches any other as well is read. `stride`: so many bytes after a step
    no other of its kind is read, whatever its time.
    """
    piece_s = interval_ms // (PIECES * 1_000)
    if piece_s == 0:
        yield from found
        return
    if piece_s >= 10:
        piece_s -= piece_s % 10  # so that a clock without its last digit is of one piece
    told: dict[tuple[int, ...], _Told] = {}
    passed: dict[tuple[int, ...], Candidate] = {}
    for one in found:
        start, end, _to, patterns = one
        before = told.get(patterns)
        if before is not None:
            first, _, clock, at = before
            if start < first + stride or (clock and text.startswith(clock, start + at)):
                passed[patterns] = one
                continue
        if before is not None or steps.issuperset(patterns):
            now = _clocked(text, start, end, piece_s)
            if before is not None and now[1] == before[1]:
                told[patterns] = before[0], *now[1:]
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


def _clocked(text: bytes, start: int, end: int, piece_s: int) -> _Told:
    """A line as told; all without a clock are of one piece."""
    match = _CLOCK.search(text, start, min(end, start + PREFIX_BYTES))
    if match is None:
        return start, -1, b"", 0
    hours, minutes, seconds = map(int, match.groups())
    piece = (hours * 3600 + minutes * 60 + seconds) // piece_s
    return start, piece, match[0][:-1] if piece_s >= 10 else match[0], match.start() - start
