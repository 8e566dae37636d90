"""Which framework's lines are these, and what is read from them?"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from streams.diagnose.reading import Progress, pieces
from streams.diagnose.shapes import Proposal, Shapes
from streams.watch.matcher import Found, Matcher
from streams.watch.packs import Packs

MOST_READ = 1000
# Lines that only tell the framework are looked for in so much of the file.
MARKED_BYTES = 4 << 20


@dataclass(frozen=True)
class ReadStep:
    """A step as it was read; None where the line does not say how long it took."""

    step: int
    seconds_per_step: float | None


@dataclass(frozen=True)
class ReadCheckpoint:
    """A finished save; `step` is the line's own or the last before it."""

    step: int | None
    path: str | None


@dataclass(frozen=True)
class Detected:
    """What a file's lines are. `framework` None: of no known format, and `proposal` is what could be one."""

    framework: str | None
    lines: int
    steps: tuple[ReadStep, ...]
    checkpoints: tuple[ReadCheckpoint, ...]
    example: str
    proposal: Proposal | None


def detect(name: str, packs: Packs, matcher: Matcher, told: Progress) -> Detected:
    """Read a file (`-`: standard input) to its end. Raises Unreadable."""
    reading = _Reading(packs, matcher)
    for piece in pieces(name, told):
        reading.take(piece.data, marks=piece.offset < MARKED_BYTES)
    return reading.detected()


class _Reading:
    def __init__(self, packs: Packs, matcher: Matcher) -> None:
        self._marks = [(known.framework, known.mark) for known in packs.formats if known.mark is not None]
        self._matcher = matcher
        self._counts: Counter[str] = Counter()
        self._steps: dict[str, list[ReadStep]] = {}
        self._examples: dict[str, str] = {}
        self._saved: list[ReadCheckpoint] = []
        self._last: int | None = None
        self._shapes = Shapes()

    def take(self, data: bytes, *, marks: bool) -> None:
        for found in self._matcher.scan(data):
            self._note(found)
        if marks:
            for line in data.replace(b"\r", b"\n").split(b"\n"):
                self._mark(line)
                self._shapes.take(line)

    def detected(self) -> Detected:
        if not self._counts:
            proposal = self._shapes.proposal()
            steps = () if proposal is None else tuple(ReadStep(step, None) for step in proposal.steps)
            return Detected(None, 0 if proposal is None else proposal.lines, steps, tuple(self._saved), "", proposal)
        framework, lines = self._counts.most_common(1)[0]
        steps = tuple(self._steps.get(framework, ()))
        return Detected(framework, lines, steps, tuple(self._saved), self._examples[framework], None)

    def _note(self, found: Found) -> None:
        if found.progress is not None:
            step = ReadStep(found.progress.step, found.progress.seconds_per_step(found.line))
            self._count(found.progress.framework, found.line)
            steps = self._steps.setdefault(found.progress.framework, [])
            if len(steps) < MOST_READ:
                steps.append(step)
            self._last = step.step
        if found.saved is not None and len(self._saved) < MOST_READ:
            number = self._last if found.saved.step is None else found.saved.step
            self._saved.append(ReadCheckpoint(number, found.saved.path))

    def _mark(self, line: bytes) -> None:
        for framework, mark in self._marks:
            if mark.pattern.search(line) is not None:
                self._count(framework, line)

    def _count(self, framework: str, line: bytes) -> None:
        self._counts[framework] += 1
        self._examples.setdefault(framework, line.decode("utf-8", "replace").strip())
