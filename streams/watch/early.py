"""Which saves are complete: some programs tell one before they write it, and going on shows that they did."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from schemas.vocabulary import Phase
from streams.watch.matching.matcher import Found
from streams.watch.matching.progress import Checkpoint


@dataclass
class Written:
    """Give it every line of a run that says something, in their order."""

    _step: int | None = None
    _in_epochs: bool = False
    """Whether steps are counted anew in each epoch."""
    _early: Checkpoint | None = None
    _since: int | None = None
    """The last step when that save was told, or its own where that is further, or the first step after it."""

    def saves(self, found: Found) -> Iterator[Checkpoint]:
        """The saves that are known with this line to be complete."""
        if found.loaded is not None:
            self._early = None
        if found.progress is not None:
            self._in_epochs = found.progress.epoch is not None
            yield from self._moved(found.progress.of_run)
        if found.phase is Phase.FINISHING:
            yield from self._went_on(True)
        if found.saved is None:
            return
        if not found.saved.early:
            if self._early is not None and self._early.step == found.saved.step:
                self._early = None  # it is told once more, now that it is done
            yield found.saved
            return
        saved = found.saved if found.saved.step is not None else replace(found.saved, step=self._step)
        yield from self._went_on(self._early is not None and (self._early.step or 0) < (saved.step or 0))
        self._early, self._since = saved, self._step
        if self._step is not None and not self._in_epochs:  # else the save may be counted in another way
            self._since = max(self._step, saved.step or 0)  # what was counted last may have been an evaluation's

    def _moved(self, step: int) -> Iterator[Checkpoint]:
        """Steps that go back a little are those of another rank, or of shorter epochs; far back, of another run."""
        self._step = step
        if self._since is None:
            self._since = step
        elif step > self._since:
            yield from self._went_on(True)
        elif 2 * step < self._since:
            self._early = None

    def _went_on(self, written: bool) -> Iterator[Checkpoint]:
        if written and self._early is not None:
            yield self._early
        self._early = None
