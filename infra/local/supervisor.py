"""Keeps a set of our own processes running, and the parts of the stack under them, until SIGTERM.

It starts our processes, restarts one that ended (`infra.local.keeper`), and ends all of them. Parts it has brought back
when a server of theirs died (`infra.local.tender`); they are the stack's to start and to end.

The supervisor is itself a background process with a record, so that another command can find and stop it. If it is
killed, its children live on; `stop` and the next start find them by the record and end them first. Nothing is adopted.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from infra.local.daemon import Daemon
from infra.local.folder import DataFolder
from infra.local.keeper import Child, ChildStatus, Keeper
from infra.local.leftovers import kill_all_with
from infra.local.parts import Report
from infra.local.process import Process
from infra.local.tender import PartLife, Tended, Tender

STOP_SECONDS = 10.0
LOOK_EVERY_SECONDS = 0.1
MARK = "RECOVERY_SUPERVISED_IN"  # in the environment of the supervisor and all it starts: the data folder


@dataclass(frozen=True)
class SupervisorStatus:
    running: bool
    children: tuple[ChildStatus, ...]
    parts: tuple[PartLife, ...]


class Supervisor:
    """The supervisor of one data folder, seen from any process.

    `grace_seconds` is how long children have between SIGTERM and SIGKILL.
    """

    def __init__(self, data_folder: Path, grace_seconds: float = STOP_SECONDS) -> None:
        self._grace = grace_seconds
        self._folder = DataFolder(data_folder.resolve())
        self._daemon = Daemon("supervisor-process", self._folder)

    def start(self, children: Sequence[Child], report: Report, parts: Sequence[Tended] = ()) -> None:
        """Starts the supervisor detached, after ending leftovers of an earlier one. Raises `PartFailed`.

        `parts` are those that it brings back; others are left dead.
        """
        self._folder.create()
        self.stop()
        plan = {
            "grace_seconds": self._grace,
            "children": [asdict(child) for child in children],
            "parts": [asdict(part) for part in parts],
        }
        self._plan.touch(mode=0o600)  # environments may hold passwords
        self._plan.write_text(json.dumps(plan))
        report(f"starting {', '.join(child.name for child in children)}")
        argv = [sys.executable, "-m", "infra.local.supervisor", str(self._folder.root)]
        self._daemon.start(argv, env={MARK: str(self._folder.root)})
        self._daemon.wait_ready(self._record.exists, seconds=30.0)

    def stop(self) -> None:
        """Ends the supervisor and its children, also those of one that was killed. Does nothing if none is there."""
        if not self._folder.run.exists():
            return
        self._daemon.stop(seconds=self._grace + STOP_SECONDS)
        _end([child.process for child in self._children() if child.process is not None], self._grace)
        kill_all_with(MARK, str(self._folder.root))  # one that was started, but not yet on record
        self._record.unlink(missing_ok=True)

    @property
    def pid(self) -> int | None:
        """The supervisor's own process, None where none runs."""
        process = self._daemon.process()
        return None if process is None else process.pid

    def status(self) -> SupervisorStatus:
        lives = (
            PartLife(part["name"], tuple(part["dead"]), part["restarts"], part["tries"]) for part in self._read("parts")
        )
        return SupervisorStatus(self._daemon.running(), tuple(self._children()), tuple(lives))

    def run(self) -> None:
        """The supervisor's own life, until SIGTERM or SIGINT."""
        asked = {signal.SIGTERM, signal.SIGINT}
        signal.pthread_sigmask(signal.SIG_BLOCK, asked)
        plan = json.loads(self._plan.read_text())
        keepers = [Keeper(Child(**child | {"argv": tuple(child["argv"])}), self._folder) for child in plan["children"]]
        tenders = [Tender(Tended(part["name"], tuple(part["daemons"])), self._folder, MARK) for part in plan["parts"]]
        told = True
        try:
            while signal.sigtimedwait(asked, LOOK_EVERY_SECONDS) is None:
                now = time.monotonic()
                changes = [keeper.look(now) for keeper in keepers] + [tender.look(now) for tender in tenders]
                if any(changes) or not told or not self._record.exists():
                    told = self._tell(keepers, tenders)
        finally:
            _end([keeper.process for keeper in keepers if keeper.process is not None], plan["grace_seconds"])
            for keeper in keepers:
                keeper.process = None
            self._tell(keepers, tenders)

    @property
    def _record(self) -> Path:
        return self._folder.run / "supervisor.json"

    @property
    def _plan(self) -> Path:
        return self._folder.run / "supervisor-plan.json"

    def _tell(self, keepers: Sequence[Keeper], tenders: Sequence[Tender]) -> bool:
        """Whether the record could be written: a disk that is full ends nobody, and the record is written later."""
        try:
            self._write(keepers, tenders)
        except OSError:
            return False
        return True

    def _write(self, keepers: Sequence[Keeper], tenders: Sequence[Tender]) -> None:
        content = {
            "pid": os.getpid(),
            "children": [asdict(keeper.status()) for keeper in keepers],
            "parts": [asdict(tender.status()) for tender in tenders],
        }
        draft = self._record.with_suffix(".tmp")
        draft.write_text(json.dumps(content, indent=1))
        draft.replace(self._record)

    def _read(self, what: str) -> list[dict[str, Any]]:
        try:
            found: list[dict[str, Any]] = json.loads(self._record.read_text()).get(what, [])
        except (FileNotFoundError, ValueError):  # none, or torn by a loss of power
            return []
        return found

    def _children(self) -> list[ChildStatus]:
        return [
            ChildStatus(**child | {"process": Process.from_json(child["process"]) if child["process"] else None})
            for child in self._read("children")
        ]


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
