"""Finds the line by which an unknown program counts its steps: a shape that repeats, with a number in it that rises.

A shape is a line without its numbers, times, and the names of nodes, runs and processes, so that it is the same on
another day; and without secrets, so that none comes into a pattern. Where many ranks print the same, the first of them
is followed. Memory is bounded: of many shapes only those that came first are followed, and of each only a few values
are kept.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from streams.watch.masking import masked
from streams.watch.matching.matcher import ANSI
from streams.watch.matching.proposals import BAR, CLOCK, GAP, NAMED, OF, PACES, TIME, Pace, Proposal, written

MOST_SHAPES = 2000
MOST_CHARACTERS = 400
LEAST_LINES = 3
KEPT_VALUES = 8

_MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_DAY = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_STAMP = re.compile(
    r"\d{4}[-/]\d\d[-/]\d\d(?:[T_ ]{1,2}\d\d:\d\d:\d\d(?:[.,]\d+)?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?)?"
    rf"|(?:{_DAY} )?{_MONTH} [ \d]\d \d\d:\d\d:\d\d(?:[.,]\d+)?(?: [A-Z]{{3,4}}\b)?(?: \d{{4}}\b)?"
    rf"|\b\d{{1,2}}[ /-]{_MONTH}[ /-]\d{{4}}[ :]\d\d:\d\d:\d\d(?:[.,]\d+)?"
    r"|\b[DIWEF]\d{4}(?:\d{4})? \d\d:\d\d:\d\d\.\d+"
    r"|\d\d[/-]\d\d \d\d:\d\d:\d\d"
)
_CLOCK = re.compile(r"(?<![\w.:-])\d{1,6}:\d\d(?::\d\d(?:[.,]\d+)?)?(?![\w:])")
_BAR = re.compile(r"(?<=%\|)[^|]*(?=\|)")
_NUMBER = re.compile(
    r"(?<!\w)[-+]?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?|\b(?:nan|NaN|inf|Infinity)\b"
)
# A word with a number in it, or with a time before it and a process behind; and what tells a run from others.
_NAME = re.compile(
    r"(?<![\w.-])[A-Za-z][A-Za-z_.-]*\d[\w.-]*(?<!\.)"
    r"|(?<![\w.])(?=[0-9-]{0,35}[a-f])[0-9a-f][0-9a-f-]{6,35}(?![\w.])"
    rf"|(?<=[{TIME}{CLOCK}] )[\w.-]+(?= [\w./-]+\[\d)"
)
_COUNTED, _IS = "(?:(?:time)?step|iter(?:ation)?|batch|update|it)", r"['\"]?\s*[:=#/\[(]?\s*$"
_COUNTER = re.compile(rf"(?i)(?<![a-z]){_COUNTED}s?{_IS}")
# One that names the step where the program is, and not how many there are, or for how many something is.
_WHERE = re.compile(rf"(?i)(?<![a-z])(?P<limit>(?:max|total|num|n|of|per|every|accum\w*)[ _-]|/ ?)?{_COUNTED}{_IS}")
# What stands around a number of seconds or the like.
_LASTS = re.compile(r"(?i)(?:time|elapsed|alive|for|after)['\"]?\s*[:=]?\s*$")
_UNIT = re.compile(r"\s?(?:m?s|sec\w*|min\w*|h|hours?)\b(?!/)")
_EPOCH = re.compile(r"(?i)(?<![a-z])ep(?:och)?['\"]?\s*[:=#/\[(]?\s*$")
# What a launcher puts before each line of one rank or node.
_PREFIX = re.compile(
    r"\s*(?:\[(?:rank|default|task )\d+\]:?|\[\d+,\d+\]<std(?:out|err)>:|\d+: |\([^()]{0,60}pid=\d+[^()]{0,60}\)"
    r"|[A-Za-z][\w.-]*\d: )\s*"
)
_RANK = re.compile(r"(?i)\brank['\"]?\s*[=:]?\s*\d+")
_LEARNS = r"(?:loss|(?<![a-z])(?:ce|nll|ppl|perplexity|bpb|reward|lr|learning[_ ]rate|grad[_ ]?norm|kl))"
_TRAINED = re.compile(rf"(?i){_LEARNS}['\"]?\s*[=:(]?\s*{GAP}")
# Words by which a line is known to be of training, and values and rates that only training has.
_TELLING = re.compile(
    r"(?i)(?<![a-z])(?:(?:time)?steps?|iter(?:ation)?s?|updates?|batch(?:es)?(?![ _-]?size)|epochs?)(?![a-z])"
    rf"|(?:{_LEARNS}|(?<![a-z])(?:acc(?:uracy)?|mfu|tflops?|sps|tps|wps))['\"]?\s*[=:(]?\s*{GAP}"
    rf"|{GAP}\s*(?:it|iter|step|batch|sample|seq|tok|token|image|img|frame|word|example)s? ?(?:/|per) ?s"
    rf"|{GAP}\s*m?s(?:ec\w*)? ?(?:/|per) ?(?:it|iter|iteration|step|batch|sample)\b"
)
# Words of what a program does before and between its steps, and counts, too.
_STAGE = re.compile(
    r"(?<![A-Za-z])(?:[Mm]ap(?:ping|ped)?(?![A-Za-z])|(?i:download|upload|tokeni[sz]|pre-?proc|eval|valid|captur|loading"
    r"|retr(?:y|ies)|warm(?:ing|ed)?[ _-]?up|compil|infer(?:ence|ring)|predict)\w*)"
)
_CAVEAT = "no word or number of these lines says that they count training steps"
_OWN = str.maketrans(dict.fromkeys((GAP, TIME, NAMED, CLOCK, BAR), " "))
"""What a line may not bring itself, since shapes are made of it."""


@dataclass
class _Column:
    """One of the numbers of a shape."""

    values: list[float] = field(default_factory=list)
    rises: int = 0
    steady: int = 0
    """How often it rose by the same as the time before."""
    anew: int = 0
    """How often it fell where an epoch began."""
    least: float = math.inf
    whole: bool = True

    def take(self, number: float, *, begins: bool) -> None:
        values = self.values
        self.anew += bool(values) and begins and number < values[-1]
        self.least = min(self.least, number)
        if values and number > values[-1]:
            self.rises += 1
            if len(values) > 1 and abs((number - values[-1]) - (values[-1] - values[-2])) < 1e-9:
                self.steady += 1
        self.whole = self.whole and number.is_integer()
        values.append(number)
        del values[:-KEPT_VALUES]


@dataclass
class _Voice:
    """The lines of a shape that one rank prints, or all of them."""

    speaker: str
    columns: list[_Column]
    epoch: int | None
    """Which of them counts epochs, by the word before it."""
    lines: int = 0

    def take(self, numbers: list[float]) -> None:
        epoch = self.epoch
        epochs = [] if epoch is None else self.columns[epoch].values
        begins = epoch is not None and bool(epochs) and numbers[epoch] > epochs[-1] and numbers[epoch].is_integer()
        self.lines += 1
        for column, number in zip(self.columns, numbers, strict=True):
            column.take(number, begins=begins)

    @property
    def rising(self) -> list[int]:
        """The whole numbers that rise from nearly every line to the next, or begin anew where an epoch does."""
        least, epochs = (self.lines - 1) * 0.9, 0 if self.epoch is None else self.columns[self.epoch].rises
        within = 2 * epochs < self.lines
        return [
            number
            for number, column in enumerate(self.columns)
            if column.rises + within * column.anew >= least and column.whole and self.lines >= LEAST_LINES
        ]


@dataclass
class _Shape:
    example: str
    prefixed: bool
    every: _Voice
    first: _Voice
    """All lines, and those of the rank that printed first."""


class Shapes:
    """Takes lines in their order."""

    def __init__(self) -> None:
        self._shapes: dict[tuple[str, bool], _Shape] = {}

    def take(self, line: bytes) -> None:
        text = _text_of(line)
        if not any(character.isdigit() for character in text):
            return
        prefix = _PREFIX.match(text)
        if prefix is not None:
            self._take(text, text[prefix.end() :], prefix.group())
        self._take(text, text, None)

    def proposals(self) -> Iterator[Proposal]:
        """The shapes that count something up, the best first."""
        counting: list[tuple[tuple[bool, bool, bool, bool, int], Proposal]] = []
        for (key, _prefixed), shape in self._shapes.items():
            voice, column = _counter_of(key, shape)
            if column is not None:
                steady = voice.columns[column].steady >= (voice.lines - 2) * 0.8
                named = _is_named(key, column)
                found = _proposed(key, shape, voice, column)
                counting.append(((found.certain, found.caveat is None, named, steady, shape.every.lines), found))
        yield from (found for _rank, found in sorted(counting, key=lambda one: one[0], reverse=True))

    def proposal(self) -> Proposal | None:
        """The best shape there is; None where nothing repeats and rises."""
        return next(self.proposals(), None)

    def _take(self, line: str, text: str, prefix: str | None) -> None:
        key, numbers, names = _taken_apart(text)
        if not numbers:
            return
        speaker = prefix or _speaker(text, names)
        known = self._shapes.get((key, prefix is not None))
        if known is None:
            if len(self._shapes) >= MOST_SHAPES:
                return
            epoch = _epoch_of(key)
            every, first = (_Voice(name, [_Column() for _ in numbers], epoch) for name in ("", speaker))
            known = self._shapes[key, prefix is not None] = _Shape(line, prefix is not None, every, first)
        known.every.take(numbers)
        if speaker == known.first.speaker:
            known.first.take(numbers)


def speaks(proposal: Proposal, line: bytes) -> bool:
    """Whether a line is of the rank that is followed."""
    if not proposal.speaker:
        return True
    text = _text_of(line)
    if proposal.prefixed:
        prefix = _PREFIX.match(text)
        return prefix is not None and prefix.group() == proposal.speaker
    return _speaker(text, _taken_apart(text)[2]) == proposal.speaker


def _text_of(line: bytes) -> str:
    """What is looked at of a line: masked before it is cut, so that no half of a secret is left at the edge."""
    text = ANSI.sub(b"", line[: 4 * MOST_CHARACTERS]).decode("utf-8", "replace")
    return masked(text)[:MOST_CHARACTERS].translate(_OWN).rstrip()


def _speaker(text: str, names: list[str]) -> str:
    """Who prints a line, as far as it says so."""
    rank = _RANK.search(text)
    return " ".join([*names, *([] if rank is None else [rank.group()])])


def _taken_apart(text: str) -> tuple[str, list[float], list[str]]:
    """A line's shape, the numbers and the names that were in it."""
    numbers: list[float] = []
    names: list[str] = []

    def named(match: re.Match[str]) -> str:
        names.append(match.group())
        return NAMED

    def taken(match: re.Match[str]) -> str:
        numbers.append(float(match.group().replace(",", "")))
        return GAP

    timed = _CLOCK.sub(CLOCK, _STAMP.sub(TIME, _BAR.sub(BAR, text)))
    return _NUMBER.sub(taken, _NAME.sub(named, timed)), numbers, names


