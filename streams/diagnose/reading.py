"""Reads files of any size, or standard input, in blocks of whole lines."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

BLOCK_BYTES = 1 << 20
STANDARD_INPUT = "-"

Progress = Callable[[str, int, int], None]
"""Told the file's name, the bytes read of it, and its size (0: unknown)."""


class Unreadable(Exception):
    """A file that can't be read; the message names it and says why."""


@dataclass(frozen=True)
class Piece:
    """Some whole lines of a file: where they start, and the number of the first."""

    data: bytes
    offset: int
    line_no: int


def pieces(name: str, told: Progress) -> Iterator[Piece]:
    """Give a file's lines, piece by piece. A line longer than a block is cut. Raises Unreadable."""
    try:
        if name == STANDARD_INPUT:
            yield from _cut(sys.stdin.buffer, lambda read: told("standard input", read, 0))
            return
        path = Path(name)
        size = path.stat().st_size
        with path.open("rb") as file:
            yield from _cut(file, lambda read: told(name, read, size))
    except OSError as error:
        raise Unreadable(f"{name} can't be read: {error.strerror or error}; give files of a job's output") from error


def written_ms(name: str) -> int | None:
    """When a file was last written to; None for standard input."""
    return None if name == STANDARD_INPUT else Path(name).stat().st_mtime_ns // 1_000_000


def _cut(file: BinaryIO, told: Callable[[int], None]) -> Iterator[Piece]:
    rest, offset, line_no = b"", 0, 1
    while True:
        more = file.read(BLOCK_BYTES)
        data = rest + more
        end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        if not more or (end == 0 and len(data) >= BLOCK_BYTES):
            end = len(data)
        piece, rest = data[:end], data[end:]
        if piece:
            yield Piece(piece, offset, line_no)
            offset += len(piece)
            line_no += piece.count(b"\n")
            told(offset)
        if not more:
            return
