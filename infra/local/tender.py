"""Brings a part of the stack back when a server of it died, as the supervisor sees it.

Parts are started by `Stack`, which leaves a record of every server; `Stack.stop` takes the record away. So a record
without its process tells of a server that died and should be there. A process of its own starts the part again
(`infra.local.revive`): the supervisor stays small, and goes on looking.
"""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from infra.local.backoff import Backoff
from infra.local.daemon import Daemon
from infra.local.folder import DataFolder
from infra.local.process import Process, exit_code, note, spawn

LOOK_EVERY_SECONDS = 0.5
LONGEST_DELAY_SECONDS = 30.0
STEADY_SECONDS = 60.0


@dataclass(frozen=True)
class Tended:
    """A part to bring back: its name, and the names of its servers."""

    name: str
    daemons: tuple[str, ...]


@dataclass(frozen=True)
class PartLife:
    """`dead`: servers that are not back, for which `tries` have failed. `restarts`: how often it was brought back."""

    name: str
    dead: tuple[str, ...]
    restarts: int
    tries: int


def revival_log(folder: DataFolder, part: str) -> Path:
    """Where the attempts to bring a part back say what they do; the last line of a failed one says why."""
    return folder.log / f"{part}-again.log"


class Tender:
    """One part's life."""

    def __init__(self, part: Tended, folder: DataFolder, unmarked: str) -> None:
        """`unmarked`: the variable of the environment that marks what is ours to end, which servers are not."""
        self._part = part
        self._folder = folder
        self._unmarked = unmarked
        self._daemons = [Daemon(name, folder) for name in part.daemons]
        self._backoff = Backoff(LONGEST_DELAY_SECONDS, STEADY_SECONDS)
        self._reviver: Process | None = None
        self._dead: tuple[str, ...] = ()
        self._restarts = 0
        self._tries = 0
        self._next_look = 0.0

    def look(self, now: float) -> bool:
        """Takes note of a death, has the part started when that is due; whether anything changed."""
        if self._reviver is not None:
            return self._has_revived(now)
        if now < self._next_look:
            return False
        self._next_look = now + LOOK_EVERY_SECONDS
        before = self._dead
        if died := self._died():
            self._dead = died
        elif not self._tries:
            self._dead = ()  # somebody else has brought it back, or told it to end
        if self._dead and not before:
            self._backoff.ended(now)
        if self._dead and now >= self._backoff.due:
            self._revive(now)
        return self._dead != before

    def status(self) -> PartLife:
        return PartLife(self._part.name, self._dead, self._restarts, self._tries)

    def _revive(self, now: float) -> None:
        log = revival_log(self._folder, self._part.name)
        try:
            self._reviver = spawn(self._command(), env=self._environment(), log=log)
        except OSError as error:
            note(log, f"no process can be started: {error}")
            self._failed(now)

    def _failed(self, now: float) -> None:
        self._tries += 1
        self._backoff.ended(now)

    def _has_revived(self, now: float) -> bool:
        assert self._reviver is not None
        code = exit_code(self._reviver.pid)
        if code is None:
            return False
        self._reviver = None
        if code == 0:
            self._restarts += 1
            self._dead, self._tries = (), 0
            self._backoff.began(now)
        else:
            self._failed(now)
        return True

    def _died(self) -> tuple[str, ...]:
        return tuple(daemon.name for daemon in self._daemons if daemon.died())

    def _command(self) -> tuple[str, ...]:
        return (sys.executable, "-m", "infra.local.revive", str(self._folder.root), self._part.name)

    def _environment(self) -> Mapping[str, str]:
        return {name: value for name, value in os.environ.items() if name != self._unmarked}
