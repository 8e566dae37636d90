"""What a log says beside its steps of those in which nothing is learned, and whether its loss ever was a number."""

from __future__ import annotations

import re
from dataclasses import dataclass

from schemas.facts import Evidence
from streams.decide.state import Line
from streams.watch.matching.matcher import Found
from streams.watch.skipping import LEAST_LINES, SKIPPED_STEPS

NONE_IN_STEPS = "nan-steps"
"""The signature of a step whose loss or gradient is no number."""
_SOME_LOSS = re.compile(rb"(?i)\bloss\w{0,24}['\"]?[ :=(]{1,4}\d")
# What trainers of Hugging Face print: both are numbers, and neither is the nought of a run that is dead.
_WELL = re.compile(rb"'loss': '?(?=[\d.]{0,24}[1-9])\d[^\n]{0,200}'grad_norm': '?(?=[\d.]{0,24}[1-9])\d")
# Of the first rank only, where a rank is named: the others say the same.
_OVERFLOW = re.compile(
    rb"OVERFLOW!(?: Rank 0)? Skipping step|[Gg]radient overflow\. {1,2}Skipping step"
    rb"|overflow detected, setting loss scale"
)
_NO_NUMBER = re.compile(rb"[Gg]rad(?:ient)?[ _]?norm is (?:nan|NaN)\. Skipping")
NO_NUMBER_WEIGHS = 5
"""So many overflows: no loss scale need be looked for where no number came out at all."""


def overflows_in(text: bytes) -> list[int]:
    """Where lines that are no steps say that one was skipped, each as often as it weighs."""
    if b"kipping" not in text and b"verflow" not in text:
        return []
    starts = [match.start() for match in _OVERFLOW.finditer(text)]
    return sorted(starts + [match.start() for match in _NO_NUMBER.finditer(text) for _ in range(NO_NUMBER_WEIGHS)])


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
    said = SKIPPED_STEPS
    what = (said.id, said.fault_class, said.scope, said.remedy, said.role, said.precedence, said.detail)
    return Line(*what, None, None, None, first)
