"""A save that began and was never done, before the ranks waited for each other in vain: it is what they waited for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from schemas.facts import Evidence
from schemas.vocabulary import FaultClass, LineRole, Phase, Remedy, Scope
from streams.decide.state import Line
from streams.watch.matching.matcher import Found

SIGNATURE, PRECEDENCE = "save-unfinished", 3
_WAITING = {FaultClass.NCCL_TIMEOUT, FaultClass.HANG_NO_LOG}


@dataclass
class Saves:
    """Give it every line that says something, in order."""

    _begun: Evidence | None = None

    def take(self, found: Found, place: Callable[[], Evidence]) -> None:
        """A save begins, or what is told now comes after it."""
        if found.phase is Phase.CHECKPOINT and (found.saved is None or found.saved.early):
            self._begun = self._begun or place()
        elif found.progress is not None or found.saved is not None or found.phase is not None:
            self._begun = None

    def waited_for(self, lines: Sequence[Line]) -> Line | None:
        """The save as a line of a signature would say it, where ranks waited after it began."""
        if self._begun is None or not any(line.fault_class in _WAITING for line in lines):
            return None
        kind, detail = FaultClass.STORAGE_IO, "a save began that was never done"
        place = (Scope.UNKNOWN, Remedy.WAIT, LineRole.CONSEQUENCE)
        return Line(SIGNATURE, kind, *place, PRECEDENCE, detail, None, None, None, self._begun)
