"""What a run survives again and again, in the same words: it explains an end only where nothing else does."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from schemas.vocabulary import FaultClass, LineRole
from streams.decide.roots import CERTAIN, ENDED_BY_SCHEDULER, TIER
from streams.decide.state import Line

OFTEN = 2
"""What training outlived so many times is no reason to believe that it ended of the next."""
MOST_KINDS = 1024
_LASTING = {*ENDED_BY_SCHEDULER, FaultClass.NUMERIC_NAN}
_VARYING = re.compile(r"0x[0-9a-f]+|\d+(?:\.\d+)?(?: [KMGT]i?B\b)?")
_BY_ITS_CODE = re.compile(r"(?i)(?:code|status)\s*[:=]?\s*(?:[1-9]\d?|255)\b")
_Kind = tuple[str, str]


@dataclass
class Habits:
    """Tell it what training outlived, each time that it went on."""

    _times: Counter[_Kind] = field(default_factory=Counter)
    _at_once: dict[_Kind, int] = field(default_factory=dict)
    """How many such lines were outlived at once, at most."""

    def outlived(self, lines: Sequence[Line]) -> None:
        """Training went on after these."""
        for kind, count in Counter(_kind(line) for line in lines if _may_be_survived(line)).items():
            if kind in self._times or len(self._times) < MOST_KINDS:
                self._times[kind] += 1
                self._at_once[kind] = max(count, self._at_once.get(kind, 0))

    def survived(self, lines: Sequence[Line]) -> list[bool]:
        """Of each line, whether the run has survived the like before, often and as many at once."""
        counts = Counter(_kind(line) for line in lines)
        return [_may_be_survived(line) and self._is_one(_kind(line), counts) for line in lines]

    def _is_one(self, kind: _Kind, counts: Counter[_Kind]) -> bool:
        return self._times[kind] >= OFTEN and counts[kind] <= self._at_once[kind]


def tell_a_failure_only(lines: Sequence[Line]) -> bool:
    """Whether all that they say is that a program failed: of what, is told by whatever stands beside them."""
    ended = all(tells_an_end(line) for line in lines)
    return ended and any(_BY_ITS_CODE.search(line.evidence.text) for line in lines)


def tells_an_end(line: Line) -> bool:
    """Whether it says no more than that a process of the program failed."""
    return line.role is LineRole.CONSEQUENCE and line.fault_class is FaultClass.USER_CODE and line.precedence < TIER


def _kind(line: Line) -> _Kind:
    """By what lines say the same: numbers, addresses and sizes differ from one time to the next."""
    return line.signature, _VARYING.sub("", line.evidence.text)


def _may_be_survived(line: Line) -> bool:
    """Broken hardware stays broken, numbers that are none may do so, and who ends a run needs no other reason."""
    return line.precedence < CERTAIN and line.fault_class not in _LASTING
