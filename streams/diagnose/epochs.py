"""Runs whose lines count no steps: what a line says of the loss at an epoch shows that training went on."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

# As trainers of Hugging Face print it (`{'loss': 1.4, ..., 'epoch': 0.31}`), and as most scripts (`Epoch 3: loss 1.4`).
_LOSS_AT_EPOCH = re.compile(
    rb"'loss': '?(?=[\d.]{0,24}[1-9])\d[^\n]{0,300}'epoch': '?(?P<epoch>\d{1,9}(?:\.\d{1,9})?)"
    rb"|(?i:\bepoch\b[\s:=#\[]{0,4})(?P<epoch2>\d{1,9})\b[^\n]{0,120}\b(?i:loss)\w{0,24}[\s:=(]{1,4}(?=[\d.]{0,24}[1-9])\d"
)
_NO_NUMBER = re.compile(rb"(?i)\bnan\b")


@dataclass
class Epochs:
    """Give it every block of a file, in order."""

    longest_ms: int = 0
    """The longest time from one such line to the next."""
    _reached: float = -1.0
    _last_ms: int | None = None

    def moved_at(self, text: bytes, stamp: Callable[[bytes], int | None]) -> int | None:
        """Where the last line is by which training is further than all lines before had it; None without one."""
        if b"poch" not in text:
            return None
        at = None
        for match in _LOSS_AT_EPOCH.finditer(text):
            epoch = float(match["epoch"] or match["epoch2"])
            if epoch > self._reached and _NO_NUMBER.search(match[0]) is None:
                self._reached, at = epoch, match.start()
                now_ms = stamp(text[text.rfind(b"\n", 0, at) + 1 : match.end()])
                if now_ms is not None and self._last_ms is not None:
                    self.longest_ms = max(self.longest_ms, now_ms - self._last_ms)
                self._last_ms = now_ms
        return at
