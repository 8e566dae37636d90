"""Finds the line by which an unknown program counts its steps: a shape that repeats, with a number in it that rises.

A shape is a line with its numbers taken out. Memory is bounded: of many shapes only those that came first are followed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

MOST_SHAPES = 2000
MOST_CHARACTERS = 400
LEAST_LINES = 3
KEPT_VALUES = 64

_STAMP = re.compile(
    r"\d{4}[-/]\d\d[-/]\d\d(?:[T_ ]{1,2}\d\d:\d\d:\d\d(?:[.,]\d+)?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?)?"
    r"|\d\d[/-]\d\d \d\d:\d\d:\d\d"
    r"|\b\d{1,3}:\d\d:\d\d(?:[.,]\d+)?|\b\d\d:\d\d\b"
)
_NUMBER = re.compile(r"(?<![A-Za-z_])[-+]?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?|\b(?:nan|inf)\b")
_COUNTER = re.compile(r"(?i)(?:step|iter(?:ation)?|batch|update|global_step|it)s?['\"]?\s*[:=#/\[(]?\s*$")
_PACE = re.compile(
    r"\s*(?P<unit>s|sec|secs|seconds|ms|milliseconds) ?(?:/|per) ?(?:it|iter|iteration|step|batch)\b", re.I
)
_GAP, _TIME = "\x00", "\x01"
_OWN = str.maketrans({_GAP: " ", _TIME: " "})
"""What a line may not bring itself, since shapes are made of it."""


@dataclass
class _Shape:
    example: str
    count: int = 0
    values: list[list[float]] = field(default_factory=list)
    rising: list[int] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    """How often the column rose by the same as the time before."""


@dataclass(frozen=True)
class Proposal:
    """A pattern for a site's own format, and what it reads from the file."""

    pattern: str
    seconds: str | None
    example: str
    lines: int
    steps: tuple[int, ...]


class Shapes:
    """Takes lines in their order."""

    def __init__(self) -> None:
        self._shapes: dict[str, _Shape] = {}

    def take(self, line: bytes) -> None:
        text = line[:MOST_CHARACTERS].decode("utf-8", "replace").translate(_OWN).rstrip()
        if not any(character.isdigit() for character in text):
            return
        key, numbers = _taken_apart(text)
        known = self._shapes.get(key)
        if known is None:
            if not numbers or len(self._shapes) >= MOST_SHAPES:
                return
            known = self._shapes[key] = _Shape(text, 0, [[] for _ in numbers], [0] * len(numbers), [0] * len(numbers))
        known.count += 1
        for column, number in enumerate(numbers):
            _compare(known, column, number)

    def proposal(self) -> Proposal | None:
        """The best shape there is; None where nothing repeats and rises."""
        best: tuple[tuple[bool, bool, int], str, int] | None = None
        for key, shape in self._shapes.items():
            column = _counter_of(key, shape)
            if column is None:
                continue
            steady = shape.steps[column] >= (shape.count - 2) * 0.8
            rank = (bool(_COUNTER.search(_before(key, column))), steady, shape.count)
            if best is None or rank > best[0]:
                best = (rank, key, column)
        return None if best is None else _proposed(best[1], self._shapes[best[1]], best[2])


def _taken_apart(text: str) -> tuple[str, list[float]]:
    numbers: list[float] = []

    def taken(match: re.Match[str]) -> str:
        numbers.append(float(match.group().replace(",", "")))
        return _GAP

    return _NUMBER.sub(taken, _STAMP.sub(_TIME, text)), numbers


def _compare(shape: _Shape, column: int, number: float) -> None:
    values = shape.values[column]
    if values and number > values[-1]:
        shape.rising[column] += 1
        if len(values) > 1 and abs((number - values[-1]) - (values[-1] - values[-2])) < 1e-9:
            shape.steps[column] += 1
    values.append(number)
    del values[: -KEPT_VALUES - 2]


def _counter_of(key: str, shape: _Shape) -> int | None:
    """The column that rises from nearly every line to the next, and is whole; a named one before others."""
    if shape.count < LEAST_LINES:
        return None
    rising = [
        column
        for column, count in enumerate(shape.rising)
        if count >= (shape.count - 1) * 0.9 and all(value.is_integer() for value in shape.values[column])
    ]
    named = [column for column in rising if _COUNTER.search(_before(key, column))]
    return next(iter(named or rising), None)


def _before(key: str, column: int) -> str:
    return key.split(_GAP)[column]


def _proposed(key: str, shape: _Shape, column: int) -> Proposal:
    parts = [_literal(part) for part in key.split(_GAP)]
    pattern = ""
    for number, part in enumerate(parts):
        pattern += part
        if number == column:
            pattern += r"(?P<step>\d+)"
        elif number == column + 1 and part.strip() in ("/", r"\s*/\s*"):
            pattern += r"(?P<total>\d+)"
        elif number < len(parts) - 1:
            pattern += r"[0-9.,eE+naif-]+"
    seconds = next((_pace(key, gap) for gap in range(len(parts) - 1) if _pace(key, gap)), None)
    steps = tuple(int(value) for value in shape.values[column][-KEPT_VALUES:])
    return Proposal(f"^{pattern}", seconds, shape.example, shape.count, steps)


def _pace(key: str, gap: int) -> str | None:
    after = key.split(_GAP)[gap + 1]
    match = _PACE.match(after)
    return None if match is None else rf"(?P<value>[0-9.eE+-]+){_literal(match.group())}"


def _literal(part: str) -> str:
    """A piece of the line as a pattern: blanks may vary, a time may be any."""
    escaped = re.sub(r"(?:\\ |\\\t|\s)+", r"\\s*", re.escape(part))
    return escaped.replace(_TIME, r"[0-9T:.,/+_ -]+").replace(re.escape(_TIME), r"[0-9T:.,/+_ -]+")
