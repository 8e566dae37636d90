"""Keeps a set of our own processes running: starts them, restarts one that ended, and ends all of them on SIGTERM.

The supervisor is itself a background process with a record, so that another command can find and stop it. If it is
killed, its children live on; `stop` and the next start find them by the record and end them first. Nothing is adopted.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from infra.local.daemon import Daemon
from infra.local.folder import DataFolder
from infra.local.leftovers import kill_all_with
from infra.local.parts import Report
from infra.local.process import Process, spawn

FIRST_DELAY_SECONDS = 0.2
LONGEST_DELAY_SECONDS = 5.0
STEADY_SECONDS = 10.0  # a child that lived so long starts again with the first delay
STOP_SECONDS = 10.0
LOOK_EVERY_SECONDS = 0.1
MARK = "RECOVERY_SUPERVISED_IN"  # in the environment of the supervisor and all it starts: the data folder


@dataclass(frozen=True)
class Child:
    """One process to keep running. `env` is added to the supervisor's environment."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ChildStatus:
    """`last_exit` is the code of the last process that ended (negative: by that signal), None if none has."""

    name: str
    process: Process | None
    restarts: int
    last_exit: int | None

    @property
    def pid(self) -> int | None:
        return None if self.process is None else self.process.pid

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.alive()


@dataclass(frozen=True)
class SupervisorStatus:
    running: bool
    children: tuple[ChildStatus, ...]


class _Keeper:
    """One child's life, seen by the supervisor."""

    def __init__(self, child: Child, folder: DataFolder) -> None:
        self.child = child
        self.process: Process | None = None
        self.restarts = 0
        self.last_exit: int | None = None
        self._log = folder.log / f"{child.name}.log"
        self._delay = FIRST_DELAY_SECONDS
        self._started = 0.0
        self._due = 0.0

    def look(self, now: float) -> bool:
        """Takes note of an end, starts what is due; whether anything changed. `now` is monotonic, in seconds."""
        if self.process is None:
            if now < self._due:
                return False
            self._start(now)
            return True
        code = _exit_code(self.process.pid)
        if code is None:
            return False
        self.process.kill()  # helpers that it left behind
        self.process, self.last_exit = None, code
        self._plan_restart(now)
        return True

    def _start(self, now: float) -> None:
        try:
            self.process = spawn(self.child.argv, env={**os.environ, **self.child.env}, log=self._log)
        except OSError as error:
            with self._log.open("a") as log:
                log.write(f"can't be started: {error}\n")
            self.last_exit = 127
            self._plan_restart(now)
        self._started = now

    def _plan_restart(self, now: float) -> None:
        if now - self._started >= STEADY_SECONDS:
            self._delay = FIRST_DELAY_SECONDS
        self._due = now + self._delay
        self._delay = min(self._delay * 2, LONGEST_DELAY_SECONDS)
        self.restarts += 1

    def status(self) -> ChildStatus:
        return ChildStatus(self.child.name, self.process, self.restarts, self.last_exit)


class Supervisor:
    """The supervisor of one data folder, seen from any process.

    `grace_seconds` is how long children have between SIGTERM and SIGKILL.
    """

    def __init__(self, data_folder: Path, grace_seconds: float = STOP_SECONDS) -> None:
        self._grace = grace_seconds
        self._folder = DataFolder(data_folder.resolve())
        self._daemon = Daemon("supervisor-process", self._folder)

    def start(self, children: Sequence[Child], report: Report) -> None:
        """Starts the supervisor detached, after ending leftovers of an earlier one. Raises `PartFailed`."""
        self._folder.create()
        self.stop()
        self._plan.touch(mode=0o600)  # environments may hold passwords
        self._plan.write_text(
            json.dumps({"grace_seconds": self._grace, "children": [asdict(child) for child in children]})
        )
        report(f"starting {', '.join(child.name for child in children)}")
        argv = [sys.executable, "-m", "infra.local.supervisor", str(self._folder.root)]
        self._daemon.start(argv, env={MARK: str(self._folder.root)})
        self._daemon.wait_ready(self._record.exists, seconds=30.0)

    def stop(self) -> None:
        """Ends the supervisor and its children, also those of one that was killed. Does nothing if none is there."""
        if not self._folder.run.exists():
            return
        self._daemon.stop(seconds=self._grace + STOP_SECONDS)
        _end([child.process for child in self._read() if child.process is not None], self._grace)
        kill_all_with(MARK, str(self._folder.root))  # one that was started, but not yet on record
        self._record.unlink(missing_ok=True)

    @property
    def pid(self) -> int | None:
        """The supervisor's own process, None where none runs."""
        process = self._daemon.process()
        return None if process is None else process.pid

    def status(self) -> SupervisorStatus:
        return SupervisorStatus(self._daemon.running(), tuple(self._read()))

    def run(self) -> None:
        """The supervisor's own life, until SIGTERM or SIGINT."""
        asked = {signal.SIGTERM, signal.SIGINT}
        signal.pthread_sigmask(signal.SIG_BLOCK, asked)
        plan = json.loads(self._plan.read_text())
        children = [Child(entry["name"], tuple(entry["argv"]), entry["env"]) for entry in plan["children"]]
        keepers = [_Keeper(child, self._folder) for child in children]
        try:
            while signal.sigtimedwait(asked, LOOK_EVERY_SECONDS) is None:
                changes = [keeper.look(time.monotonic()) for keeper in keepers]
                if any(changes) or not self._record.exists():
                    self._write(keepers)
        finally:
            _end([keeper.process for keeper in keepers if keeper.process is not None], plan["grace_seconds"])
            for keeper in keepers:
                keeper.process = None
            self._write(keepers)

    @property
    def _record(self) -> Path:
        return self._folder.run / "supervisor.json"

    @property
    def _plan(self) -> Path:
        return self._folder.run / "supervisor-plan.json"

    def _write(self, keepers: Sequence[_Keeper]) -> None:
        content = {"pid": os.getpid(), "children": [asdict(keeper.status()) for keeper in keepers]}
        draft = self._record.with_suffix(".tmp")
        draft.write_text(json.dumps(content, indent=1))
        draft.replace(self._record)

    def _read(self) -> list[ChildStatus]:
        if not self._record.exists():
            return []
        return [
            ChildStatus(
                child["name"],
                Process.from_json(child["process"]) if child["process"] else None,
                child["restarts"],
                child["last_exit"],
            )
            for child in json.loads(self._record.read_text())["children"]
        ]


def _exit_code(pid: int) -> int | None:
    """The code of a child that has ended (negative: by that signal), None while it runs."""
    try:
        ended, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return 127  # reaped when it failed to start
    return os.waitstatus_to_exitcode(status) if ended else None


def _end(processes: Sequence[Process], grace_seconds: float) -> None:
    """SIGTERM to all at once, one deadline for all, then SIGKILL."""
    for process in processes:
        process.send(signal.SIGTERM)
    deadline = time.monotonic() + grace_seconds
    for process in processes:
        process.wait(max(0.0, deadline - time.monotonic()))
        process.kill()


if __name__ == "__main__":
    Supervisor(Path(sys.argv[1])).run()
