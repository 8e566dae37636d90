"""How long the steps of one voice in a file take, judged by the rule that the decider has for stragglers.

The time of a step is what its line says, except where that is a moving average beside the time that has passed, as in
progress bars: there, and where a line says nothing, it is what passed from one line to another.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from schemas.facts import Evidence
from schemas.policy import DEFAULT_POLICY
from schemas.vocabulary import FaultClass, LineRole, Remedy, Scope
from streams.decide.state import NO_PACE, Line, Pace
from streams.decide.straggler import paced
from streams.watch.matching.progress import Step

SAMPLE_S, CLOCK_S = 1.0, 5.0
"""One step time is taken in so much time; by clocks of whole seconds, in more."""
SUSTAINED_S = 30.0
"""Slowness that lasted less is none."""
SIGNATURE = "slow-steps"
OFTEN = 3
"""What came and went so often before is how this program goes."""
_PASSED = re.compile(rb"\[(?:(\d{1,4}):)?(\d{1,2}):(\d\d)<")
_WORK = re.compile(rb"(?i)\b(?:batch[ _-]?size|seq(?:uence)?[ _-]?len(?:gth)?)['\"]?\s*[:=]\s*(\d{1,9})")


@dataclass
class Rhythm:
    """Give it every step that was read, in order."""

    samples: int = 0
    first_slow: Evidence | None = None
    """Where the slowness began."""
    seconds: float = 0.0
    """What a step takes now."""
    _healed: int = 0
    _pace: Pace = NO_PACE
    _slow_s: float = 0.0
    _step: int | None = None
    _origin: tuple[int, float] | None = None
    _owed_s: float = 0.0
    _paused: bool = False
    _work: tuple[bytes, ...] = ()

    @property
    def baseline(self) -> float | None:
        """What a step took before it became slow for good; None while it is not."""
        lasts = self._pace.reported and self._slow_s >= SUSTAINED_S and self._healed < OFTEN
        return self._pace.baseline if lasts else None

    def pause(self) -> None:
        """The program does something else: the time of the next step is not its own."""
        self._paused = True

    def stepped(
        self, step: Step, line: bytes, stamp: Callable[[bytes], int | None], place: Callable[[], Evidence]
    ) -> None:
        """A step was read."""
        if step.step == self._step:
            return
        work = tuple(_WORK.findall(line))
        if work != self._work:  # a step does more now, or less
            self._work, self._pace, self._step = work, NO_PACE, None
        before, self._step = self._step, step.step
        paused, self._paused = self._paused, False
        seconds, clock_s = _time_of(step, line, stamp)
        if before is None or before > step.step or paused:
            self._owed_s, self._origin = 0.0, None if clock_s is None else (step.step, clock_s)
            return
        if clock_s is not None:
            self._by_clock(step.step, clock_s, place)
        elif seconds is not None:
            self._owed_s += (step.step - before) * seconds
            if self._owed_s >= SAMPLE_S:
                self._take(seconds, self._owed_s, place)

    def _by_clock(self, step: int, clock_s: float, place: Callable[[], Evidence]) -> None:
        if self._origin is None or clock_s < self._origin[1]:
            self._origin = (step, clock_s)
        passed = clock_s - self._origin[1]
        if passed >= CLOCK_S:
            self._take(passed / (step - self._origin[0]), passed, place)
            self._origin = (step, clock_s)

    def _take(self, seconds: float, lasted_s: float, place: Callable[[], Evidence]) -> None:
        before, self._owed_s = self._pace, 0.0
        self._pace = paced(before, seconds, DEFAULT_POLICY)
        self.samples += 1
        self._healed += before.reported and not self._pace.reported
        if self._pace.slow == 1 and not before.reported:
            self._slow_s, self.first_slow = 0.0, place()
        if self._pace.slow:
            self._slow_s, self.seconds = self._slow_s + lasted_s, seconds


def _time_of(step: Step, line: bytes, stamp: Callable[[bytes], int | None]) -> tuple[float | None, float | None]:
    """What a line says of the time of a step; or else when it was printed, in seconds from any time on."""
    passed = _PASSED.search(line)
    if passed is not None:
        return None, int(passed[1] or 0) * 3600.0 + int(passed[2]) * 60 + int(passed[3])
    seconds = step.seconds_per_step(line)
    if seconds is not None and seconds > 0:
        return seconds, None
    now_ms = stamp(line)
    return None, None if now_ms is None else now_ms / 1000


def slow_steps(seconds: float, baseline: float, first: Evidence) -> Line:
    """What is wrong with such a run, as a line of a signature would say it. Step times name no node."""
    detail = f"steps take {seconds:.3g} s from here on, {seconds / baseline:.1f} times the {baseline:.3g} s of before"
    detail += ", and no line says why; all ranks are as slow as the slowest, so this names no node"
    kind, role = FaultClass.STRAGGLER, LineRole.CAUSE
    return Line(SIGNATURE, kind, Scope.UNKNOWN, Remedy.WAIT, role, 0, detail, None, None, None, first)
