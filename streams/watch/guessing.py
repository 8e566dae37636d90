"""What the lines of an attempt seem to count where no format knows them: for people, or for use where the site allows.

A pattern that does not read the lines as they are, or that no job may bring, is not told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from streams.watch.masking import kept_text
from streams.watch.matching.matcher import ANSI
from streams.watch.matching.proposals import Proposal, brought
from streams.watch.matching.shapes import LEAST_LINES, Shapes
from streams.watch.own import own_format

LOOKED_AT = 32 << 10
"""Bytes of output in which a shape is looked for."""
MOST_TRIED = 8
MOST_SHOWN = 160


@dataclass(frozen=True)
class Guess:
    """A line that seems to count steps."""

    pattern: str
    example: str
    certain: bool
    """Whether its words say that it counts steps of training; else it may count anything."""

    @property
    def found(self) -> str:
        """What was seen, as part of a sentence."""
        seem = "seem to count steps" if self.certain else "count something up, perhaps steps"
        return f"lines like `{self.example}` {seem}"


def guess(text: bytes) -> Guess | None:
    """The best shape of the last lines of an attempt; None where nothing repeats and rises."""
    if len(text) >= LOOKED_AT:
        text = text[-LOOKED_AT:].partition(b"\n")[2]
    lines = ANSI.sub(b"", text.replace(b"\r", b"\n")).split(b"\n")
    shapes = Shapes()
    for line in lines:
        shapes.take(line)
    proposals = islice(shapes.proposals(), MOST_TRIED)
    return next((found for proposal in proposals if (found := _tried(proposal, lines)) is not None), None)


def _tried(proposal: Proposal, lines: Sequence[bytes]) -> Guess | None:
    """The proposal if it reads what led to it."""
    for pattern in brought(proposal):
        own = own_format(pattern)
        if sum(own.step(line) is not None for line in lines) >= max(LEAST_LINES, 0.9 * proposal.lines):
            example = kept_text(proposal.example.encode(), 0)
            shown = example if len(example) <= MOST_SHOWN else f"{example[:MOST_SHOWN]}…"
            return Guess(pattern, shown, proposal.certain)
    return None
