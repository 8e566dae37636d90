"""Keeps one process of ours running, as the supervisor sees it: its starts, its ends, and when to give it up."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from infra.local.backoff import Backoff
from infra.local.folder import DataFolder
from infra.local.process import Process, exit_code, note, spawn

LONGEST_DELAY_SECONDS = 5.0
STEADY_SECONDS = 10.0
HOPELESS_DELAYS_SECONDS = (
    1.0,
    3.0,
    9.0,
)  # a port or a slot may be in use a moment longer; after that, only a person helps
CANT_START = 127


@dataclass(frozen=True)
class Child:
    """One process to keep running. `env` is added to the supervisor's environment.

    `hopeless` is the exit code by which it says that it can't succeed until somebody changes something.
    """

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    hopeless: int | None = None


@dataclass(frozen=True)
class ChildStatus:
    """`last_exit` is the code of the last process that ended (negative: by that signal), None if none has.

    One that is `given_up` is not started again by this supervisor.
    """

    name: str
    process: Process | None
    restarts: int
    last_exit: int | None
    given_up: bool = False

    @property
    def pid(self) -> int | None:
        return None if self.process is None else self.process.pid

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.alive()


class Keeper:
    """One child's life."""

    def __init__(self, child: Child, folder: DataFolder) -> None:
        self.child = child
        self.process: Process | None = None
        self._restarts = 0
        self._last_exit: int | None = None
        self._given_up = False
        self._log = folder.log / f"{child.name}.log"
        self._backoff = Backoff(LONGEST_DELAY_SECONDS, STEADY_SECONDS)
        self._hopeless = 0  # ends in a row that said so
        self._due = 0.0

    def look(self, now: float) -> bool:
        """Takes note of an end, starts what is due; whether anything changed. `now` is monotonic, in seconds."""
        if self.process is None:
            if self._given_up or now < self._due:
                return False
            self._start(now)
            return True
        code = exit_code(self.process.pid)
        if code is None:
            return False
        self.process.kill()  # helpers that it left behind
        self.process = None
        self._ended(code, now)
        return True

    def status(self) -> ChildStatus:
        return ChildStatus(self.child.name, self.process, self._restarts, self._last_exit, self._given_up)

    def _start(self, now: float) -> None:
        self._backoff.began(now)
        try:
            self.process = spawn(self.child.argv, env={**os.environ, **self.child.env}, log=self._log)
        except OSError as error:
            note(self._log, f"can't be started: {error}")
            self._ended(CANT_START, now)

    def _ended(self, code: int, now: float) -> None:
        self._last_exit = code
        self._hopeless = self._hopeless + 1 if code == self.child.hopeless else 0
        if self._hopeless > len(HOPELESS_DELAYS_SECONDS):
            self._given_up = True
            return
        self._backoff.ended(now)
        self._due = now + HOPELESS_DELAYS_SECONDS[self._hopeless - 1] if self._hopeless else self._backoff.due
        self._restarts += 1
