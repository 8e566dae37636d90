"""Follows one file of job output from a durable place: appends, rotation, truncation, partial and endless lines.

A file is known by its content, not by its name: device and inode, a hash of its first bytes, and a hash of the bytes
just before the place where reading stopped. Slurm truncates the same file at requeue unless told to append, and it may
have grown past the old offset before the next look; only the content before the offset tells. Device numbers differ
between hosts and mounts, so after a restart equal content counts as the same file, and so does a copy that was put in
its place. One that was renamed meanwhile is found by its inode in its folder, and read to its end.

Both `\\n` and `\\r` end a line (progress bars redraw themselves with the latter), a line longer than a block is read in
pieces of one block, and offsets are in bytes whatever those bytes are.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from hashlib import blake2b
from pathlib import Path

HEAD_BYTES = 256
TAIL_BYTES = 256
FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
BLOCK_BYTES = 1 << 20
# Equal content makes the same file even if device or inode differ, if there was enough of it.
CONTENT_PROOF_BYTES = 64
# Looks that are remembered while one line grows without an end.
MOST_LOOKS = 64


class FileState(StrEnum):
    """How a followed file was at the last look."""

    FOLLOWED = "followed"
    ABSENT = "absent"
    DENIED = "denied"
    BROKEN = "broken"


@dataclass(frozen=True)
class Place:
    """How far a file was read; durable, so that reading goes on after any restart."""

    identity: str = ""
    epoch: int = 0
    offset: int = 0
    line_no: int = 0


class Lines:
    """Counts the lines of a block up to places that only ever come later: counting takes a tenth of all reading."""

    def __init__(self, data: bytes, line_no: int) -> None:
        self._data = data
        self._line_no = line_no
        self._counted = 0

    def before(self, offset: int) -> int:
        """How many lines of the file end before this offset in the block. Raises ValueError for an earlier one."""
        if offset < self._counted:
            raise ValueError(f"lines were counted up to {self._counted} already, not to {offset}")
        self._line_no += self._data.count(b"\n", self._counted, offset)
        self._counted = offset
        return self._line_no


@dataclass(frozen=True)
class Block:
    """Whole lines, in one piece."""

    data: bytes
    start: Place
    identity: str
    """The file's, with all of the block read."""
    lines: Lines
    after_ms: int | None
    """The first byte was not there at this look of ours; None if unknown, as after a restart."""
    read_ms: int

    @cached_property
    def end(self) -> Place:
        """How far the file is read with this block; to be asked for when `lines` is done with."""
        size = len(self.data)
        return Place(self.identity, self.start.epoch, self.start.offset + size, self.lines.before(size))


@dataclass(frozen=True)
class _Seen:
    """The file's size at a look: bytes past it appeared later than that."""

    size: int
    at_ms: int