def _counter_of(key: str, shape: _Shape) -> tuple[_Voice, int | None]:
    """The column that rises from nearly every line to the next, and is whole; a named one before others.

    Where it does not over all lines, of those of one rank. Where one is named that stands still, there is none: what
    rises beside it is time.
    """
    voices = (shape.every, shape.first)
    named = ((voice, column) for voice in voices for column in voice.rising if _is_named(key, column))
    if (found := next(named, None)) is not None:
        return found
    if any(column.whole and _says_where(key, number) for number, column in enumerate(shape.every.columns)):
        return shape.first, None
    voice = next((voice for voice in voices if voice.rising), shape.first)
    return voice, _unnamed(key, voice.rising)


def _unnamed(key: str, rising: list[int]) -> int | None:
    """The first that has a total, which stands still: a bar begins with a percentage. Else the first of all."""
    of_total = (one for one in rising if one + 1 not in rising and _before(key, one + 1).strip() in OF)
    return next(of_total, next(iter(rising), None))


def _is_named(key: str, column: int) -> bool:
    return _COUNTER.search(_before(key, column)) is not None


def _says_where(key: str, column: int) -> bool:
    """Whether a number is by its name the step where the program is."""
    named = _WHERE.search(_before(key, column))
    return named is not None and named["limit"] is None


