"""Host lists as Slurm writes them, `node[01-03,7],login1`, and lists of names."""

from __future__ import annotations

import re
from collections.abc import Iterable

MAX_NODES = 100_000
_PART = re.compile(r"[^,\[\]]+(?:\[[^\[\]]*\][^,\[\]]*)*|\[[^\[\]]*\][^,\[\]]*")
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")
_NUMBERED = re.compile(r"(.*?)(\d+)")
EMPTY = ("", "(null)", "None", "None assigned", "N/A")


class InvalidHostList(ValueError):
    """A text that is no host list; the message shows it."""


def expand(text: str) -> tuple[str, ...]:
    """Return the names in a host list, in its order, each once. Raises InvalidHostList."""
    if text.strip() in EMPTY:
        return ()
    names: dict[str, None] = {}
    position = 0
    for part in _PART.finditer(text):
        if text[position : part.start()].strip(", "):
            raise InvalidHostList(f"{text!r} is no host list")
        position = part.end()
        for name in _expand_part(part.group().strip(), text):
            names[name] = None
            if len(names) > MAX_NODES:
                raise InvalidHostList(f"a host list of more than {MAX_NODES} nodes")
    if text[position:].strip(", "):
        raise InvalidHostList(f"{text!r} is no host list")
    return tuple(names)


def _expand_part(part: str, whole: str) -> Iterable[str]:
    head, bracket, rest = part.partition("[")
    if not bracket:
        yield head
        return
    ranges, closed, tail = rest.partition("]")
    if not closed:
        raise InvalidHostList(f"{whole!r} has a bracket that does not close")
    for piece in ranges.split(","):
        match = _RANGE.fullmatch(piece.strip())
        if match is None:
            raise InvalidHostList(f"{whole!r}: {piece!r} is neither a number nor a range")
        first, last = match.group(1), match.group(2) or match.group(1)
        if not 0 <= int(last) - int(first) < MAX_NODES:
            raise InvalidHostList(f"{whole!r}: the range {piece!r} is empty or too long")
        for number in range(int(first), int(last) + 1):
            for end in _expand_part(tail, whole):
                yield f"{head}{number:0{len(first)}d}{end}"


def compress(names: Iterable[str]) -> str:
    """Return one host list for these names: equal prefixes and equally wide numbers share brackets."""
    groups: dict[tuple[str, int], list[int]] = {}
    plain: list[str] = []
    for name in sorted(set(names)):
        match = _NUMBERED.fullmatch(name)
        if match is None:
            plain.append(name)
        else:
            groups.setdefault((match.group(1), len(match.group(2))), []).append(int(match.group(2)))
    folded = [_fold(prefix, width, sorted(numbers)) for (prefix, width), numbers in sorted(groups.items())]
    return ",".join(plain + folded)


def _fold(prefix: str, width: int, numbers: list[int]) -> str:
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    texts = [f"{a:0{width}d}" if a == b else f"{a:0{width}d}-{b:0{width}d}" for a, b in runs]
    return f"{prefix}{texts[0]}" if len(numbers) == 1 else f"{prefix}[{','.join(texts)}]"
