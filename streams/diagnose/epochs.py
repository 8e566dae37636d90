"""Runs whose lines count no steps: a line that gives the loss at an epoch shows that training went on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

# As trainers of Hugging Face print it (`{'loss': 1.4, ..., 'epoch': 0.31}`), and most scripts (`Epoch 3: loss 1.4`),
# after what launchers and loggers put before it. Prose about an epoch is neither.
_BEFORE = rb"(?:\[[^\]\n]{0,60}\]:? ?|\d{1,4}: |[\d:., -]{8,30}|(?:- )?INFO(?: -)? |\([^)\n]{0,60}\) )*"
_LOSS_AT_EPOCH = re.compile(
    rb"(?m)^\s{0,8}"
    + _BEFORE
    + rb"(?:\{'loss': '?(?=[\d.]{0,24}[1-9])\d[^\n]{0,300}'epoch': '?(?P<epoch>\d{1,9}(?:\.\d{1,9})?)"
    rb"|(?i:\[?epoch\b[\s:=#\[]{0,4})(?P<epoch2>\d{1,9})\b[^\n]{0,120}(?i:\bloss)\w{0,24}[\s:=(]{1,4}(?=[\d.]{0,24}[1-9])\d)"
)
_OF_SOMETHING_ELSE = re.compile(rb"(?i)\bnan\b|error|abort|fail|resum|load|best|sav(?:ed|ing)|restor")


@dataclass(frozen=True)
class Reached:
    """Where in its block such a line begins, and the line as far as it was read."""

    start: int
    line: bytes


@dataclass
class Epochs:
    """Give it every block of a file, in order."""

    _reached: float = -1.0

    def in_block(self, text: bytes) -> Iterator[Reached]:
        """The lines by which training is further than all lines before had it."""
        if b"poch" not in text:
            return
        for match in _LOSS_AT_EPOCH.finditer(text):
            epoch = float(match["epoch"] or match["epoch2"])
            if epoch > self._reached and _OF_SOMETHING_ELSE.search(match[0]) is None:
                self._reached = epoch
                yield Reached(match.start(), match[0])
