"""Avro schemas of the event classes, and the conversion between an event and its Avro record.

The class is the source: its fields, their types and their `Annotated` words give the schema, so that the two never
drift. What was published stays: `schemas/avro/<Event>/<n>.avsc` are committed and immutable, and a test refuses a
change of a class without a new number.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from schemas.frozen import build

NAMESPACE = "recovery"
PRIMITIVES: dict[type, str] = {str: "string", int: "long", float: "double", bool: "boolean", bytes: "bytes"}
FIELD_DOCS = {
    "event_id": "UUIDv5 of what caused this event and its ordinal",
    "cause": "event id of what caused this; empty where it came from outside",
    "attempt": "the exact attempt this concerns",
    "position": "where this stands in its source",
    "decided_ms": "the decider's now: the running maximum of the job's record timestamps",
}

Convert = Callable[[Any], Any]


class UnsupportedType(TypeError):
    """A field whose type has no Avro form here."""


def schema_of(event_class: type) -> dict[str, Any]:
    """Return the Avro schema of an event class as a JSON-like dict; nested records are defined at first use."""
    return _record(event_class, set())


def _record(cls: type, defined: set[str]) -> dict[str, Any]:
    defined.add(cls.__name__)
    hints = get_type_hints(cls, include_extras=True)
    avro_fields = []
    for field in fields(cls):
        kind, doc = _unwrap(hints[field.name])
        avro: dict[str, Any] = {"name": field.name, "type": _type(kind, defined)}
        text = doc or FIELD_DOCS.get(field.name)
        if text:
            avro["doc"] = text
        if field.default is not MISSING:
            avro["default"] = _default(field.default)
        elif isinstance(avro["type"], list):
            avro["default"] = None
        avro_fields.append(avro)
    doc = (cls.__doc__ or "").strip()
    return {"type": "record", "name": cls.__name__, "namespace": NAMESPACE, "doc": doc, "fields": avro_fields}


def bare(hint: Any) -> Any:
    """The type of a field without the words about it."""
    return _unwrap(hint)[0]


def _unwrap(hint: Any) -> tuple[Any, str | None]:
    if get_origin(hint) is Annotated:
        kind, *extras = get_args(hint)
        return kind, next((extra for extra in extras if isinstance(extra, str)), None)
    return hint, None


def _type(kind: Any, defined: set[str]) -> Any:
    if kind in PRIMITIVES:
        return PRIMITIVES[kind]
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return "string"
    if isinstance(kind, type) and is_dataclass(kind):
        return f"{NAMESPACE}.{kind.__name__}" if kind.__name__ in defined else _record(kind, defined)
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType) and len(args) == 2 and types.NoneType in args:
        inner = next(arg for arg in args if arg is not types.NoneType)
        return ["null", _type(inner, defined)]
    if origin is tuple and len(args) == 2 and args[1] is Ellipsis:
        return {"type": "array", "items": _type(args[0], defined)}
    raise UnsupportedType(f"no Avro type for {kind!r}")


def _default(value: Any) -> Any:
    return [] if value == () else value


@cache
def to_document(cls: type) -> Convert:
    """Return the function that turns an event of `cls` into a plain dict, as JSON takes it."""
    hints = get_type_hints(cls, include_extras=True)
    names = [field.name for field in fields(cls)]
    converters = [(name, _outward(_unwrap(hints[name])[0])) for name in names]
    nested = [(name, convert) for name, convert in converters if convert is not None]

    def pick(event: Any) -> dict[str, Any]:
        held = event.__dict__  # may hold cached properties, too
        document = {name: held[name] for name in names}
        for name, outward in nested:
            document[name] = outward(document[name])
        return document

    return pick


def _optional(inner: Convert) -> Convert:
    return lambda value: None if value is None else inner(value)


def _each(inner: Convert) -> Convert:
    return lambda values: tuple(map(inner, values))


def _outward(kind: Any) -> Convert | None:
    """The conversion of a field's value, or None where it is taken as it is (a StrEnum is a str)."""
    if kind in PRIMITIVES or (isinstance(kind, type) and issubclass(kind, StrEnum)):
        return None
    if isinstance(kind, type) and is_dataclass(kind):
        return to_document(kind)
    origin, args = get_origin(kind), get_args(kind)
    if origin is tuple:
        inner = _outward(args[0])
        return None if inner is None else _each(inner)
    inner = _outward(next(arg for arg in args if arg is not types.NoneType))
    return None if inner is None else _optional(inner)


@cache
def from_avro(cls: type) -> Convert:
    """Return the function that rebuilds an event of `cls` from the dict fastavro read.

    It raises ValueError for an unknown word, and TypeError for fields that `cls` does not have or lacks.
    """
    hints = get_type_hints(cls, include_extras=True)
    inwards = [(field.name, _inward(_unwrap(hints[field.name])[0])) for field in fields(cls)]
    nested = [(name, inward) for name, inward in inwards if inward is not None]
    count = -1 if hasattr(cls, "__post_init__") else len(inwards)

    def convert(record: dict[str, Any]) -> Any:
        for name, inward in nested:
            record[name] = inward(record[name])  # raises KeyError where it is not there
        return build(cls, record) if len(record) == count else cls(**record)

    return convert


class _Words(dict[str, StrEnum]):
    """The members of an enumeration by their words; asked a hundred thousand times a second, so it is no call of it."""

    def __init__(self, kind: type[StrEnum]) -> None:
        super().__init__((member.value, member) for member in kind)
        self._kind = kind

    def __missing__(self, word: str) -> StrEnum:
        return self._kind(word)


def _inward(kind: Any) -> Convert | None:
    if kind in PRIMITIVES:
        return None
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return _Words(kind).__getitem__
    if isinstance(kind, type) and is_dataclass(kind):
        return from_avro(kind)
    origin, args = get_origin(kind), get_args(kind)
    if origin is tuple:
        inner = _inward(args[0])
        return tuple if inner is None else _each(inner)
    inner = _inward(next(arg for arg in args if arg is not types.NoneType))
    return None if inner is None else _optional(inner)
