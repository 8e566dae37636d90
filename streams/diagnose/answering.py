"""A job whose log grows only because somebody asks its servers how they are: nothing else of it moves."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from streams.diagnose.reading import Piece

# Any other request may be the work itself.
_ANSWER = re.compile(
    rb'"(?:GET|HEAD) /\S{0,80}(?:metrics|health|ping|ready|live|status)\S{0,80} HTTP/\d(?:\.\d)?"? +\d{3}\b'
)
_NOT_KEPT = b"(something)"


def answered_ms(ends: Sequence[Piece], stamp: Callable[[bytes], int | None]) -> int:
    """For how long the end of a log is nothing but answers to requests; 0 where it is not, or has nothing else at all.

    `ends`: its beginning and its end, as far as they are kept.
    """
    moments = []
    for line in _backwards(ends):
        moments.append(stamp(line))
        if _ANSWER.search(line) is None:
            known = [at_ms for at_ms in moments if at_ms is not None]
            return known[0] - known[-1] if len(moments) > 1 and known else 0
    return 0


def _backwards(ends: Sequence[Piece]) -> Iterator[bytes]:
    begins = None
    for piece in reversed(ends):
        if begins is not None and piece.offset + len(piece.data) < begins:
            yield _NOT_KEPT
        yield from (line for line in reversed(piece.data.splitlines()) if line.strip())
        begins = piece.offset
