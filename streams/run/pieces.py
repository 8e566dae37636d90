"""A state written piece by piece, so that the parts that a fact left as they were keep their bytes.

Avro writes a record as its fields, one after the other, and an array as a count, its items and a zero. So the bytes of
a whole state are the bytes of its pieces in a row: each piece is written by fastavro, and those of frozen parts that
are still the same object are taken again. A decider writes a whole state after every fact; this is most of its time.
"""

from __future__ import annotations

import io
import types
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from typing import Any, get_args, get_origin, get_type_hints

from fastavro import parse_schema, schemaless_writer

from schemas.records import bare, fields_to_avro, schema_of_fields

Piece = Callable[[Any], bytes]

KEPT_PARTS = 5_000
"""Parts whose bytes are kept; past it all are forgotten at once."""
ABSENT, PRESENT = b"\x00", b"\x02"
"""Avro's index of the first and the second branch of a union; the first is null."""
END_OF_ARRAY = b"\x00"


class Pieces:
    """Writes instances of `cls`. `kept`: the classes of parts, frozen all through, whose bytes are worth keeping.

    `steady`: fields of a class that mostly keep their values, so that a row of them has known bytes.
    They must be hashable, and no floats: 0.0 and -0.0 are equal, and different bytes.
    """

    def __init__(self, cls: type, kept: frozenset[type], steady: Mapping[type, frozenset[str]]) -> None:
        self._kept = kept
        self._steady = steady
        self._parts: dict[int, tuple[Any, bytes]] = {}
        self._pieces: dict[type, tuple[Piece, ...]] = {}
        self._cls = cls
        self._prepare(cls)

    def __call__(self, instance: Any) -> bytes:
        """Return the Avro bytes of an instance: those that fastavro gives for it as a whole."""
        return b"".join([piece(instance) for piece in self._pieces[self._cls]])

    def _prepare(self, cls: type) -> None:
        if cls in self._pieces:
            return
        self._pieces[cls] = ()
        hints = get_type_hints(cls, include_extras=True)
        names = [field.name for field in fields(cls)]
        pieces: list[Piece] = []
        steady = self._steady.get(cls, frozenset())

        def kind(name: str) -> str:
            return "part" if self._part_of(bare(hints[name])) else "steady" if name in steady else "plain"

        for what, run in groupby(names, kind):
            if what == "part":
                pieces += [self._part_field(name, bare(hints[name])) for name in run]
            else:
                make = _steady if what == "steady" else _plain
                pieces.append(make(cls, tuple(run)))
        self._pieces[cls] = tuple(pieces)

    def _part_of(self, kind: Any) -> type | None:
        """The kept class that a field holds, holds several of, or may hold."""
        for candidate in (kind, *get_args(kind)):
            if candidate in self._kept:
                return candidate  # type: ignore[no-any-return]
        return None

    def _part_field(self, name: str, kind: Any) -> Piece:
        part = self._part_of(kind)
        assert part is not None
        self._prepare(part)
        read, write = attrgetter(name), self._part
        if get_origin(kind) is tuple:
            return lambda instance: _array([write(part, item) for item in read(instance)])
        if types.NoneType in get_args(kind):
            return lambda instance: ABSENT if (held := read(instance)) is None else PRESENT + write(part, held)
        return lambda instance: write(part, read(instance))

    def _part(self, cls: type, instance: Any) -> bytes:
        """The bytes of a part, kept for as long as the part itself, which has its id for so long."""
        known = self._parts.get(id(instance))
        if known is None:
            data = b"".join([piece(instance) for piece in self._pieces[cls]])
            if len(self._parts) >= KEPT_PARTS:
                self._parts.clear()
            known = self._parts[id(instance)] = (instance, data)
        return known[1]


def _plain(cls: type, names: tuple[str, ...]) -> Piece:
    """Some fields in a row, written by fastavro."""
    schema, convert = parse_schema(schema_of_fields(cls, names)), fields_to_avro(cls, names)

    def write(instance: Any) -> bytes:
        buffer = io.BytesIO()
        schemaless_writer(buffer, schema, convert(instance))
        return buffer.getvalue()

    return write


def _steady(cls: type, names: tuple[str, ...]) -> Piece:
    """The same for fields whose values are mostly those of a moment ago."""
    write, read = _plain(cls, names), attrgetter(*names)
    known: dict[Any, bytes] = {}

    def piece(instance: Any) -> bytes:
        values = read(instance)
        data = known.get(values)
        if data is None:
            if len(known) >= KEPT_PARTS:
                known.clear()
            data = known[values] = write(instance)
        return data

    return piece


def _array(items: list[bytes]) -> bytes:
    return _count(len(items)) + b"".join(items) + END_OF_ARRAY if items else END_OF_ARRAY


@lru_cache(maxsize=256)
def _count(number: int) -> bytes:
    buffer = io.BytesIO()
    schemaless_writer(buffer, "long", number)
    return buffer.getvalue()
