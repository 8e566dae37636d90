"""Patterns in the syntax of RE2, as packs and comments of jobs have them: searched in linear time whatever they say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import re2

# RE2 keeps what it learned of hostile lines up to this bound, for each of hundreds of patterns.
PATTERN_BYTES = 256 << 10
MOST_CHARACTERS = 300
"""Of a pattern of a job."""
MOST_PROGRAM = 150
"""RE2's instructions of a pattern of a job: anybody may submit one, and time is lines by instructions at the worst."""
MOST_STARTS = 2
"""How often `^` may stand in it: each means many instructions more, for what launchers put before a line."""
QUOTED = r"\\Q.*?(?:\\E|\Z)|\\.|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]"
"""What stands for characters in a pattern (quoted, an escape, a class): in it none means what it does elsewhere."""
_PIECE = re.compile(
    rf"{QUOTED}|\(\?P?<(?P<name>\w+)>|\(\?(?P<flags>[A-Za-z-]*)[:)]|\{{\d*,?\d*\}}|.",
    re.DOTALL,
)
_NEVER = {
    r"\A": r"\A is the beginning of all that is read; write ^, that of a line",
    r"\z": r"\z is the end of all that is read; write $, that of a line",
    **dict.fromkeys((r"\n", r"\r", "\n", "\r"), "a line is searched without its end; say what stands in one line"),
}
"""What no line matches, and why."""
_DIGIT = re.compile(r"[.0-9]|\\[dwSCpPxQ0-7].*", re.DOTALL)


class BadPattern(ValueError):
    """A pattern that one of the engines refuses; the message says which and why."""


def compiled(text: str, *, within_lines: bool = False) -> Any:
    """Compile for RE2, to be searched for in bytes. Raises BadPattern.

    `within_lines`: many lines are searched at once; `^` and `$` are then those of each, and no match reaches over an
    end of a line.
    """
    options = re2.Options()
    options.log_errors = False
    options.max_mem = PATTERN_BYTES
    options.encoding = re2.Options.Encoding.LATIN1
    options.never_nl = options.never_capture = within_lines
    try:
        return re2.compile((f"(?m){text}" if within_lines else text).encode(), options)
    except re2.error as error:
        reason = error.args[0].decode() if error.args and isinstance(error.args[0], bytes) else error
        raise BadPattern(f"RE2 can't read it: {reason}") from error


def check_of_job(text: str) -> None:
    """Raise BadPattern for a pattern that no job may bring."""
    if not 1 <= len(text) <= MOST_CHARACTERS:
        raise BadPattern(f"it must have 1 to {MOST_CHARACTERS} characters, not {len(text)}")
    pattern = compiled(text)
    _check_pieces(text)
    if b"step" not in pattern.groupindex:
        raise BadPattern(r"it needs a group (?P<step>\d+) around the number of the step")
    if not any(map(_may_be_digit, _within(text, "step"))):
        raise BadPattern(r"its group step can hold no digit; write (?P<step>\d+) around the number of the step")
    if pattern.search(b"") is not None:
        raise BadPattern("it matches an empty line, and so every line; say what stands beside the number")
    if pattern.programsize > MOST_PROGRAM:
        raise BadPattern("it is too large for RE2 to be fast; repeat less, such as + in place of {1,100}")


def _check_pieces(text: str) -> None:
    """Raise BadPattern for what no line could match, and for what would cost too much."""
    starts = 0
    for piece in _PIECE.finditer(text):
        starts += piece.group() == "^"
        if piece.group() in _NEVER:
            raise BadPattern(f"it would never match: {_NEVER[piece.group()]}")
        if "m" in (piece["flags"] or "").partition("-")[2]:
            raise BadPattern("it would never match: with (?-m) ^ and $ are no longer those of a line; leave that out")
    if starts > MOST_STARTS:
        raise BadPattern(f"^ stands in it more than {MOST_STARTS} times; write ^(?:this|that) in place of ^this|^that")


def _within(text: str, group: str) -> Iterator[str]:
    """The pieces of a named group."""
    depth = 0
    for found in _PIECE.finditer(text):
        piece = found.group()
        if depth:
            depth += piece.startswith("(") - (piece == ")") - _is_flags(piece)
            yield piece
        elif found["name"] == group:
            depth = 1


def _is_flags(piece: str) -> bool:
    """Whether it opens no group: `(?i)`."""
    return piece.startswith("(") and piece.endswith(")")


def _may_be_digit(piece: str) -> bool:
    if piece.startswith("["):
        return compiled(piece).search(b"0123456789") is not None
    return _DIGIT.fullmatch(piece) is not None
