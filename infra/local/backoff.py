"""When what ended is started again: at once the first time, ever later while it keeps ending."""

from dataclasses import dataclass

FIRST_DELAY_SECONDS = 0.2


@dataclass
class Backoff:
    """Times are monotonic seconds, given by the caller. What lived for `steady` seconds starts with the first delay."""

    longest: float
    steady: float
    due: float = 0.0
    _delay: float = FIRST_DELAY_SECONDS
    _began: float = 0.0

    def began(self, now: float) -> None:
        """Take note that it was started."""
        self._began = now

    def ended(self, now: float) -> None:
        """Take note that it ended: `due` says when to start it again."""
        if now - self._began >= self.steady:
            self._delay = FIRST_DELAY_SECONDS
        self.due = now + self._delay
        self._delay = min(self._delay * 2, self.longest)
