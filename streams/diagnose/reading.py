"""Reads files of any size, compressed or not, or standard input, in blocks of whole lines."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import sys
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, cast

BLOCK_BYTES = 1 << 20
STANDARD_INPUT = "-"
# How compressed data begins, whatever the file is called.
_PACKED: tuple[tuple[re.Pattern[bytes], Callable[[BinaryIO], object]], ...] = (
    (re.compile(rb"\x1f\x8b\x08"), lambda file: gzip.GzipFile(fileobj=file, mode="rb")),
    (re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)"), bz2.BZ2File),
    (re.compile(rb"\xfd7zXZ\x00"), lzma.LZMAFile),
)
MAGIC_BYTES = 10
END_BYTES = 1 << 16
_ZSTD = b"\x28\xb5\x2f\xfd"
_HOLE = re.compile(rb"\x00{8,}")
"""What a file has where nothing was written, such as a log that was truncated under its writer."""
_CONTROL = re.compile(rb"[\x00-\x07\x0b\x0e-\x1a\x1c-\x1f\x7f]")
MOST_CONTROL = 0.05
"""Text has hardly any of these; random bytes have a tenth."""

Progress = Callable[[str, int, int], None]
"""Told the file's name, the bytes read of it, and its size (0: unknown)."""


class Unreadable(Exception):
    """A file that can't be read; the message names it and says why."""


class NothingRead(Unreadable):
    """There is nothing to read in it: it is empty, or no text."""


def none_of(unread: Sequence[Unreadable]) -> Unreadable:
    """Of several files none could be read: NothingRead only if there was nothing to read in any of them."""
    text = "; ".join(map(str, unread))
    return NothingRead(text) if all(isinstance(one, NothingRead) for one in unread) else Unreadable(text)


@dataclass(frozen=True)
class Piece:
    """Some whole lines of a file: where they start, and the number of the first."""

    data: bytes
    offset: int
    line_no: int


@dataclass
class Ends:
    """The beginning and the end of a file that is read piece by piece."""

    head: Piece | None = None
    tail: Piece | None = None

    def take(self, piece: Piece) -> None:
        """Read on."""
        if self.head is None:
            self.head = replace(piece, data=_whole_lines(piece.data[:END_BYTES]))
        after = max(len(piece.data) - END_BYTES, self.head.offset + len(self.head.data) - piece.offset, 0)
        start = piece.data.find(b"\n", after - 1) + 1 if after else 0
        self.tail = Piece(piece.data[start:], piece.offset + start, piece.line_no + piece.data.count(b"\n", 0, start))

    @property
    def pieces(self) -> list[Piece]:
        return [piece for piece in (self.head, self.tail) if piece is not None and piece.data]


def last_lines(before: bytes, piece: Piece) -> Piece:
    """The end of a piece and of what was `before` it."""
    data = (before + piece.data[-END_BYTES:] if len(piece.data) < END_BYTES else piece.data)[-END_BYTES:]
    lines = piece.line_no + piece.data.count(b"\n") - data.count(b"\n")
    return Piece(data, piece.offset + len(piece.data) - len(data), lines)


def _whole_lines(data: bytes) -> bytes:
    return data[: data.rfind(b"\n") + 1] or data


def pieces(name: str, told: Progress) -> Iterator[Piece]:
    """Give a file's lines, piece by piece. A line longer than a block is cut. Raises Unreadable.

    Of a file that is empty or no text, what there is; for a pipe, which can't be looked at before, NothingRead.
    """
    with _opened(name, told) as reading:
        yield from _checked(name, _cut(reading.file, reading.told))


def samples(name: str, told: Progress, head: int, tail: int) -> Iterator[Piece]:
    """Give the lines of the first `head` and the last `tail` bytes, or all of a small file. Raises as `pieces` does."""
    with _opened(name, told) as reading:
        if reading.size > head + tail + 2 * BLOCK_BYTES and not reading.packed:
            yield from _until(_cut(reading.file, reading.told), head)
            start = reading.file.seek(reading.size - tail)
            start += len(reading.file.readline(BLOCK_BYTES))
            yield from _cut(reading.file, reading.told, start)
            return
        cut = _checked(name, _cut(reading.file, reading.told))
        yield from _until(cut, head)
        last: deque[Piece] = deque()
        held = 0
        for piece in cut:
            last.append(piece)
            held += len(piece.data)
            while held - len(last[0].data) >= tail:
                held -= len(last.popleft().data)
        yield from last


