"""What is proposed to a site whose program's format is in no pack: written as a pack, and tried like one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from schemas.patterns import BadPattern, check_of_job
from streams.watch.matching.examples import load_matcher
from streams.watch.matching.matcher import Matcher
from streams.watch.matching.packs import BadPack, read_pack

GAP, TIME, NAMED, CLOCK, BAR = "\x00", "\x01", "\x02", "\x03", "\x04"
"""What stands in a shape for a number, for a date with its time, for the name of a node, a run or a process, for a time
without a date, and for the picture in a progress bar."""
NAME = "ours"
_BLANKS = re.compile(r"[ \t]+")
OF = frozenset({"/", "of", "out of"})
"""What stands between a counter and its total."""
_VALUE = r"[-+0-9.,eEnaNifIty]+"
_TIMES = r"(?:[0-9A-Z:.,/+_ -]|[A-Z][a-z][a-z])+"
_NAMES = r"[\w.-]+"
_CLOCKS = r"\d+:\d\d(?::\d\d(?:[.,]\d+)?)?"
_BARS = "[^|]*"
_MARKS = {TIME: _TIMES, NAMED: _NAMES, CLOCK: _CLOCKS, BAR: _BARS, "\ufffd": ".{1,3}"}
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_WORK = r"(?:iterations?|iters?|it|steps?|batch(?:es)?)"
_SECONDS = r"s(?:ecs?|econds?)?"
_TIME_OF = rf"(?<![a-z])(?:{_WORK}[ _-]?(?:time|avg|duration|dt)|dt|time[ _]per[ _]{_WORK})['\"]?(?:\(s\))?\s*[:= ]\s*"
_IS = r"['\")]*\s*[:=]?\s*"
_NOT_NEXT = r"(?!['\")]*\s*[:=])"
_BARE = r"(?=\s*(?:[,;|\])}]|$)|\s+(?!(?:us|µs|ns|ms|min\w*|m|h|hours?)\b))"
PACES = (
    (
        "seconds_per_step",
        re.compile(rf"(?i)(?P<before>){GAP}(?P<after>\s*{_SECONDS} ?(?:/|per) ?{_WORK}\b){_NOT_NEXT}"),
    ),
    (
        "milliseconds_per_step",
        re.compile(rf"(?i)(?P<before>){GAP}(?P<after>\s*m(?:illi)?{_SECONDS} ?(?:/|per) ?{_WORK}\b){_NOT_NEXT}"),
    ),
    (
        "steps_per_second",
        re.compile(rf"(?i)(?P<before>){GAP}(?P<after>\s*{_WORK} ?(?:/|per) ?{_SECONDS}\b){_NOT_NEXT}"),
    ),
    ("milliseconds_per_step", re.compile(rf"(?i)(?P<before>{_TIME_OF}){GAP}(?P<after> ?ms\b)")),
    ("seconds_per_step", re.compile(rf"(?i)(?P<before>{_TIME_OF}){GAP}(?P<after> ?{_SECONDS}\b|{_BARE})")),
    ("seconds_per_step", re.compile(rf"(?i)(?P<before>\b{_SECONDS}/{_WORK}{_IS}){GAP}(?P<after>)")),
    ("steps_per_second", re.compile(rf"(?i)(?P<before>\b{_WORK}/{_SECONDS}{_IS}){GAP}(?P<after>)")),
)
"""The keys of a format that tell the time of a step, and the words before and after the number."""


@dataclass(frozen=True)
class Pace:
    """How a line tells the time of a step."""

    key: str
    before: str
    after: str

    @property
    def pattern(self) -> str:
        return rf"{_literal(self.before)}(?P<value>\d[0-9.eE+-]*){_literal(self.after)}"


@dataclass(frozen=True)
class Proposal:
    """A pattern for a site's own format, and the lines that led to it."""

    pattern: str
    beginning: str
    """The pattern of such a line up to the word after the counter."""
    pace: Pace | None
    example: str
    lines: int
    steps: tuple[int, ...]
    """The counter's last values."""
    caveat: str | None
    """Why it may be no counter of training steps."""
    certain: bool
    """Whether the counter is called one of steps or stands beside a loss, and nothing speaks of another stage."""
    prefixed: bool
    """Whether a launcher names the rank before each line."""
    speaker: str
    """By what the lines of the rank that is followed are known; nothing where it is counted over all of them."""
    first_epoch: int | None = None
    """What the first epoch is called, where steps count anew in each."""


def written(key: str, column: int, *, total: bool, prefixed: bool, epoch: int | None) -> str:
    """The pattern of a shape in which this number counts, anew in each `epoch`.

    `total`: the number after it is whole.
    """
    raw = key.split(GAP)
    raw[0] = raw[0].lstrip()
    pattern = r"(?:^|[\s\])>:])" if prefixed else r"^\s*"
    for number, part in enumerate(raw):
        pattern += _literal(part)
        if number == column:
            pattern += r"(?P<step>\d+(?:,\d{3})*)"
        elif number == column + 1 < len(raw) - 1 and total and part.strip() in OF:
            pattern += r"(?P<total>\d+(?:,\d{3})*)"
        elif number == epoch:
            pattern += r"(?P<epoch>\d+)"
        elif number < len(raw) - 1:
            pattern += _VALUE
    return pattern


def pack_lines(proposal: Proposal) -> list[str]:
    """The proposal as the text of a pack."""
    pace = proposal.pace
    return [
        "[[format]]",
        f"framework = {_quoted(NAME)}",
        f"step = {_quoted(proposal.pattern)}",
        *([f"first_epoch = {proposal.first_epoch}"] if proposal.first_epoch else []),
        *([] if pace is None else [f"{pace.key} = {_quoted(pace.pattern)}"]),
        f"step_examples = [{_quoted(proposal.example)}]",
        'source = "found by recovery formats detect"',
    ]


def brought(proposal: Proposal) -> Iterator[str]:
    """The patterns that a job may bring: of the whole line, and of its beginning, since the whole may be too much."""
    for pattern in (proposal.pattern, proposal.beginning):
        with suppress(BadPattern):
            check_of_job(pattern)
            yield pattern


def in_comment(pattern: str) -> str:
    """What stands in the APS comment of a job that brings this pattern; it may stand in a shell's single quotes."""
    text = json.dumps(pattern, ensure_ascii=False).replace("'", r"\u0027")
    return f'"anomaly_detection_config":{{"log_based_progress_pattern":{text}}}'


def loaded(proposal: Proposal) -> Matcher | None:
    """What a site would get that puts the proposal into a pack; None where the pack would be refused."""
    try:
        return load_matcher(read_pack("proposal", "\n".join(pack_lines(proposal))))
    except BadPack:
        return None


def _literal(part: str) -> str:
    """A piece of the line as a pattern: blanks may vary; a time, name or bar may be any, as may no character."""
    pattern = r"\s*".join(map(re.escape, _BLANKS.split(part)))
    for mark, any_of_it in _MARKS.items():
        pattern = pattern.replace(re.escape(mark), any_of_it)
    return pattern


def _quoted(text: str) -> str:
    """A text as TOML, without escapes where that can be."""
    if "'" not in text and not _CONTROL.search(text):
        return f"'{text}'"
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
