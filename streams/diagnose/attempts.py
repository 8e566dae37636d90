"""How far training came since it began, or began anew in the same file, and whether a new attempt is on its way."""

from __future__ import annotations

from dataclasses import dataclass

from streams.watch.matching.progress import Checkpoint, Counter, Step, counter_of

ON_ITS_WAY_STEPS, ON_ITS_WAY_MS = 3, 120_000
"""An attempt that went on for so many steps, or for so long, is what the run is about, and not why it began anew."""
_Key = tuple[int, int]


@dataclass
class Attempts:
    """Tell it of every step that learned something, and of every start."""

    reached: _Key | None = None
    """The epoch and the step that this attempt came to."""
    _furthest: _Key = (-1, -1)
    """The same of all attempts."""
    _counted: Counter | None = None
    """By what is counted."""
    _loaded: Checkpoint | None = None
    """What this attempt began from: with a checkpoint the same count may have another end."""
    _first: _Key | None = None
    _first_ms: int = 0

    def is_back(self, step: Step) -> bool:
        """Whether this attempt was further already."""
        return self.reached is not None and _key(step) < self.reached

    def is_further(self, step: Step) -> bool:
        """Whether this attempt was not there yet."""
        return self.reached is None or _key(step) > self.reached

    def begin(self, loaded: Checkpoint | None) -> None:
        """Another attempt begins: what the one before reached is no measure of it."""
        self.reached, self._first, self._loaded = None, None, loaded

    def moved(self, step: Step, now_ms: int) -> bool:
        """This attempt is further. Is it on its way? Other bars may be those of what is done after a failure."""
        key = self.reached = _key(step)
        if self._counted is None or key > self._furthest:
            self._furthest, self._counted = key, counter_of(step)
            return True
        if not self._is_counted(step):
            return False
        if self._first is None:
            self._first, self._first_ms = self._begun_at(step), now_ms
        (epoch, number), (first_epoch, first_number) = key, self._first
        lasted = bool(self._first_ms) and now_ms - self._first_ms >= ON_ITS_WAY_MS
        return lasted or epoch > first_epoch or number - first_number >= ON_ITS_WAY_STEPS

    def _begun_at(self, step: Step) -> _Key:
        """Where this attempt began, of which this is the first step that is seen: not every one is read."""
        loaded = None if self._loaded is None else self._loaded.step
        return _key(step) if loaded is None or step.epoch is not None else (0, min(step.step, loaded))

    def _is_counted(self, step: Step) -> bool:
        """Whether it is what was counted before."""
        if self._loaded is not None and self._counted is not None:
            return step.framework == self._counted[0]
        return counter_of(step) == self._counted


def _key(step: Step) -> _Key:
    return step.epoch or 0, step.step
