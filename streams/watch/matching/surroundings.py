"""The lines around a line of interest: a traceback's frames before its last line, what is said just after it.

Looked at only for signatures that ask for it. Where ranks write into one file, only the lines of the same rank count.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

# How far to look: a deep traceback before, the next few lines after.
BEFORE_BYTES, AFTER_BYTES = 8192, 1024
# And how far what belongs to a step may stand below it.
STEP_BYTES = 4096
# What a launcher puts before every line of one rank or node.
_MARK = re.compile(
    rb"\s*(\[(?:rank|default|task )?\d+\]:?|\[\d+,\d+\]<std(?:out|err)>:|\d+: |\([^()\n]{0,60}pid=\d+[^()\n]{0,60}\))"
)


@dataclass(frozen=True)
class Surroundings:
    """Where a line stands: in `text` at `start`, after the lines `earlier` of another block, if those are known."""

    earlier: bytes | None
    text: bytes
    start: int
    line: bytes

    @cached_property
    def before(self) -> bytes:
        """The lines before it, oldest first."""
        low = max(0, self.start - BEFORE_BYTES)
        before = self.text[low : self.start]
        if low == 0 and self.earlier:
            before = self.earlier[-BEFORE_BYTES:] + before
        return self._own(before)

    @property
    def knows_before(self) -> bool:
        """Whether `before` holds all the lines that are to be looked at."""
        return self.earlier is not None or self.start >= BEFORE_BYTES

    @cached_property
    def after(self) -> bytes:
        """The lines after it, as far as the block goes."""
        return self._after(AFTER_BYTES)

    @cached_property
    def below(self) -> bytes:
        """More of them."""
        return self._after(STEP_BYTES)

    def _after(self, size: int) -> bytes:
        end = self.text.find(b"\n", self.start)
        return b"" if end < 0 else self._own(self.text[end + 1 : end + 1 + size])

    def _own(self, lines: bytes) -> bytes:
        mark = _MARK.match(self.line)
        if mark is None:
            return lines
        said = mark.group(1)
        return b"\n".join(line for line in lines.split(b"\n") if line.lstrip().startswith(said)) + b"\n"


def tail_of(block: bytes) -> bytes:
    """What to keep of a block for the one after it."""
    return block[-BEFORE_BYTES:]
