"""What an old record holds, in words: its own fields alone, for those that came since are at their defaults."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

Fields = dict[str, set[str]]


def as_written(value: Any, schema: Any) -> str:
    """The `repr` that the value had when its class had the fields of this schema."""
    return _words(value, dict(_records(schema)))


def _records(schema: Any) -> Iterator[tuple[str, set[str]]]:
    """The name and the fields of each record that a schema defines."""
    if isinstance(schema, list):
        for branch in schema:
            yield from _records(branch)
    elif isinstance(schema, dict) and schema["type"] == "array":
        yield from _records(schema["items"])
    elif isinstance(schema, dict) and schema["type"] == "record":
        yield schema["name"], {field["name"] for field in schema["fields"]}
        for field in schema["fields"]:
            yield from _records(field["type"])


def _words(value: Any, known: Fields) -> str:
    if is_dataclass(value):
        name = type(value).__name__
        shown = []
        for field in fields(value):
            held = getattr(value, field.name)
            if field.name in known[name]:
                shown.append(f"{field.name}={_words(held, known)}")
            else:
                assert held == (None if field.default is MISSING else field.default), f"{name}.{field.name}"
        return f"{name}({', '.join(shown)})"
    if isinstance(value, tuple):
        return f"({', '.join(_words(one, known) for one in value)}{',' if len(value) == 1 else ''})"
    return repr(value)