def nothing_in(name: str) -> Unreadable | None:
    """Why nothing can be read from a file; None where something can, and for a pipe."""
    if _is_pipe(name):
        return None
    try:
        for piece in pieces(name, lambda _name, _read, _size: None):
            if _HOLE.sub(b"", piece.data):
                return NothingRead(_nothing_read(name, "binary")) if _is_binary(piece.data) else None
    except Unreadable as error:
        return error
    return NothingRead(_nothing_read(name, "empty"))


def written_ms(name: str) -> int | None:
    """When a file was last written to; None for standard input."""
    return None if name == STANDARD_INPUT else Path(name).stat().st_mtime_ns // 1_000_000


def _is_pipe(name: str) -> bool:
    return name == STANDARD_INPUT or Path(name).is_fifo()


def _checked(name: str, cut: Iterator[Piece]) -> Iterator[Piece]:
    """The pieces as they are; of a pipe only if they are text."""
    if _is_pipe(name):
        first = next((piece for piece in cut if _HOLE.sub(b"", piece.data)), None)
        if first is None or _is_binary(first.data):
            raise NothingRead(_nothing_read(name, "empty" if first is None else "binary"))
        yield first
    yield from cut


def _nothing_read(name: str, what: str) -> str:
    return f"nothing was read from {'standard input' if name == STANDARD_INPUT else name}: it is {what}"


def _is_binary(data: bytes) -> bool:
    text = _HOLE.sub(b"", data)
    return len(_CONTROL.findall(text)) > MOST_CONTROL * len(text)


class _Begun:
    """A file of which some bytes were read already; counts what is read, for the progress."""

    def __init__(self, head: bytes, file: BinaryIO) -> None:
        self._head, self._file, self.count = head, file, 0

    def read(self, size: int = -1) -> bytes:
        data, self._head = self._head[:size], self._head[size:]
        if len(data) < size:
            data += self._file.read(size - len(data))
        self.count += len(data)
        return data


@dataclass(frozen=True)
class _Reading:
    file: BinaryIO
    size: int
    packed: bool
    told: Callable[[int], None]


@contextmanager
def _opened(name: str, told: Progress) -> Iterator[_Reading]:
    """Open a file, through its decompression; whatever goes wrong while it is read becomes Unreadable."""
    shown = "standard input" if name == STANDARD_INPUT else name
    try:
        if name == STANDARD_INPUT:
            yield _unpacked(shown, sys.stdin.buffer, 0, told)
            return
        size = Path(name).stat().st_size
        with Path(name).open("rb") as file:
            yield _unpacked(shown, file, size, told)
    except EOFError as error:
        hint = f"decompress what there is and give it on standard input: zcat {name} | recovery diagnose -"
        raise Unreadable(f"{shown} can't be read to its end: its compressed data is cut off; {hint}") from error
    except (zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise Unreadable(f"{shown} can't be read: its compressed data is damaged ({error})") from error
    except IsADirectoryError as error:
        raise Unreadable(f"{shown} can't be read: {error.strerror}; give the files in it: {shown}/*") from error
    except OSError as error:
        raise Unreadable(f"{shown} can't be read: {error.strerror or error}; give files of a job's output") from error


def _unpacked(shown: str, file: BinaryIO, size: int, told: Progress) -> _Reading:
    head = file.read(MAGIC_BYTES)
    if head.startswith(_ZSTD):
        raise Unreadable(f"{shown} is compressed with zstd; decompress it: zstd -dc {shown} | recovery diagnose -")
    begun = _Begun(head, file)
    for magic, opened in _PACKED:
        if magic.match(head):
            unpacked = cast(BinaryIO, opened(cast(BinaryIO, begun)))
            return _Reading(unpacked, size, True, lambda _read: told(shown, begun.count, size))
    if size:
        file.seek(0)
        return _Reading(file, size, False, lambda read: told(shown, read, size))
    return _Reading(cast(BinaryIO, begun), 0, False, lambda read: told(shown, read, 0))


def _until(cut: Iterator[Piece], end: int) -> Iterator[Piece]:
    for piece in cut:
        yield piece
        if piece.offset + len(piece.data) >= end:
            return


def _cut(file: BinaryIO, told: Callable[[int], None], offset: int = 0) -> Iterator[Piece]:
    rest, line_no = b"", 1
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
