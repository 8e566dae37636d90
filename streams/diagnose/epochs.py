"""Runs whose lines count no steps: a line that gives the loss at an epoch shows that training went on."""

from __future__ import annotations

import re
from dataclasses import dataclass

from streams.watch.matching.patterns import compile_pattern

# As trainers of Hugging Face print it (`{'loss': 1.4, ..., 'epoch': 0.31}`), and most scripts (`Epoch 3: loss 1.4`): no
# loss of nought, and no prose about an epoch.
_LOSS_AT_EPOCH = compile_pattern(
    r"\{'loss': '?[\d.]{0,24}[1-9].{0,300}'epoch': '?(?P<epoch>\d{1,9}(?:\.\d{1,9})?)"
    r"|(?i:\[?epoch\b[\s:=#\[]{0,4})(?P<epoch2>\d{1,9})\b.{0,120}(?i:(?:\b|_)(?:loss\w{0,24}|train|ppl|perplexity))[\s:=(]{1,4}[\d.]{0,24}[1-9]",
    at_start=True,
)
_OF_SOMETHING_ELSE = re.compile(rb"(?i)\bnan\b|error|abort|fail|resum|load|best|sav(?:ed|ing)|restor")
LINE_BYTES = 800
MOST_LINES = 16
"""So many lines that name an epoch are looked at, from the last one backwards."""


@dataclass(frozen=True)
class Reached:
    """A line by which training is further than all before had it, as far as it was read."""

    epoch: float
    line: bytes


@dataclass
class Epochs:
    """Give it every part of a file, in order."""

    _reached: float = -1.0

    @property
    def begun(self) -> bool:
        """Whether any such line was seen."""
        return self._reached >= 0

    def between(self, text: bytes, low: int, high: int) -> list[Reached]:
        """Of the last two epochs, or fewer, that lines between two places of a block tell of: the last line of each."""
        found: list[Reached] = []
        for _ in range(MOST_LINES):
            named = max(text.rfind(b"poch", low, high), text.rfind(b"POCH", low, high))
            if named < 0 or len(found) == 2:
                break
            start, end = text.rfind(b"\n", 0, named) + 1, text.find(b"\n", named)
            reached = _reached(text[start : min(len(text) if end < 0 else end, start + LINE_BYTES)])
            if reached is not None and (not found or reached.epoch < found[0].epoch):
                found.insert(0, reached)
            high = start
        further = [one for one in found if one.epoch > self._reached]
        self._reached = max(self._reached, *(one.epoch for one in found), -1.0)
        return further


def _reached(line: bytes) -> Reached | None:
    captured = _LOSS_AT_EPOCH.search(line)
    if captured is None or _OF_SOMETHING_ELSE.search(line) is not None:
        return None
    return Reached(float(captured.groups.get("epoch") or captured.groups["epoch2"]), line)
