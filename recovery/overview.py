"""The whole picture of one machine: parts of the stack, and processes as the supervisor and they themselves say."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from infra.local.daemon import Daemon
from infra.local.folder import DataFolder
from infra.local.keeper import ChildStatus
from infra.local.stack import PartStatus, Stack
from infra.local.supervisor import Supervisor
from infra.local.tender import PartLife, revival_log
from recovery.figures import Figures, together
from recovery.last_words import last_words
from recovery.run_files import RunRecord, read_run_files
from recovery.status import ProcessStatus, ask_all

DECIDER = "decide"
RATE_S = 1.0


@dataclass(frozen=True)
class PartRow:
    """A part in words, and how often the supervisor brought it back (None: no supervisor looks after it)."""

    part: PartStatus
    health: str
    restarts: int | None
    running: bool = False
    """Whether a server of it runs, be it one that does not answer."""


@dataclass(frozen=True)
class Row:
    """A process, and how often the supervisor had to start it again (None: another one looks after it).

    One that is `given_up` is started again by `recovery up` alone.
    """

    process: ProcessStatus
    restarts: int | None
    given_up: bool = False


@dataclass(frozen=True)
class Overview:
    """What runs on this machine in one data folder."""

    data: Path
    parts: tuple[PartRow, ...]
    rows: tuple[Row, ...]
    decided_s: float | None = None
    """Facts decided a second, over the moment of the look; None where no decider answers."""

    @property
    def figures(self) -> Figures:
        """What all processes have measured, together."""
        return together(row.process.figures for row in self.rows)

    @property
    def nothing_runs(self) -> bool:
        """Return whether no server of a part and no process is there."""
        return not any(row.part.healthy or row.running for row in self.parts) and not any(
            row.process.running for row in self.rows
        )

    @property
    def well(self) -> bool:
        """Return whether every part answers and every process is ready, and there are some."""
        parts, processes = (row.part.healthy for row in self.parts), (row.process.ready for row in self.rows)
        return bool(self.rows) and all(parts) and all(processes)


def look(data: Path) -> Overview:
    """Ask everything in this data folder now; takes a few seconds at most."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        stack = Stack(data)
        parts = pool.submit(stack.status)
        supervised = Supervisor(data).status()
        records = read_run_files(data)
        began = time.monotonic()
        said = ask_all(records)
        lives = {life.name: life for life in supervised.parts} if supervised.running else {}
        shown = tuple(
            replace(_part(part, lives.get(part.name), data), running=_any_runs(stack.parts[part.name].daemons, data))
            for part in parts.result()
        )
        rate = _decided_s(records, said, began)
        watched = {child.name: child for child in supervised.children}
        return Overview(data, shown, tuple(_rows(watched, said, data)), rate)


def _any_runs(daemons: Sequence[str], data: Path) -> bool:
    return any(Daemon(name, DataFolder(data)).running() for name in daemons)


def _part(part: PartStatus, life: PartLife | None, data: Path) -> PartRow:
    if part.healthy:
        return PartRow(part, "answers", life.restarts if life else None)
    if life is None:
        return PartRow(part, "does not answer", None)
    if not life.tries:
        died = f"{', '.join(life.dead)} died; it is being started again" if life.dead else "does not answer"
        return PartRow(part, died, life.restarts)
    log = revival_log(DataFolder(data), part.name)
    failed = f"{', '.join(life.dead)} died; {life.tries} starts have failed, tried again: {last_words(log)} (log {log})"
    return PartRow(part, failed, life.restarts)


def _decided_s(records: Sequence[RunRecord], before: Sequence[ProcessStatus], began: float) -> float | None:
    """Look at the deciders once more, a second after the first look."""
    deciders = [record for record in records if record.process == DECIDER]
    if not any(status.ready for status in before if status.pid in {record.pid for record in deciders}):
        return None
    time.sleep(max(0.0, began + RATE_S - time.monotonic()))
    after = ask_all(deciders)
    known = {status.pid: status.figures.decided for status in before}
    decided = sum(max(0, status.figures.decided - known.get(status.pid, 0)) for status in after)
    return decided / (time.monotonic() - began)


def _rows(watched: dict[str, ChildStatus], said: list[ProcessStatus], data: Path) -> list[Row]:
    """Join by pid: of two processes of one kind, the supervisor may know one."""
    by_pid = {status.pid: status for status in said if status.running}
    rows = []
    for child in watched.values():
        own = by_pid.pop(child.pid, None) if child.pid is not None else None
        process = replace(own, name=child.name) if own else _silent(child, data)
        rows.append(Row(process, child.restarts, child.given_up))
    others = [status for status in said if status.pid in by_pid or (not status.running and status.name not in watched)]
    return sorted([*rows, *(Row(status, None) for status in others)], key=lambda row: row.process.name)


def _silent(child: ChildStatus, data: Path) -> ProcessStatus:
    """Return what is known of a process that has not said anything yet, or not any more."""
    return ProcessStatus(
        name=child.name,
        pid=child.pid,
        running=child.running,
        ready=False,
        health=_silence(child, DataFolder(data).log / f"{child.name}.log"),
        started_ms=None,
        url=None,
    )


def _silence(child: ChildStatus, log: Path) -> str:
    ended = "" if child.last_exit is None else f"; the last one ended with code {child.last_exit}"
    if child.given_up:
        return (
            f"given up after {child.restarts + 1} starts: {last_words(log)}; correct it, then `recovery up` (log {log})"
        )
    return f"{'starting' if child.running else 'not running'}{ended}"
