"""Which words before lines are nodes' names, where a word alone may be anything: `worker-1: `, `gpu-08: `, an address.

A launcher that puts a node's name before its lines does so before most of them, and for each of its nodes. What a
program writes before some of its own lines is none of it.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

MOST_WORDS = 4096
LEAST_LINES, LEAST_NAMES = 4, 2
# Nodes are called so, and so are a program's processes. A GPU of a node has a single digit.
_MAY_BE_NODE = re.compile(r"(?i)worker[_-]?\d|gpu[_-]?(?:\d\d|\d[A-Za-z0-9]*[.-])|\d{1,3}(?:\.\d{1,3}){3}$")


@dataclass
class Fronts:
    """Give it the word before each line, as many as there is time for, and before each line of interest."""

    _lines: int = 0
    _before: Counter[str] = field(default_factory=Counter)

    def hear(self, word: str | None) -> None:
        """Take the next line's."""
        self._lines += 1
        if word is not None:
            self._add(word, 1)

    def meet(self, word: str | None) -> None:
        """A line of interest, which may stand where not every line was heard."""
        if word is not None:
            self._add(word, 0)

    @property
    def nodes(self) -> list[str]:
        """The names that stand before most lines, beside others like them."""
        families: dict[str, list[str]] = {}
        for word in self._before:
            families.setdefault(_family(word), []).append(word)
        return [
            word
            for words in families.values()
            if len(words) >= LEAST_NAMES
            and sum(self._before[word] for word in words) >= max(LEAST_LINES, self._lines / 2)
            for word in words
        ]

    def _add(self, word: str, lines: int) -> None:
        known = word in self._before or len(self._before) < MOST_WORDS
        if known and _MAY_BE_NODE.match(word) is not None:
            self._before[word] += lines


def _family(word: str) -> str:
    return re.split(r"\d", word.lower(), maxsplit=1)[0]
