"""What is proposed to a site whose program's format is in no pack: written as a pack, and tried like one."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from streams.watch.examples import load_matcher
from streams.watch.matcher import Matcher
from streams.watch.packs import BadPack, read_pack

GAP, TIME = "\x00", "\x01"
"""What stands in a shape for a number, and for a time."""
NAME = "ours"
_BLANKS = re.compile(r"[ \t]+")
_OF = frozenset({"/", "of", "out of"})
_VALUE = r"[-+0-9.,eEnaNifIty]+"
_TIMES = r"[0-9TZUC:.,/+_ -]+"
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_WORK = r"(?:iterations?|iters?|it|steps?|batch(?:es)?)"
PACES = {
    "seconds_per_step": re.compile(rf"(?i){GAP}(?P<unit>\s*s(?:ecs?|econds?)? ?(?:/|per) ?{_WORK}\b)"),
    "milliseconds_per_step": re.compile(rf"(?i){GAP}(?P<unit>\s*m(?:illi)?s(?:ecs?|econds?)? ?(?:/|per) ?{_WORK}\b)"),
    "steps_per_second": re.compile(rf"(?i){GAP}(?P<unit>\s*{_WORK} ?(?:/|per) ?s(?:ec|econd)?\b)"),
}
"""The keys of a format that tell the time of a step, and the words after the number."""


@dataclass(frozen=True)
class Proposal:
    """A pattern for a site's own format, and the lines that led to it."""

    pattern: str
    pace: tuple[str, str] | None
    """The key of a format that tells the time of a step, and the words after its number."""
    example: str
    lines: int
    steps: tuple[int, ...]
    """The counter's last values."""
    caveat: str | None
    """Why it may be no counter of training steps."""
    prefixed: bool
    """Whether a launcher names the rank before each line."""
    speaker: str
    """By what the lines of the rank that is followed are known."""


def written(key: str, column: int, *, total: bool, prefixed: bool) -> str:
    """The pattern of a shape in which this number counts; `total`: the number after it is whole."""
    raw = key.split(GAP)
    raw[0] = raw[0].lstrip()
    pattern = r"(?:^|[\s\])>:])" if prefixed else r"^\s*"
    for number, part in enumerate(raw):
        pattern += _literal(part)
        if number == column:
            pattern += r"(?P<step>\d+(?:,\d{3})*)"
        elif number == column + 1 < len(raw) - 1 and total and part.strip() in _OF:
            pattern += r"(?P<total>\d+(?:,\d{3})*)"
        elif number < len(raw) - 1:
            pattern += _VALUE
    return pattern


def pace_pattern(proposal: Proposal) -> tuple[str, str] | None:
    """The key and the pattern that read the time of a step."""
    if proposal.pace is None:
        return None
    key, unit = proposal.pace
    return key, rf"(?P<value>\d[0-9.eE+-]*){_literal(unit)}"


def pack_lines(proposal: Proposal) -> list[str]:
    """The proposal as the text of a pack."""
    pace = pace_pattern(proposal)
    return [
        "[[format]]",
        f"framework = {_quoted(NAME)}",
        f"step = {_quoted(proposal.pattern)}",
        *([] if pace is None else [f"{pace[0]} = {_quoted(pace[1])}"]),
        f"step_examples = [{_quoted(proposal.example)}]",
        'source = "found by recovery formats detect"',
    ]


def loaded(proposal: Proposal) -> Matcher | None:
    """What a site would get that puts the proposal into a pack; None where the pack would be refused."""
    try:
        return load_matcher(read_pack("proposal", "\n".join(pack_lines(proposal))))
    except BadPack:
        return None


def _literal(part: str) -> str:
    """A piece of the line as a pattern: blanks may vary, a time may be any, and so a character that is none."""
    escaped = r"\s*".join(map(re.escape, _BLANKS.split(part)))
    return escaped.replace(re.escape(TIME), _TIMES).replace("\ufffd", ".{1,3}")


def _quoted(text: str) -> str:
    """A text as TOML, without escapes where that can be."""
    if "'" not in text and not _CONTROL.search(text):
        return f"'{text}'"
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
