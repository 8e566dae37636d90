"""Which framework's lines are these, and what is read from them?"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from itertools import islice, pairwise

from streams.diagnose.reading import Piece, Progress, samples
from streams.diagnose.unknown_saves import saved_step
from streams.watch.early import Written
from streams.watch.masking import kept_text
from streams.watch.matching.examples import load_matcher
from streams.watch.matching.matcher import ANSI, Found, Matcher
from streams.watch.matching.packs import Packs, read_pack
from streams.watch.matching.progress import Step
from streams.watch.matching.proposals import Proposal, loaded
from streams.watch.matching.shapes import LEAST_LINES, Shapes, speaks

# A large file is known by its beginning, and how far it came by its end.
HEAD_BYTES, TAIL_BYTES = 4 << 20, 2 << 20
# Shapes of unknown lines are looked for in so much of the file.
SHAPES_BYTES = 2 << 20
MOST_READ = 500
"""So many of the first steps are told, and so many of the last; of the saves the last ones."""
MOST_TRIED = 8


@dataclass(frozen=True)
class ReadStep:
    """A step as it was read; None where the line does not say how long it took."""

    step: int
    seconds_per_step: float | None
    of_run: int | None
    """Counted over all epochs; None where steps count anew in each and their number is not known."""


@dataclass(frozen=True)
class ReadCheckpoint:
    """A finished save; `step` is the line's own or the last before it."""

    step: int | None
    path: str | None


@dataclass(frozen=True)
class Detected:
    """What a file's lines are. `framework` None: of no known format, and `proposal` is what could be one.

    A proposal with a caveat may count anything: then no steps are told.
    """

    framework: str | None
    lines: int
    steps: tuple[ReadStep, ...]
    steps_left_out: int
    """Steps that were read between the first and the last ones that are told."""
    checkpoints: tuple[ReadCheckpoint, ...]
    example: str
    proposal: Proposal | None
    bytes_left_out: int
    """How much of the file between its beginning and its end was not looked at."""


def detect(name: str, packs: Packs, matcher: Matcher, told: Progress) -> Detected:
    """Read the beginning and the end of a file (`-`: standard input). Raises Unreadable."""
    reading = _Reading(packs, matcher)
    taken: list[Piece] = []
    for piece in samples(name, told, HEAD_BYTES, TAIL_BYTES):
        reading.take(piece.data)
        taken.append(piece)
    left_out = sum(after.offset - before.offset - len(before.data) for before, after in pairwise(taken))
    found = reading.detected(left_out)
    if found.framework is not None:
        return found
    proposed = _proposed(found, taken)
    best = proposed if proposed.steps else _by_words(proposed, taken) or proposed
    return replace(best, checkpoints=best.checkpoints or _saved(taken))


def proposed_steps(taken: list[Piece]) -> tuple[int, int] | None:
    """The first and the last step by the best proposal for an unknown program's lines; None where there is none."""
    found = _proposed(Detected(None, 0, (), 0, (), "", None, 0), taken)
    first, last = (found.steps[0].of_run, found.steps[-1].of_run) if found.steps else (None, None)
    return None if first is None or last is None else (first, last)


@dataclass
class _Steps:
    first: list[ReadStep] = field(default_factory=list)
    last: deque[ReadStep] = field(default_factory=lambda: deque(maxlen=MOST_READ))
    count: int = 0

    def add(self, read: Step, line: bytes) -> None:
        self.count += 1
        of_run = None if read.epoch is not None and read.total_steps is None else read.of_run
        step = ReadStep(read.step, read.seconds_per_step(line), of_run)
        if len(self.first) < MOST_READ:
            self.first.append(step)
        else:
            self.last.append(step)

    @property
    def told(self) -> tuple[ReadStep, ...]:
        return (*self.first, *self.last)


@dataclass
class _Saves:
    """The last saves, once each: many ranks tell of the same one."""

    _last: dict[int | str | None, ReadCheckpoint] = field(default_factory=dict)

    def add(self, step: int | None, path: str | None) -> None:
        key = path if step is None else step
        self._last[key] = self._last.pop(key, ReadCheckpoint(step, path))
        if len(self._last) > MOST_READ:
            del self._last[next(iter(self._last))]

    @property
    def told(self) -> tuple[ReadCheckpoint, ...]:
        return tuple(self._last.values())


