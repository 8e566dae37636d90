"""Events and states as Avro's binary form, written piece by piece.

The bytes are those that fastavro writes (a test holds both to it). But a decider writes a whole state after every
fact, of which the fact changed a little: here the bytes of the parts that stayed the same object are kept.
"""

from __future__ import annotations

import struct
import types
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from enum import StrEnum
from functools import lru_cache
from operator import attrgetter
from typing import Any, cast, get_args, get_origin, get_type_hints

from schemas.records import UnsupportedType, bare

Put = Callable[[bytes], None]
Write = Callable[[Any, Put], None]

KEPT_PARTS = 5_000
"""Parts whose bytes a writer keeps; past it, it forgets all of them at once."""
MIN, MAX = -(1 << 63), (1 << 63) - 1
DOUBLE = struct.Struct("<d")


class Writer:
    """Writes instances of one class. `kept`: the classes of parts, frozen all through, whose bytes are worth keeping.

    Raises UnsupportedType for a field without an Avro form. Safe to share between threads where nothing is kept.
    """

    def __init__(self, cls: type, kept: frozenset[type] = frozenset()) -> None:
        self._kept = kept
        self._parts: dict[int, tuple[Any, bytes]] = {}
        self._records: dict[type, Write] = {}
        self._write = self._record(cls)

    def __call__(self, instance: Any) -> bytes:
        """Return the Avro bytes of an instance."""
        pieces: list[bytes] = []
        self._write(instance, pieces.append)
        return b"".join(pieces)

    def _record(self, cls: type) -> Write:
        if cls not in self._records:
            whole = self._fields(cls)
            self._records[cls] = self._remembering(whole) if cls in self._kept else whole
        return self._records[cls]

    def _fields(self, cls: type) -> Write:
        hints = get_type_hints(cls, include_extras=True)
        names = [field.name for field in fields(cls)]
        writes = [self._of(bare(hints[name])) for name in names]
        if len(names) == 1:
            read, [write] = attrgetter(names[0]), writes
            return lambda instance, put: write(read(instance), put)
        values = cast(Callable[[Any], tuple[Any, ...]], attrgetter(*names))

        def record(instance: Any, put: Put) -> None:
            for write, value in zip(writes, values(instance), strict=True):
                write(value, put)

        return record

    def _remembering(self, whole: Write) -> Write:
        """Keeps the bytes of each instance as long as the instance itself, which has its id for so long."""
        parts = self._parts

        def record(instance: Any, put: Put) -> None:
            known = parts.get(id(instance))
            if known is None:
                pieces: list[bytes] = []
                whole(instance, pieces.append)
                if len(parts) >= KEPT_PARTS:
                    parts.clear()
                known = parts[id(instance)] = (instance, b"".join(pieces))
            put(known[1])

        return record

    def _of(self, kind: Any) -> Write:
        if kind in _PRIMITIVE_WRITES:
            return _PRIMITIVE_WRITES[kind]
        if isinstance(kind, type) and issubclass(kind, StrEnum):
            return _text
        if isinstance(kind, type) and is_dataclass(kind):
            return self._record(kind)
        args = [arg for arg in get_args(kind) if arg is not types.NoneType]
        if not args:
            raise UnsupportedType(f"no Avro form for {kind!r}")
        inner = self._of(args[0])
        return _each(inner) if get_origin(kind) is tuple else _optional(inner)


@lru_cache(maxsize=1 << 16)
def long(number: int) -> bytes:
    """Avro's zigzag varint: times and counts come again and again, so they are remembered."""
    if not MIN <= number <= MAX:
        raise OverflowError(f"{number} does not fit into Avro's long")
    rest = number << 1 if number >= 0 else ~(number << 1)
    piece = bytearray()
    while rest > 0x7F:
        piece.append(rest & 0x7F | 0x80)
        rest >>= 7
    piece.append(rest)
    return bytes(piece)


def _whole(number: int, put: Put) -> None:
    put(long(number))


def _text(value: str, put: Put) -> None:
    data = value.encode()
    put(long(len(data)))
    put(data)


def _raw(value: bytes, put: Put) -> None:
    put(long(len(value)))
    put(value)


def _flag(value: bool, put: Put) -> None:
    put(b"\x01" if value else b"\x00")


def _real(value: float, put: Put) -> None:
    put(DOUBLE.pack(value))


def _optional(inner: Write) -> Write:
    def write(value: Any, put: Put) -> None:
        if value is None:
            put(b"\x00")
        else:
            put(b"\x02")
            inner(value, put)

    return write


def _each(inner: Write) -> Write:
    def write(values: tuple[Any, ...], put: Put) -> None:
        if values:
            put(long(len(values)))
            for value in values:
                inner(value, put)
        put(b"\x00")

    return write


_PRIMITIVE_WRITES: dict[type, Write] = {str: _text, int: _whole, float: _real, bool: _flag, bytes: _raw}