def _is_time(key: str, column: int) -> bool:
    """Whether a number says how long something lasts: in a line beside the loss, too, it rises by itself."""
    return bool(_LASTS.search(_before(key, column)) or _UNIT.match(_before(key, column + 1)))


def _caveat_of(key: str, *, named: bool, trained: bool) -> str | None:
    """Why a shape may count something else than steps of training."""
    if _TELLING.search(key) is None:
        return _CAVEAT
    stage = None if named and trained else _STAGE.search(key)
    return None if stage is None else f"the word {stage.group()!r} says that these lines may not count training steps"


def _epoch_of(key: str) -> int | None:
    return next((number for number in range(key.count(GAP)) if _EPOCH.search(_before(key, number))), None)


def _before(key: str, column: int) -> str:
    return key.split(GAP)[column]


def _proposed(key: str, shape: _Shape, voice: _Voice, column: int) -> Proposal:
    after = column + 1
    named, trained = _is_named(key, column), _TRAINED.search(key) is not None
    total = after < len(voice.columns) and voice.columns[after].whole
    epoch = voice.epoch if voice.columns[column].anew else None
    begun = GAP.join(key.split(GAP)[: after + 1])
    before = None if epoch is None or epoch > column else epoch
    paces = ((name, found) for name, pattern in PACES if (found := pattern.search(key)) is not None)
    pace = next((Pace(name, found["before"], found["after"]) for name, found in paces), None)
    return Proposal(
        pattern=written(key, column, total=total, prefixed=shape.prefixed, epoch=epoch),
        beginning=written(begun, column, total=False, prefixed=shape.prefixed, epoch=before),
        pace=pace,
        example=shape.example,
        lines=shape.every.lines,
        steps=tuple(int(value) for value in voice.columns[column].values),
        caveat=_caveat_of(key, named=named, trained=trained),
        certain=(named or (trained and not _is_time(key, column))) and _STAGE.search(key) is None,
        prefixed=shape.prefixed,
        speaker=voice.speaker,
        first_epoch=None if epoch is None else min(1, int(voice.columns[epoch].least)),
    )
