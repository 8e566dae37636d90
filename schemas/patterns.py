"""Patterns in the syntax of RE2, as packs and comments of jobs have them: searched in linear time whatever they say."""

from __future__ import annotations

from typing import Any

import re2

# RE2 keeps what it learned of hostile lines up to this bound, for each of hundreds of patterns.
PATTERN_BYTES = 256 << 10
MOST_CHARACTERS = 300
"""Of a pattern of a job."""
MOST_PROGRAM = 400
"""RE2's instructions of a pattern of a job: anybody may submit one, and time is lines by instructions at the worst."""


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
    options.never_nl = within_lines
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
    if b"step" not in pattern.groupindex:
        raise BadPattern(r"it needs a group (?P<step>\d+) around the number of the step")
    if pattern.search(b"") is not None:
        raise BadPattern("it matches an empty line, and so every line; say what stands beside the number")
    if pattern.programsize > MOST_PROGRAM:
        raise BadPattern("it is too large for RE2 to be fast; repeat less, such as + in place of {1,100}")
