"""The traceback with which a file ends, where something stands before each of its lines that no launcher puts there.

An exception is known by how its line begins. What stands before that is as long in all lines of a traceback: its head
tells how long.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from streams.diagnose.epochs import Epochs
from streams.diagnose.reading import Piece
from streams.watch.matching.matcher import ANSI, Found, Matcher

_HEAD = b"Traceback (most recent call last):"
_FRAME = re.compile(rb'\s+File "[^"]+", line \d+')
_EXCEPTION = re.compile(rb"[A-Za-z_][\w.]*(?::|\s*$)")
MOST_BEFORE, MOST_AFTER = 3, 20
"""So many lines before say whether it matters, and so many may follow: what the launcher makes of it, or the rest of a
long message."""


@dataclass(frozen=True)
class Raised:
    """The line of an exception, where it begins, and what it means without what stands before it."""

    line: bytes
    start: int
    found: Found


def last_raised(piece: Piece, matcher: Matcher) -> Raised | None:
    """With what exception the lines end; None where they go on, and where it was read as it stands there."""
    data = piece.data.replace(b"\r", b"\n")
    head = data.rfind(_HEAD)
    lines = [] if head < 0 else _with_those_before(data, data.rfind(b"\n", 0, head) + 1)
    whole = [ANSI.sub(b"", line) for line in lines]
    width = max((line.find(_HEAD) for line in whole), default=0)
    last = _exception([line[width:] for line in whole])
    if last is None or any(found.fault is not None for found in matcher.scan(b"".join(lines[: last + 1]))):
        return None
    after = b"".join(lines[last + 1 :])
    start = len(data) - len(after) - len(lines[last])
    read = matcher.scan(b"".join(line[width:] or b"\n" for line in whole[: last + 1]))
    met = next((found for found in reversed(read) if found.fault is not None), None)
    return None if met is None or _goes_on(after, matcher) else Raised(whole[last].rstrip(b"\n"), start, met)


def _with_those_before(data: bytes, start: int) -> list[bytes]:
    """The lines from a place on, and the few before it."""
    return data[:start].splitlines(keepends=True)[-MOST_BEFORE:] + data[start:].splitlines(keepends=True)


def _exception(lines: list[bytes]) -> int | None:
    """Which of the lines is that of the exception: the first one after a frame that is none of a frame."""
    frame = next((number for number, line in enumerate(lines) if _FRAME.match(line)), len(lines))
    return next((number for number in range(frame, len(lines)) if _EXCEPTION.match(lines[number])), None)


def _goes_on(after: bytes, matcher: Matcher) -> bool:
    """Whether the run went on, or too much follows to say that the lines end so."""
    if sum(bool(line.strip()) for line in after.splitlines()) > MOST_AFTER:
        return True
    told = any(found.progress or found.saved or found.loaded or found.phase for found in matcher.scan(after))
    return told or bool(Epochs().between(after, 0, len(after)))
