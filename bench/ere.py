"""The packs' patterns as POSIX extended regular expressions, so that GNU grep can search for the same lines.

A line matches the one exactly where it matches the other: groups without names, greedy repeats, letters of both cases
spelt out. What has no such form raises ValueError.
"""

from __future__ import annotations

import re
import re._constants as sre  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
from typing import Any

_CLASSES = {
    sre.CATEGORY_DIGIT: "0-9",
    sre.CATEGORY_SPACE: "[:space:]",
    sre.CATEGORY_WORD: "[:alnum:]_",
}
_NEGATED = {
    sre.CATEGORY_NOT_DIGIT: sre.CATEGORY_DIGIT,
    sre.CATEGORY_NOT_SPACE: sre.CATEGORY_SPACE,
    sre.CATEGORY_NOT_WORD: sre.CATEGORY_WORD,
}
_ANCHORS = {
    sre.AT_BEGINNING: "^",
    sre.AT_END: "$",
    sre.AT_BOUNDARY: r"\b",
    sre.AT_BEGINNING_STRING: "^",
    sre.AT_END_STRING: "$",
}
_SPECIAL = frozenset("\\.[]{}()*+?^$|")


def extended(pattern: str) -> str:
    """Return the pattern in grep's language. Raises ValueError."""
    return _sequence(parser.parse(pattern), ignore_case=pattern.startswith("(?i)"))


def _sequence(parts: Any, *, ignore_case: bool) -> str:
    return "".join(_one(kind, value, ignore_case=ignore_case) for kind, value in parts)


def _one(kind: Any, value: Any, *, ignore_case: bool) -> str:
    if kind is sre.LITERAL:
        return _literal(chr(value), ignore_case=ignore_case)
    if kind is sre.NOT_LITERAL:
        return "." if chr(value) == "\n" else f"[^{_in_set(chr(value))}]"
    if kind is sre.ANY:
        return "."
    if kind is sre.AT:
        return _ANCHORS[value]
    if kind is sre.IN:
        return _set(value, ignore_case=ignore_case)
    if kind is sre.BRANCH:
        return f"({'|'.join(_sequence(branch, ignore_case=ignore_case) for branch in value[1])})"
    if kind is sre.SUBPATTERN:
        _group, added, removed, parts = value
        inner = (ignore_case or bool(added & re.IGNORECASE)) and not removed & re.IGNORECASE
        return f"({_sequence(parts, ignore_case=inner)})"
    if kind in (sre.MAX_REPEAT, sre.MIN_REPEAT):
        low, high, parts = value
        return f"({_sequence(parts, ignore_case=ignore_case)}){_times(low, high)}"
    raise ValueError(f"no extended form for {kind}")


def _times(low: int, high: Any) -> str:
    known = {(0, 1): "?", (0, sre.MAXREPEAT): "*", (1, sre.MAXREPEAT): "+"}
    return known.get((low, high)) or f"{{{low},{'' if high is sre.MAXREPEAT else high}}}"


def _literal(char: str, *, ignore_case: bool) -> str:
    if ignore_case and char.isalpha():
        return f"[{char.lower()}{char.upper()}]"
    return f"\\{char}" if char in _SPECIAL else char


def _set(parts: Any, *, ignore_case: bool) -> str:
    if len(parts) == 1 and parts[0][1] in _NEGATED:
        return f"[^{_CLASSES[_NEGATED[parts[0][1]]]}]"
    negated = parts[0][0] is sre.NEGATE
    first, middle, last = "", "", ""
    for kind, value in parts[1:] if negated else parts:
        if kind is sre.CATEGORY:
            middle += _CLASSES[value]
        elif kind is sre.RANGE:
            ends = "-".join(map(chr, value))
            middle += ends + (ends.swapcase() if ignore_case and ends.isalnum() else "")
        else:
            char = chr(value)
            first += char if char == "]" else ""
            last += char if char in "^-" else ""
            middle += "" if char in "]^-" else _in_set(char, both=ignore_case)
    if negated and not first + middle + last:
        return "."
    return f"[{'^' if negated else ''}{first}{middle}{last}]"


def _in_set(char: str, *, both: bool = False) -> str:
    if char == "\n":
        return ""  # grep never sees one within a line
    return char.lower() + char.upper() if both and char.isalpha() else char