class _Reading:
    def __init__(self, packs: Packs, matcher: Matcher) -> None:
        self._marks = [(known.framework, known.mark) for known in packs.formats if known.mark is not None]
        self._matcher = matcher
        self._counts: Counter[str] = Counter()
        self._steps: dict[str, _Steps] = {}
        self._examples: dict[str, bytes] = {}
        self._saved = _Saves()
        self._written = Written()
        self._last: int | None = None

    def take(self, data: bytes) -> None:
        for found in self._matcher.scan(data):
            self._note(found)
        for line in _lines(data) if self._marks else ():
            self._mark(line)

    def detected(self, left_out: int) -> Detected:
        saved = self._saved.told
        if not self._counts:
            return Detected(None, 0, (), 0, saved, "", None, left_out)
        framework, lines = self._counts.most_common(1)[0]
        steps = self._steps.get(framework, _Steps())
        more = steps.count - len(steps.told)
        example = kept_text(self._examples[framework], 0)
        return Detected(framework, lines, steps.told, more, saved, example, None, left_out)

    def _note(self, found: Found) -> None:
        if found.progress is not None:
            self._count(found.progress.framework, found.line)
            self._steps.setdefault(found.progress.framework, _Steps()).add(found.progress, found.line)
            self._last = found.progress.step
        for saved in self._written.saves(found):
            self._saved.add(self._last if saved.step is None else saved.step, saved.path)

    def _mark(self, line: bytes) -> None:
        for framework, mark in self._marks:
            if mark.pattern.search(line) is not None:
                self._count(framework, line)

    def _count(self, framework: str, line: bytes) -> None:
        self._counts[framework] += 1
        self._examples.setdefault(framework, line)


def _proposed(found: Detected, taken: list[Piece]) -> Detected:
    """The best proposal that a site could load and that reads what led to it; of a line with a secret only what stands
    before that does."""
    shapes = Shapes()
    for piece in taken:
        if piece.offset < SHAPES_BYTES:
            for line in _lines(piece.data):
                shapes.take(line)
    best = islice(shapes.proposals(), MOST_TRIED)
    for proposal in (form for one in best for form in (one, replace(one, pattern=one.beginning))):
        matcher = loaded(proposal)
        steps, lines = (_Steps(), 0) if matcher is None else _read(proposal, matcher, taken)
        if lines < max(LEAST_LINES, 0.9 * proposal.lines):
            continue
        if all(step.seconds_per_step is None for step in steps.told):
            proposal = replace(proposal, pace=None)
        if proposal.caveat is not None:
            return replace(found, lines=lines, proposal=proposal)
        left_out = steps.count - len(steps.told)
        return replace(found, lines=lines, proposal=proposal, steps=steps.told, steps_left_out=left_out)
    return found


def _by_words(found: Detected, taken: list[Piece]) -> Detected | None:
    """What diagnose reads of lines in which nothing rises steadily: steps by their words alone.

    Not of those for which there is a proposal with a caveat.
    """
    reading = _Reading(*_general_formats())
    for piece in taken:
        reading.take(piece.data)
    read = reading.detected(found.bytes_left_out)
    counted = found.proposal is not None and read.example == kept_text(found.proposal.example.encode(), 0)
    return None if counted or not read.steps else replace(read, framework=None, checkpoints=found.checkpoints)


@cache
def _general_formats() -> tuple[Packs, Matcher]:
    text = (files("streams.diagnose") / "packs" / "general.toml").read_text(encoding="utf-8")
    packs = Packs((), read_pack("general.toml", text).formats)
    return packs, load_matcher(packs)


def _read(proposal: Proposal, matcher: Matcher, taken: list[Piece]) -> tuple[_Steps, int]:
    """The steps of the rank that is followed, and how many lines of all ranks there are."""
    steps, lines = _Steps(), 0
    for piece in taken:
        for found in matcher.scan(piece.data):
            lines += found.progress is not None
            if found.progress is not None and speaks(proposal, found.line):
                steps.add(found.progress, found.line)
    return steps, lines


def _saved(taken: list[Piece]) -> tuple[ReadCheckpoint, ...]:
    """The saves of an unknown program, by their words."""
    saved = _Saves()
    for line in (line for piece in taken for line in _lines(piece.data)):
        done, step = saved_step(line)
        if done:
            saved.add(step, None)
    return saved.told


def _lines(data: bytes) -> Iterable[bytes]:
    return (ANSI.sub(b"", data) if b"\x1b" in data else data).replace(b"\r", b"\n").split(b"\n")
