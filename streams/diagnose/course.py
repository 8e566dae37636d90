"""How the steps of a file went: whether they became slow for good, and whether anything was still learned in them.

The matcher leaves out steps that are close together, and of those without a time all but the first and the last. Some
of what lies between is read here, so that a file has a course whatever it prints.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import zip_longest

from schemas.facts import Evidence
from streams.diagnose.reading import Piece
from streams.diagnose.rhythm import Rhythm
from streams.diagnose.skipping import overflows_in
from streams.watch.masking import digest_of, kept_text
from streams.watch.matching.matcher import ANSI, Found
from streams.watch.matching.packs import Format
from streams.watch.matching.progress import Checkpoint, Counter, Step, counter_of, read_step
from streams.watch.skipping import Skips

UNKNOWN = "(unknown)"
"""The general format of the pack beside this module: it counts only where no known one does."""
READ_OF_A_PIECE = 128
"""So many lines, evenly spread, are read beside those that the matcher gives."""
MOST_RHYTHMS = 64
_SPEAKER = re.compile(rb"\s*(?:\[(?:rank|default|task )?\d+\]|\d+: |\[\d+,\d+\]<std|\([^()\n]{0,60}pid=\d+)")

Stamp = Callable[[bytes], int | None]
_Key = tuple[str, int | None, bytes]


@dataclass
class Counted:
    """What is counted up to one number, over all epochs."""

    first: int
    last: int = 0
    lines: int = 0
    resumed: int = 0
    """How often it went on from where it was after something else had been counted."""
    born: int = 0
    """The attempt that counted it first, by the checkpoints that were loaded until then."""
    attempt: int = 0
    """The attempt that `first` is of."""


@dataclass
class Course:
    """Give it the pieces of a file, with what was found in them. What it tells has no name of the file."""

    skips: Skips[Evidence] = field(default_factory=partial(Skips, sampled=True))
    _rhythms: dict[_Key, Rhythm] = field(default_factory=dict)
    _counted: dict[Counter, Counted] = field(default_factory=dict)
    _counting: Counted | None = None
    _attempt: int = 0
    _loaded: Checkpoint | None = None
    """What the last attempt began from; None in the first one."""

    def take(self, piece: Piece, found: Sequence[Found], stamp: Stamp) -> None:
        """Read on."""
        text = piece.data.replace(b"\r", b"\n") if b"\r" in piece.data else piece.data
        overflows = overflows_in(text)
        low = 0
        before: tuple[int, Step] | None = None
        for start, line, step, one in _with_those_between(text, found):
            place = partial(self._place, piece, start, line, stamp)
            high = bisect_left(overflows, start)
            self.skips.overflowed(high - low, place)
            low = high
            if one is not None:
                self._paused(one)
            if step is not None:
                if before is not None and counter_of(before[1]) != counter_of(step):
                    self._ended(_last_like(before[1], text, before[0], start))
                self._stepped(step, line, stamp, place)
                before = start, step
        if low < len(overflows):
            first = _line_at(text, overflows[low])
            self.skips.overflowed(len(overflows) - low, partial(self._place, piece, *first, stamp))

    @property
    def training(self) -> Counted | None:
        """The first and the last step of what counts most, where several things are counted up to different numbers.

        Progress bars of an evaluation or of files that are loaded look like those of training. An evaluation may have
        more lines, but it begins anew each time, and training goes on. Of several attempts the last one counts.
        """
        known = [counted for (framework, _total), counted in self._counted.items() if framework != UNKNOWN]
        every = list(self._counted.values())
        begun = [counted for counted in known if counted.attempt == self._attempt]
        return max(begun or known or every, key=lambda one: (one.resumed > 0, one.lines)) if len(every) > 1 else None

    @property
    def slow(self) -> Rhythm | None:
        """The rhythm of most steps, if it became slow for good."""
        most = max(self._rhythms.values(), key=lambda rhythm: rhythm.samples, default=None)
        return None if most is None or most.baseline is None else most

    def _paused(self, found: Found) -> None:
        if found.loaded is not None:
            self._rhythms.clear()
            if found.loaded.step is not None:
                self._attempt, self._loaded = self._attempt + 1, found.loaded
        elif found.phase is not None or found.saved is not None:
            for rhythm in self._rhythms.values():
                rhythm.pause()

    def _ended(self, step: Step) -> None:
        """Something else is counted next."""
        if counter_of(step) in self._counted:
            self._counted[counter_of(step)].last = step.of_run

    def _stepped(self, step: Step, line: bytes, stamp: Stamp, place: Callable[[], Evidence]) -> None:
        self.skips.stepped(step.of_run, line, place)
        if len(self._counted) < MOST_RHYTHMS:
            counted = self._counted.setdefault(counter_of(step), Counted(step.of_run, born=self._attempt))
            self._begun(counted, step)
            if self._counting not in (None, counted) and counted.lines and step.of_run > counted.last:
                counted.resumed += 1
            self._counting = counted
            counted.lines, counted.last = counted.lines + 1, step.of_run
        speaker = _SPEAKER.match(line)
        key = (step.framework, step.total_steps, b"" if speaker is None else speaker[0])
        if key in self._rhythms or len(self._rhythms) < MOST_RHYTHMS:
            self._rhythms.setdefault(key, Rhythm()).stepped(step, line, stamp, place)

    def _begun(self, counted: Counted, step: Step) -> None:
        """Where another attempt begins: from the checkpoint on that it loaded, which is no further than training was.

        What nobody counted before is training where its lines are of the kind of that which told of the checkpoint.
        """
        if self._loaded is None or counted.attempt == self._attempt or step.of_run < (self._loaded.step or 0):
            return
        is_new = counted.born == self._attempt and step.framework == self._loaded.framework
        if is_new or step.of_run <= counted.last:
            counted.first, counted.attempt = step.of_run, self._attempt

    @staticmethod
    def _place(piece: Piece, start: int, line: bytes, stamp: Stamp) -> Evidence:
        text, line_no = kept_text(line, 0), piece.line_no + piece.data.count(b"\n", 0, start)
        now_ms = stamp(line)
        return Evidence("", piece.offset + start, line_no, now_ms, now_ms or 0, None, None, text, digest_of(text))


def _with_those_between(text: bytes, found: Sequence[Found]) -> Iterator[tuple[int, bytes, Step | None, Found | None]]:
    """What was found, of many steps in a row only some, and some between two of them; each with its start and line."""
    stride = max(1, len(text) // READ_OF_A_PIECE)
    low, before = 0, None
    for one, after in zip_longest(found, found[1:]):
        form = None if one.progress is None else one.progress.form
        if one.start < low + stride and before is form is _form_of_step(one) is _form_of_step(after) is not None:
            continue
        if before is not None and form is not None:
            yield from _between(text, low, one.start, stride, (before, form) if before is not form else (form,))
        yield one.start, one.line, one.progress, one
        low, before = one.start, form


def _form_of_step(found: Found | None) -> Format | None:
    """The format of a line that is a step and says nothing else."""
    if found is None or found.progress is None or found.phase or found.saved or found.loaded:
        return None
    return found.progress.form


def _between(
    text: bytes, low: int, high: int, stride: int, forms: Sequence[Format]
) -> Iterator[tuple[int, bytes, Step, None]]:
    last = low
    for at in (*range(low + stride, high - 1, stride), high - 1):
        start, line = _line_at(text, at)
        if last < start < high:
            last = start
            step = next((step for form in forms if (step := read_step(form, line)) is not None), None)
            if step is not None:
                yield start, line, step, None


def _last_like(step: Step, text: bytes, low: int, high: int) -> Step:
    """The last step that is counted like this one, which stands at `low`, before others that stand from `high` on."""
    last = step
    while low < high:
        start, line = _line_at(text, (low + high) // 2)
        other = read_step(step.form, line)
        if other is not None and counter_of(other) == counter_of(step):
            last, low = other, text.find(b"\n", (low + high) // 2) + 1 or high
        else:
            high = start
    return last


def _line_at(text: bytes, at: int) -> tuple[int, bytes]:
    start, end = text.rfind(b"\n", 0, at) + 1, text.find(b"\n", at)
    line = text[start : end if end >= 0 else len(text)]
    return start, ANSI.sub(b"", line) if b"\x1b" in line else line
