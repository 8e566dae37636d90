"""Reads single values out of Slurm's JSON, whose shapes differ by version.

22.05 has plain numbers and texts; later data_parser versions wrap numbers as {set, infinite, number}, give states as
lists, and turn `nodes` from a text into a structure. What fits neither raises UnknownShape: the caller turns it into
Unknown, never into a guess.
"""

from __future__ import annotations

from typing import Any

NO_VALUES = frozenset({0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFE, 0xFFFFFFFFFFFFFFFF})


class UnknownShape(ValueError):
    """A value of Slurm's JSON in a form that this code does not know; the message names it."""


def number(entry: dict[str, Any], name: str, *, default: int | None = None) -> int | None:
    """A number, plain or wrapped; `default` where it is absent, null or not set."""
    value = entry.get(name)
    if isinstance(value, dict):
        if not {"set", "number"} <= value.keys():
            raise UnknownShape(f"{name} is {value!r}, a number of unknown form")
        value = value["number"] if value["set"] and not value.get("infinite") else None
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int):
        raise UnknownShape(f"{name} is {value!r}, not a number")
    return default if value in NO_VALUES else value


def required(entry: dict[str, Any], name: str) -> int:
    """A number that must be there."""
    value = number(entry, name)
    if value is None:
        raise UnknownShape(f"{name} is missing")
    return value


def text(entry: dict[str, Any], name: str) -> str:
    """A text; empty where it is absent or null."""
    value = entry.get(name)
    if value is None:
        return ""
    if isinstance(value, list):  # later versions give node lists as lists
        return ",".join(str(one) for one in value)
    if not isinstance(value, str):
        raise UnknownShape(f"{name} is {value!r}, not a text")
    return value


def flag(entry: dict[str, Any], name: str) -> bool:
    """A truth value that must be there (older versions write 0 and 1)."""
    value = entry.get(name)
    if isinstance(value, bool):
        return value
    if isinstance(value, int) and value in (0, 1):
        return bool(value)
    raise UnknownShape(f"{name} is {value!r}, neither true nor false")


def words(entry: dict[str, Any], name: str) -> tuple[str, ...]:
    """One word, or several: states with their flags."""
    value = entry.get(name)
    if isinstance(value, str) and value:
        return (value,)
    if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        return tuple(value)
    raise UnknownShape(f"{name} is {value!r}, neither a word nor a list of words")


def wait_status(entry: dict[str, Any], name: str) -> int | None:
    """An exit code as raw wait status. Later versions take it apart into return_code and signal."""
    value = entry.get(name)
    if not isinstance(value, dict) or "number" in value:
        return number(entry, name)
    code = number(value, "return_code", default=0) or 0
    signal = value.get("signal", {})
    if not isinstance(signal, dict):
        raise UnknownShape(f"{name} is {value!r}, an exit code of unknown form")
    return code << 8 | (number(signal, "id", default=None) or number(signal, "signal_id", default=0) or 0)


def node_list(entry: dict[str, Any], name: str) -> str:
    """The allocated nodes as a host list."""
    value = entry.get(name)
    if isinstance(value, dict):
        value = value.get("list", value.get("nodes"))
        if not isinstance(value, str):
            raise UnknownShape(f"{name} is a structure without a list of nodes")
    return text({name: value}, name)
