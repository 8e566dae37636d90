"""The rules of each logic version: old history is decided as it was, byte for byte, whatever was learned since.

What an incident's lines mean is what changes as more failures are known. A new version gets its entry here, and the one
before it a frozen copy in a folder of its own (docs/decisions/0013).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from schemas.policy import LOGIC
from streams.decide import blame, lines, roots, weighing
from streams.decide.blame import Places
from streams.decide.cause import Cause, Scene
from streams.decide.logic1 import blame as blame1
from streams.decide.logic1 import weighing as weighing1
from streams.decide.state import Attempt, Line


@dataclass(frozen=True)
class Rules:
    """What lines mean. Pure functions."""

    root_line: Callable[[Sequence[Line]], Line]
    """The line that explains the others."""
    weigh: Callable[[Sequence[Line], Scene], Cause]
    """The cause of at least one line, and what should be done about it."""
    means_by_number: Callable[[Line], bool]
    """Whether a line names somebody by an address or a rank."""
    places_of: Callable[[Iterable[str], Sequence[Line]], Places]
    """Which nodes those are."""
    is_worth_hearing: Callable[[Line], bool]
    """Whether what a node says may explain a failure that follows."""
    is_told_again: Callable[[Attempt, Line, int], bool]
    """Whether a node only repeats, at this time, what an incident of the attempt has dealt with."""


_RULES = {
    1: Rules(
        weighing1.root_line,
        weighing1.weigh,
        blame1.means_by_number,
        blame1.places_of,
        lambda line: line.remedy not in lines.SILENT,
        lambda _attempt, _line, _now_ms: False,
    ),
    2: Rules(
        roots.root_line,
        weighing.weigh,
        blame.means_by_number,
        blame.places_of,
        lines.is_worth_hearing,
        lines.is_told_again,
    ),
}


def rules_of(logic: int) -> Rules:
    """The rules of a supported version; the newest where a job names none yet."""
    return _RULES[logic or LOGIC]
