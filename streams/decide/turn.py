"""One turn of the decider: the fact's id, the now, the policy, and what is emitted, in order."""

from __future__ import annotations

from typing import TypeVar

from schemas.decisions import Emitted, TimerCleared, TimerSet
from schemas.frozen import replace
from schemas.identity import ordinal_id
from schemas.policy import Policy
from schemas.vocabulary import TimerPurpose
from streams.decide.rules import Rules
from streams.decide.state import Attempt, Timer

Event = TypeVar("Event", bound=Emitted)


class Turn:
    """Collects the events of one fact. It lives for one call of `decide`, so the function stays pure."""

    def __init__(self, cause: str, now_ms: int, policy: Policy, rules: Rules) -> None:
        self.cause = cause
        self.now_ms = now_ms
        self.policy = policy
        self.rules = rules
        self.emitted: list[Emitted] = []
        self._ids = 0

    def next_id(self) -> str:
        """The id of the next event: of what caused it, and its ordinal."""
        self._ids += 1
        return ordinal_id(self.cause, self._ids)

    def emit(self, event: Event) -> Event:
        self.emitted.append(event)
        return event

    def set_timer(self, attempt: Attempt, purpose: TimerPurpose, due_ms: int) -> Attempt:
        """Arm or re-arm the attempt's timer for `purpose`; an older generation never counts again."""
        generation = attempt.timer_generation + 1
        event = TimerSet(self.next_id(), self.cause, attempt.id, purpose, generation, due_ms)
        self.emit(event)
        others = tuple(timer for timer in attempt.timers if timer.purpose is not purpose)
        timer = Timer(purpose, generation, due_ms, event.event_id)
        return replace(attempt, timers=(*others, timer), timer_generation=generation)

    def clear_timer(self, attempt: Attempt, purpose: TimerPurpose) -> Attempt:
        """Withdraw the timer for `purpose`, if one is pending."""
        if attempt.timer(purpose) is None:
            return attempt
        self.emit(TimerCleared(attempt.id, purpose))
        return replace(attempt, timers=tuple(timer for timer in attempt.timers if timer.purpose is not purpose))

    def clear_timers(self, attempt: Attempt) -> Attempt:
        """Withdraw all timers of an attempt."""
        for timer in attempt.timers:
            attempt = self.clear_timer(attempt, timer.purpose)
        return attempt

    def after(self, seconds: float) -> int:
        """Now plus `seconds`, in ms."""
        return self.now_ms + int(seconds * 1000)