class FileFollower:
    """Reads one path. Never raises for what a file system does: `state` and `problem` say what is wrong."""

    def __init__(self, path: str, place: Place | None = None) -> None:
        self.path = path
        self._place = place or Place()
        self._given: Block | None = None
        self.state = FileState.ABSENT
        self.problem = ""
        self._fd: int | None = None
        self._inode = ""
        self._head = self._tail = b""  # of what was read: the first bytes, and those just before the place
        self._signature: tuple[int, int, int, int] | None = None
        self._seen: list[_Seen] = []
        self._whole: _Seen | None = None  # the last look that gave everything
        self._changed_ms: int | None = None
        self._begun_ms: int | None = None
        self._looked_ms: int | None = None

    @property
    def place(self) -> Place:
        """How far the file was read."""
        return self._place if self._given is None else self._given.end

    def close(self) -> None:
        """Let go of the file; the place stays."""
        if self._fd is not None:
            os.close(self._fd)
        self._fd = self._signature = self._whole = None
        self._seen = []

    def idle_ms(self, now_ms: int) -> int:
        """Milliseconds for which looks have found nothing new: since the last change, else since the first look."""
        since_ms = self._begun_ms if self._changed_ms is None else self._changed_ms
        return 0 if since_ms is None else now_ms - since_ms

    def quiet_ms(self, now_ms: int) -> int:
        """Milliseconds since the file last changed under our eyes; 0 if it was never seen."""
        return 0 if self._changed_ms is None else now_ms - self._changed_ms

    def peek(self, count: int) -> bytes:
        """The next bytes, at most `count`, without moving on; empty where there are none or they can't be read."""
        return self._bytes(self.place.offset, count)

    def before(self, offset: int, count: int) -> bytes:
        """The last bytes before an offset, at most `count`; empty where there are none or they can't be read."""
        start = max(0, offset - count)
        return self._bytes(start, offset - start)

    def _bytes(self, offset: int, count: int) -> bytes:
        if self._fd is None:
            return b""
        try:
            return os.pread(self._fd, count, offset)
        except OSError:
            return b""  # the next look finds the same error and says so

    def behind(self, count: int) -> bytes:
        """The last bytes that were read, at most `count`; empty where there are none or they can't be read again."""
        start = max(0, self.place.offset - count)
        if self._fd is None:
            return b""
        try:
            return os.pread(self._fd, self.place.offset - start, start)
        except OSError:
            return b""  # the next look finds the same error and says so

    def look(self, now_ms: int, *, over: bool = False) -> Iterator[Block]:
        """Give what is new, in blocks; whoever stops in between gets the rest at the next look.

        Costs one `stat` where nothing changed, and four calls of the file system where lines were added. `over` says
        that nobody writes any more: the last line is given although it has no end.
        """
        before_ms, self._looked_ms = self._looked_ms, now_ms
        if before_ms is None:
            self._begun_ms = now_ms
        try:
            status = os.stat(self.path)  # noqa: PTH116 - ten times a second for a thousand files
            signature = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
            if signature != self._signature or over:
                yield from self._changed(status, before_ms, now_ms, over=over)
            if self._fd is not None:
                self._signature, self._whole = signature, _Seen(status.st_size, now_ms)
        except OSError as error:
            if self._fd is None and before_ms is None:
                self._find_renamed()
            yield from self._rest_of_lost(now_ms)
            self._fail(error)

    def _changed(self, status: os.stat_result, before_ms: int | None, now_ms: int, *, over: bool) -> Iterator[Block]:
        if not stat.S_ISREG(status.st_mode):
            self.close()
            self.state, self.problem = FileState.BROKEN, f"not a regular file: {self.path}"
            return
        if self._signature is None or self._signature[2:] != (status.st_size, status.st_mtime_ns):
            self._changed_ms = now_ms
        if self._whole is not None:
            self._seen.append(self._whole)
            self._whole = None
        if self._fd is None:
            status = self._open(before_ms)
        if self._fd is not None and self._inode != _inode(status):  # replaced: the old one to its end first
            size = os.fstat(self._fd).st_size
            yield from self._read(now_ms, size, over=False)
            if self._is_copied():
                status = os.fstat(self._fd)
            else:
                yield from self._read(now_ms, size, over=True)
                self.close()
                self._begin(before_ms)
                status = self._open(before_ms)
        elif not self._is_same(status):
            self._begin(before_ms)
        self.state, self.problem = FileState.FOLLOWED, ""
        yield from self._read(now_ms, status.st_size, over=over)

    def _open(self, before_ms: int | None) -> os.stat_result:
        """Open the path, or what was read of it before if that has another name now; return how the path's file is."""
        self._fd = os.open(self.path, FLAGS)
        status = os.fstat(self._fd)
        self._inode = _inode(status)
        if self.place.offset == 0:
            if self.state is FileState.ABSENT and before_ms is not None:
                self._seen = [_Seen(0, before_ms)]
            return status
        proved = self.place.offset >= CONTENT_PROOF_BYTES or self.place.identity.startswith(self._inode)
        if not (proved and self._was_read()) and not self._find_renamed():
            self._begin(before_ms)
        return status

    def _find_renamed(self) -> bool:
        """Open the file that was read up to this place and was renamed while nobody looked, if it can be had."""
        if self.place.offset == 0:
            return False
        inode = int(self.place.identity.split(":")[1])
        try:
            with os.scandir(Path(self.path).parent) as entries:
                found = [entry.path for entry in entries if entry.inode() == inode]
            return any(self._take_over(os.open(path, FLAGS)) for path in found)
        except OSError:
            return False  # whoever may not look for it goes on with what the path holds now

    def _is_copied(self) -> bool:
        """Whether the path holds a copy of what was read, with which it then goes on."""
        return self.place.offset >= CONTENT_PROOF_BYTES and self._take_over(os.open(self.path, FLAGS))

    def _take_over(self, opened: int) -> bool:
        """Go on with this open file if it holds what was read; else close it."""
        before, self._fd = self._fd, opened
        if not self._was_read():
            self._fd = before
            os.close(opened)
            return False
        if before is not None:
            os.close(before)
        self._inode = _inode(os.fstat(opened))
        return True

    def _begin(self, before_ms: int | None) -> None:
        """Start a new epoch: what the path holds now was not there at the look before."""
        if self.place.offset:
            self._place, self._given = Place(epoch=self.place.epoch + 1), None
        self._head = self._tail = b""
        self._seen = [] if before_ms is None else [_Seen(0, before_ms)]

    def _read(self, now_ms: int, size: int, *, over: bool) -> Iterator[Block]:
        assert self._fd is not None
        while self.place.offset < size:
            data = os.pread(self._fd, min(BLOCK_BYTES, size - self.place.offset), self.place.offset)
            data = _whole_lines(data, at_end=over and self.place.offset + len(data) >= size)
            if not data:
                return
            start = self.place
            if len(self._head) < HEAD_BYTES:
                self._head += data[: HEAD_BYTES - len(self._head)]
            self._tail = data[-TAIL_BYTES:] if len(data) >= TAIL_BYTES else (self._tail + data)[-TAIL_BYTES:]
            lines = Lines(data, start.line_no)
            self._given = Block(data, start, self._identity(), lines, self._after(start.offset), now_ms)
            try:
                yield self._given
            finally:  # a thousand files must not each keep a megabyte
                self._place, self._given = self._given.end, None

    def _rest_of_lost(self, now_ms: int) -> Iterator[Block]:
        """A file that was renamed or deleted is still open: what was written to it before is ours."""
        if self._fd is None:
            return
        try:
            yield from self._read(now_ms, os.fstat(self._fd).st_size, over=True)
        except OSError as error:
            self._fail(error)

    def _after(self, offset: int) -> int | None:
        """The last look at which the byte at `offset` was not there yet."""
        while len(self._seen) > 1 and self._seen[1].size <= offset:
            del self._seen[0]
        del self._seen[MOST_LOOKS:]
        return self._seen[0].at_ms if self._seen and self._seen[0].size <= offset else None

    def _identity(self) -> str:
        """`device:inode:n:hash of the first n bytes:hash of the bytes before the offset`."""
        return f"{self._inode}{len(self._head)}:{_hash(self._head)}:{_hash(self._tail)}"

    def _is_same(self, status: os.stat_result) -> bool:
        """Whether the open file still holds what we read from it."""
        if status.st_size < self.place.offset:
            return False
        head, tail = self._around(len(self._head))
        return head == self._head and tail == self._tail

    def _was_read(self) -> bool:
        """Whether the open file still holds what was read from it before we were."""
        assert self._fd is not None
        if os.fstat(self._fd).st_size < self.place.offset:
            return False
        _device, _node, count, *known = self.place.identity.split(":")
        head, tail = self._around(int(count))
        if [_hash(head), _hash(tail)] != known:
            return False
        self._head, self._tail = head, tail
        return True

    def _around(self, count: int) -> tuple[bytes, bytes]:
        """The first `count` bytes, and those before the place."""
        assert self._fd is not None
        start = max(0, self.place.offset - TAIL_BYTES)
        return os.pread(self._fd, count, 0), os.pread(self._fd, self.place.offset - start, start)

    def _fail(self, error: OSError) -> None:
        self.close()
        if isinstance(error, FileNotFoundError | NotADirectoryError):
            self.state = FileState.ABSENT
        elif isinstance(error, PermissionError):
            self.state = FileState.DENIED
        else:
            self.state = FileState.BROKEN
        self.problem = f"{error.strerror or error}: {self.path}"


def _whole_lines(data: bytes, *, at_end: bool) -> bytes:
    end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
    return data if at_end or (end == 0 and len(data) == BLOCK_BYTES) else data[:end]


def _inode(status: os.stat_result) -> str:
    return f"{status.st_dev}:{status.st_ino}:"


def _hash(data: bytes) -> str:
    return blake2b(data, digest_size=8).hexdigest()
