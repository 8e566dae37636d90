"""Steps in which nothing is learned: the gradients had no finite number, so the program left its weights alone.

A few are normal while a loss scale is looked for. A run that does nothing else any more counts its steps for nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from schemas.facts import Evidence
from schemas.vocabulary import FaultClass, LineRole, Remedy, Scope
from streams.decide.state import Line
from streams.watch.matcher import Found

FOR_EVER = 50
"""So many in a row, at the end: halving a loss scale of 32 bits takes fewer to come to its floor."""
LEAST_LINES = 3
SIGNATURE, PRECEDENCE = "skipped-steps", 62
"""As weighty as a line that says the same itself."""
_SKIPPED = re.compile(rb"number of skipped iterations: +(\d{1,9})")
NONE_IN_STEPS = "nan-steps"
"""The signature of a step whose loss or gradient is no number."""
_SOME_LOSS = re.compile(rb"(?i)\bloss\w{0,24}['\"]?[ :=(]{1,4}\d")
# What trainers of Hugging Face print: both are numbers, and neither is the nought of a run that is dead.
_WELL = re.compile(rb"'loss': '?(?=[\d.]{0,24}[1-9])\d[^\n]{0,200}'grad_norm': '?(?=[\d.]{0,24}[1-9])\d")
_LOSS = re.compile(rb"loss: +\d")
_IN_ALL = re.compile(rb"\bskipped=(\d{1,12})")
# Of the first rank only, where a rank is named: the others say the same.
_OVERFLOW = re.compile(
    rb"OVERFLOW!(?: Rank 0)? Skipping step|[Gg]radient overflow\. {1,2}Skipping step"
    rb"|overflow detected, setting loss scale"
)
_NO_NUMBER = re.compile(rb"[Gg]rad(?:ient)?[ _]?norm is (?:nan|NaN)\. Skipping")
NO_NUMBER_WEIGHS = 5
"""So many overflows: no loss scale need be looked for where no number came out at all."""


def is_skipped(line: bytes) -> bool:
    """Whether nothing was learned in the step, or in all that the line tells together: then it has no loss."""
    return _told(line) > 0


def overflows_in(text: bytes) -> list[int]:
    """Where lines that are no steps say that one was skipped, each as often as it weighs."""
    if b"kipping" not in text and b"verflow" not in text:
        return []
    starts = [match.start() for match in _OVERFLOW.finditer(text)]
    return sorted(starts + [match.start() for match in _NO_NUMBER.finditer(text) for _ in range(NO_NUMBER_WEIGHS)])


def _told(line: bytes) -> int:
    match = _SKIPPED.search(line)
    return 0 if match is None or _LOSS.search(line) is not None else int(match[1])


@dataclass
class Skips:
    """Give it what was read, in order."""

    first: Evidence | None = None
    """The first of the steps in a row that were skipped."""
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

    def overflowed(self, count: int, place: Callable[[], Evidence]) -> None:
        """So many lines said that a step was skipped."""
        if count and self.first is None:
            self.first = place()
        self._overflows += count

    def stepped(self, step: int, line: bytes, place: Callable[[], Evidence]) -> None:
        """A step was counted, and its line may say that it was skipped."""
        if step == self._step:
            return
        advance = step - self._step if self._step is not None and step > self._step else 1
        self._step = step
        if not self._is_skipped(line, advance):
            self._steps, self._lines, self._overflows, self.first = 0, 0, 0, None
            return
        self.first = self.first or place()
        self._steps += max(advance, _told(line))
        self._lines, self._overflows = self._lines + 1, 0

    def _is_skipped(self, line: bytes, advance: int) -> bool:
        match = _IN_ALL.search(line)
        if match is None:
            return _told(line) > 0 or self._overflows >= advance
        before, self._in_all = self._in_all, int(match[1])
        return before is not None and self._in_all - before >= advance


@dataclass
class Numbers:
    """Give it every line that says something. Whether the run had any loss that is a number before its first that is
    none: else there is no checkpoint to which a restart could go back."""

    _none: int = 0
    _finite: bool = False
    _last: int = 0
    """Where in its block the last of them begins."""

    @property
    def never(self) -> bool:
        """Whether not one loss was a number, in so many lines that no more is to be hoped for."""
        return self._none >= LEAST_LINES and not self._finite

    def take(self, found: Found, earlier: bytes, text: bytes) -> None:
        """`earlier`: the last lines of the block before `text`, in which the line was found."""
        if found.progress is not None and found.fault is None:
            self._finite = True
        if found.fault is None or found.fault.signature.id != NONE_IN_STEPS:
            return
        self._last = found.start
        if self._none == 0:
            before = earlier + text[: found.start]
            self._finite = self._finite or _SOME_LOSS.search(before) is not None
        self._none += 1

    def healed(self, text: bytes) -> bool:
        """To be asked once all that a block says was given: whether the loss is a number again, without any step that
        is counted."""
        if self._none == 0:
            self._finite = self._finite or _SOME_LOSS.search(text) is not None
            return False
        after, self._last = self._last, 0
        return _WELL.search(text, after) is not None


def skipped_for_ever(first: Evidence) -> Line:
    """What is wrong with such a run, as a line of a signature would say it."""
    kind, remedy = FaultClass.NUMERIC_NAN, Remedy.TERMINATE_NO_RETRY
    detail = "every step from here on was skipped: nothing is learned any more"
    return Line(SIGNATURE, kind, Scope.JOB, remedy, LineRole.CAUSE, PRECEDENCE, detail, None, None, None, first)
