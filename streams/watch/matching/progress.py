"""Reads a training step, a finished save and a resumed checkpoint out of one line of a known format."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from streams.watch.masking import masker
from streams.watch.matching.packs import Format, FormatPart
from streams.watch.matching.patterns import Pattern

# What makes of a finished save one that there is not, in the same clause before it or anywhere behind it; and places
# that no restart finds again.
_DENIED = re.compile(
    rb"(?i)(?:n't|(?<![\w.-])(?:not|cannot|could|would|should|will|fail(?:ed|s)?|unable|without))\b(?!-)[^.;,]*\Z"
)
DRY_RUN = r"(?:(?<![\w/.-])|(?<=\s--))dry[ _-]?run\b(?![/\w]|[.-]\w)"
"""What says that nothing was written, and is no part of a path."""
_REHEARSED = re.compile(rf"(?i){DRY_RUN}".encode())
_FLEETING = re.compile(r"/dev/shm/|.*\.(?:tmp|partial)\Z")
CLAUSE_BYTES = 120
# More digits are no step counter, and would not fit the event.
MOST_DIGITS = 18


@dataclass(frozen=True)
class Step:
    """The training loop moved. `at`: where in the line the match begins."""

    form: Format
    step: int
    total_steps: int | None
    epoch: int | None
    """Of frameworks whose step counter starts anew in each."""
    at: int
    below: bytes = b""
    """The lines after it, as far as they are known, of formats that tell a step's time there."""

    @property
    def framework(self) -> str:
        return self.form.framework

    @property
    def of_run(self) -> int:
        """The step counted over all epochs, where the line says how many each has: else a program that prints one line
        an epoch would seem to stand still."""
        if self.epoch is None or self.total_steps is None:
            return self.step
        return max(self.epoch - self.form.first_epoch, 0) * self.total_steps + self.step

    @property
    def total_of_run(self) -> int | None:
        """How many steps the run has; None where only an epoch's are known."""
        return self.total_steps if self.epoch is None else None

    def seconds_per_step(self, line: bytes) -> float | None:
        """Read only when wanted, for most steps are not kept: from the step's line, or from those below it."""
        seconds = self._seconds(line)
        below = iter(self.below.split(b"\n"))
        while seconds is None and (after := next(below, None)) is not None and read_step(self.form, after) is None:
            seconds = self._seconds(after)
        return seconds

    def _seconds(self, line: bytes) -> float | None:
        seconds = _value(self.form.seconds_per_step, line)
        if seconds is not None:
            return seconds
        milliseconds = _value(self.form.milliseconds_per_step, line)
        if milliseconds is not None:
            return milliseconds / 1000
        rate = _value(self.form.steps_per_second, line)
        return 1 / rate if rate else None

    def loss(self, line: bytes) -> float | None:
        return _value(self.form.loss, line)


@dataclass(frozen=True)
class Checkpoint:
    """A save that is complete, or a checkpoint that was loaded; `step` is None where the line names none."""

    framework: str
    step: int | None
    line: bytes
    captured_path: str | None
    """As it stands in the line: there may be secrets in it."""
    at: int
    early: bool = False
    """The line is printed before the save is written: it is one once training went on."""

    @property
    def path(self) -> str | None:
        """Where it is, secrets masked."""
        return None if self.captured_path is None else masker(self.line, self.at)(self.captured_path)


Counter = tuple[str, int | None]
"""By what format something is counted, and up to which number."""


def counter_of(step: Step) -> Counter:
    """What a step is a number of."""
    return step.framework, step.total_steps


def read_step(known: Format, line: bytes) -> Step | None:
    """Return the step that a line of this format reports, or None where it is no step line."""
    captured = known.step.pattern.search(line)
    step = None if captured is None else _whole(_first(captured.groups, "step", "step2", "step3", "step4", "step5"))
    if captured is None or step is None:
        return None
    groups = captured.groups
    return Step(known, step, _whole(groups.get("total")), _whole(groups.get("epoch")), captured.start)


def read_checkpoint(framework: str, part: FormatPart, line: bytes, *, early: bool = False) -> Checkpoint | None:
    """Return the checkpoint that a line of this part reports, or None. `early`: save for lines with a group `done`."""
    captured = part.pattern.search(line)
    if captured is None:
        return None
    step = _whole(_first(captured.groups, "step", "step2"))
    early = early and "done" not in captured.groups
    return Checkpoint(framework, step, line, captured.groups.get("path"), captured.start, early)


def read_saved(known: Format, part: FormatPart, line: bytes) -> Checkpoint | None:
    """Return the save that a line reports; None where it says that there is none, or none that a restart could use."""
    saved = read_checkpoint(known.framework, part, line, early=known.saved_early)
    return None if saved is None or not is_kept(saved) else saved


def is_kept(saved: Checkpoint) -> bool:
    """Whether the line doesn't say that there is no such save, or none that a restart could use."""
    if saved.captured_path is not None and _FLEETING.match(saved.captured_path):
        return False
    before = saved.line[max(0, saved.at - CLAUSE_BYTES) : saved.at]
    return _DENIED.search(before) is None and _REHEARSED.search(saved.line) is None


def _first(groups: dict[str, str], *names: str) -> str | None:
    """A pattern of several forms has a group for each."""
    return next((groups[name] for name in names if name in groups), None)


def _value(pattern: Pattern | None, line: bytes) -> float | None:
    """The group `value` as a finite number."""
    captured = None if pattern is None else pattern.search(line)
    if captured is None:
        return None
    try:
        value = float(captured.groups.get("value", "").replace(",", ""))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _whole(text: str | None) -> int | None:
    digits = "" if text is None else text.partition(".")[0].replace(",", "")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= MOST_DIGITS else None
