"""What hyperscan looks for: less than a pattern says, so that it finds every line that the pattern matches, and faster.

`(?:rank|node)\\b.*(?:hash|checksum) mismatch` costs hyperscan dearly where every line names a rank: it must remember,
for each, that one was seen. RE2 decides anyway. So of what is joined by gaps of any length only the heaviest piece is
looked for, `(?:hash|checksum) mismatch`: where the whole matches, it does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

LEAST_WEIGHT = 7
"""A piece that needs fewer characters than this is in too many lines: then the whole is looked for."""
LEAST_TELLING = 5
"""One that needs so many, none of them a word of healthy lines, is better than such a word and itself."""

_ATOM = re.compile(
    r"(?P<group>\()|(?P<bar>\|)|(?P<close>\))"
    r"|(?P<single>\\.|\[\^?\]?(?:\\.|\[:\w+:\]|[^\]\\])*\]|[^()|])(?P<times>(?:[*+?]|\{\d*,?\d*\})\??)?",
    re.DOTALL,
)
_TIMES = re.compile(r"(?:[*+?]|\{\d*,?\d*\})\??")
_OPENING = re.compile(r"\((?:\?(?:P<\w+>|[a-z-]*:))?")
_FLAGS = re.compile(r"\(\?[a-z]+\)")
_GAP = re.compile(r"(?:\.|\\[SDw]|\[\^[^\]\[]+\]|\[[^\]\[]*\\[SDw][^\]\[]*\])(?:[*+]|\{\d*,\d*\})\??")
_EVERYWHERE = re.compile(
    r"(?i)(?:(?<![a-z])|(?<=\\b))(?:rank|node|host|task|worker|process|step|epoch|batch|loss|train(?:ing)?)(?![a-z])"
)
"""Words of lines that report nothing wrong."""
_WORD = re.compile(r"(?<!\\)[A-Za-z]{3}")
_INDENT = re.compile(r"(?:\\s|\[ \\t\]| )(?:\*|\{0?,\d*\})")
_WEIGHTLESS = frozenset({"^", "$", r"\b", r"\B"})

Piece = tuple[str, int]
"""A part of an expression, and how many characters of text it needs at least."""


def widened(pattern: str) -> str:
    """Return an expression that matches wherever `pattern` does, and perhaps elsewhere."""
    flags = _FLAGS.match(pattern)
    start = 0 if flags is None else flags.end()
    (text, _weight), end = _alternatives(pattern, start)
    if end != len(pattern):
        return pattern  # unbalanced: the engines say so
    return pattern[:start] + text


def _alternatives(pattern: str, at: int) -> tuple[Piece, int]:
    """Widen `a|b|c`; return it with the least weight of all, and where it ends."""
    widened: list[Piece] = []
    atoms: list[Piece | None] = []
    while at < len(pattern):
        atom = _ATOM.match(pattern, at)
        if atom is None or atom["close"]:
            break
        if atom["bar"]:
            widened.append(_heaviest(atoms))
            atoms, at = [], atom.end()
        elif atom["group"]:
            piece, end = _group(pattern, at)
            # A group that lost something at its edges no longer touches what stands beside it.
            atoms += [piece] if piece[0] == pattern[at:end] else [None, piece, None]
            at = end
        else:
            atoms.append(_single(atom[0], atom["single"], atom["times"] or ""))
            at = atom.end()
    widened.append(_heaviest(atoms))
    return ("|".join(text for text, _ in widened), min(weight for _, weight in widened)), at


def _group(pattern: str, at: int) -> tuple[Piece, int]:
    opening = _OPENING.match(pattern, at)
    assert opening is not None
    (inner, weight), end = _alternatives(pattern, opening.end())
    closing = end + 1
    times = _TIMES.match(pattern, closing)
    if times is None:
        return (f"{opening[0]}{inner})", weight), closing
    return (pattern[at : times.end()], weight if _least(times[0]) else 0), times.end()


def _single(text: str, one: str, times: str) -> Piece | None:
    """A character with its quantifier; None for a gap."""
    if _GAP.fullmatch(text):
        return None
    return text, 0 if one in _WEIGHTLESS else _least(times)


def _least(times: str) -> int:
    """How often something is there at least, as far as it matters: 0 or 1."""
    return 0 if times.startswith(("*", "?", "{0", "{,")) else 1


def _heaviest(atoms: Sequence[Piece | None]) -> Piece:
    """The one piece between gaps that weighs most; where none weighs enough, all of them.

    Pieces with words of any healthy line are left out, where others say enough.
    """
    # At an edge, or beside a gap, what needs no character finds no line that the others do not.
    every = list(_pieces(_without_indent(atoms)))
    pieces = [one for one in every if one[1]] or every
    telling = [one for one in pieces if one[1] >= LEAST_TELLING and _tells(one[0])] or pieces
    best = max(telling, key=lambda piece: piece[1])
    if best[1] >= LEAST_WEIGHT or len(telling) == 1:
        return best
    return ".*".join(text for text, _ in telling), sum(weight for _, weight in telling)


def _without_indent(atoms: Sequence[Piece | None]) -> Sequence[Piece | None]:
    """Leave out `^\\s*` at the beginning: of several expressions that begin so, hyperscan loses matches."""
    texts = [atom[0] for atom in atoms[:2] if atom is not None]
    indented = len(texts) == 2 and texts[0] == "^" and _INDENT.fullmatch(texts[1]) is not None
    return atoms[2:] if indented else atoms


def _tells(text: str) -> bool:
    """Whether it has a word, and none of any healthy line: a time of day has no word."""
    words = _OPENING.sub("(", text)  # the name of a group is none
    return _WORD.search(words) is not None and _EVERYWHERE.search(words) is None


def _pieces(atoms: Sequence[Piece | None]) -> Iterator[Piece]:
    text, weight = "", 0
    for atom in (*atoms, None):
        if atom is None:
            yield text, weight
            text, weight = "", 0
        else:
            text, weight = text + atom[0], weight + atom[1]
