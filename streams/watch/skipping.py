"""Steps in which nothing is learned: the gradients had no finite number, so the program left its weights alone.

A few are normal while a loss scale is looked for. A run that does nothing else any more counts its steps for nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from schemas.vocabulary import FaultClass, LineRole, Remedy, Scope
from streams.watch.matching.matcher import Fault
from streams.watch.matching.packs import Signature
from streams.watch.matching.patterns import compile_pattern

FOR_EVER = 50
"""So many in a row, at the end: halving a loss scale of 32 bits takes fewer to come to its floor."""
LEAST_LINES = 3
_TOLD = r"number of skipped iterations: +(\d{1,9})"
_SKIPPED = re.compile(_TOLD.encode())
# Megatron leaves out a loss that is not above nought, and the norm of gradients that were not used.
_LEARNED = re.compile(rb"loss: +\d|grad norm: +(?=[\d.]{0,24}[1-9])\d")
_IN_ALL = re.compile(rb"\bstep=\d{1,12}, skipped=(\d{1,12}), lr=")

SKIPPED_STEPS = Signature(
    id="skipped-steps",
    pattern=compile_pattern(_TOLD),
    unless=None,
    fault_class=FaultClass.NUMERIC_NAN,
    scope=Scope.JOB,
    remedy=Remedy.TERMINATE_NO_RETRY,
    role=LineRole.CAUSE,
    precedence=62,  # as weighty as a line that says the same itself
    detail="every step from here on was skipped: nothing is learned any more",
    examples=(),
    counter_examples=(),
    source="Megatron-LM, DeepSpeed",
    place="streams/watch/skipping.py",
)
"""In no pack, for no single line means it."""

Where = TypeVar("Where")


def is_skipped(line: bytes) -> bool:
    """Whether nothing was learned in the step, or in all that the line tells together: then it has no loss."""
    return _told(line) > 0


def fault_of(line_start: int) -> Fault:
    """What a line means with which such a row is long enough. `line_start`: where in the line its words begin."""
    return Fault(SKIPPED_STEPS, b"", {}, None, line_start, None, None, None)


def _told(line: bytes) -> int:
    match = _SKIPPED.search(line)
    return 0 if match is None or _LEARNED.search(line) is not None else int(match[1])


@dataclass
class Skips(Generic[Where]):
    """Give it what was read, in order. `sampled`: what is not given is like what is; else it counts for nothing."""

    sampled: bool = False
    first: Where | None = None
    """The first of the steps in a row that were skipped."""
    told: bool = False
    """Whether somebody was told of this row: theirs to set."""
    _steps: int = 0
    _lines: int = 0
    _overflows: int = 0
    _in_all: int | None = None
    _step: int | None = None

    @property
    def for_ever(self) -> bool:
        """Whether the program did nothing else any more."""
        enough = self._lines >= LEAST_LINES or self._overflows >= FOR_EVER
        return enough and self._steps + self._overflows >= FOR_EVER

    def overflowed(self, count: int, place: Callable[[], Where]) -> None:
        """So many lines said that a step was skipped."""
        if count and self.first is None:
            self.first = place()
        self._overflows += count

    def stepped(self, step: int, line: bytes, place: Callable[[], Where]) -> None:
        """A step was counted, and its line may say that it was skipped."""
        if step == self._step:
            return
        advance = step - self._step if self._step is not None and step > self._step else 1
        self._step = step
        if not self._is_skipped(line, advance):
            self._steps, self._lines, self._overflows, self.first, self.told = 0, 0, 0, None, False
            return
        self.first = self.first or place()
        told = _told(line)
        self._steps += max(advance, told) if self.sampled else told or advance
        self._lines, self._overflows = self._lines + 1, 0

    def _is_skipped(self, line: bytes, advance: int) -> bool:
        match = _IN_ALL.search(line)
        if match is None:
            return _told(line) > 0 or self._overflows >= advance
        before, self._in_all = self._in_all, int(match[1])
        return before is not None and self._in_all - before == advance
