"""Processes that outlive whoever started them, known by pid, start time and command line.

A pid alone may belong to a stranger by now, and a zombie still has one: so a recorded process counts as alive only if
/proc shows the same start time and the same arguments, and it is not a zombie. After a reboot
nothing recorded is alive.
"""

import contextlib
import json
import os
import shutil
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path

POLL_SECONDS = 0.02
EXEC_SECONDS = 5.0
NO_ARGUMENTS = ("",)


@cache
def this_boot() -> str:
    """The kernel's id of the present boot: start times and process groups mean nothing in another."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


@dataclass(frozen=True)
class Process:
    """One started process: its pid (also its process group), kernel start time (ticks since boot) and arguments."""

    pid: int
    started: int
    argv: tuple[str, ...]
    boot: str = field(default_factory=this_boot)

    def alive(self) -> bool:
        stat = _stat(self.pid)
        if stat is None or stat.started != self.started or self.boot != this_boot():
            return False
        if stat.state == "Z":
            return False
        # the end of it, as a launcher such as setpriv (or an interpreter) may stand before the arguments; while a
        # launcher replaces itself /proc shows none at all
        shown = _command_line(self.pid)
        return shown == NO_ARGUMENTS or shown[-len(self.argv) :] == self.argv

    def send(self, number: int) -> None:
        """Does nothing if the process is gone."""
        if self.alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def end(self, *, seconds: float, number: int = signal.SIGTERM) -> None:
        """Asks with a signal, waits up to `seconds`, then kills; at last kills what is left of its process group."""
        self.send(number)
        self.wait(seconds)
        self.kill()

    def kill(self) -> None:
        """SIGKILL for the process and its process group, and waits until the process is gone (5 s at most)."""
        if self.boot != this_boot():
            return
        self.send(signal.SIGKILL)
        self.wait(5.0)
        stat = _stat(self.pid)
        if stat is None or stat.started == self.started:  # else the number was given to a stranger
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):  # not our child: whoever started it reaps it
            os.waitpid(self.pid, os.WNOHANG)

    def wait(self, seconds: float) -> bool:
        """Whether it was gone within `seconds`."""
        deadline = time.monotonic() + seconds
        while not self._gone():
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL_SECONDS)
        return True

    def _gone(self) -> bool:
        """Whether it holds nothing any more: no file, no port. It has stopped being `alive` a moment earlier."""
        stat = _stat(self.pid)
        stranger = stat is not None and (stat.started != self.started or self.boot != this_boot())
        return stat is None or stranger or (stat.state in "ZX" and stat.threads <= 1)

    def save(self, file: Path) -> None:
        draft = file.with_suffix(".tmp")
        draft.write_text(json.dumps(asdict(self)))
        draft.replace(file)

    @classmethod
    def load(cls, file: Path) -> "Process | None":
        """None where there is no record, or one that a loss of power tore: nothing outlived that."""
        try:
            fields = json.loads(file.read_text())
        except (FileNotFoundError, ValueError):
            return None
        return cls.from_json(fields)

    @classmethod
    def from_json(cls, fields: Mapping[str, object]) -> "Process":
        pid, started, argv, boot = fields["pid"], fields["started"], fields["argv"], fields.get("boot", this_boot())
        assert isinstance(pid, int)
        assert isinstance(started, int)
        assert isinstance(argv, list)
        assert isinstance(boot, str)
        return cls(pid, started, tuple(argv), boot)


def spawn(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    log: Path,
    launcher: Sequence[str] = (),
    record: Path | None = None,
) -> Process:
    """Starts a program as leader of its own session, output appended to `log`. Raises `OSError` if it can't be run.

    `launcher` is a command that replaces itself by `argv` (such as setpriv), and is not recorded. The process is saved
    in `record` as soon as it is there, and ended where that fails: else nobody would ever find it.
    """
    whole = [*launcher, *argv]
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    defaults = [signal.SIGPIPE, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD]
    program = shutil.which(whole[0], path=env.get("PATH"))
    if program is None:
        raise FileNotFoundError(f"{whole[0]} is not installed")
    pid = os.posix_spawn(program, whole, env, file_actions=actions, setsid=True, setsigmask=[], setsigdef=defaults)
    stat = _stat(pid)
    process = Process(pid, stat.started if stat else 0, tuple(argv))
    if record is not None:
        try:
            process.save(record)
        except OSError:
            process.kill()
            raise
    _wait_for_exec(process)
    return process


def note(log: Path, sentence: str) -> None:
    """Adds a line to a log, where there is room on its disk."""
    with contextlib.suppress(OSError), log.open("a") as file:
        file.write(f"{sentence}\n")


def exit_code(pid: int) -> int | None:
    """The code of a child of ours that has ended (negative: by that signal), None while it runs."""
    try:
        ended, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return 127  # reaped when it failed to start
    return os.waitstatus_to_exitcode(status) if ended else None


def _wait_for_exec(process: Process) -> None:
    """The kernel lets us go on before it shows the new arguments, and a launcher takes its time, too."""
    deadline = time.monotonic() + EXEC_SECONDS
    while not process.alive():
        stat = _stat(process.pid)
        if stat is None or stat.state == "Z":
            return  # already over; whoever waits for it to answer will say so
        if time.monotonic() > deadline:
            process.kill()
            raise OSError(f"{process.argv[0]} was started, but its arguments did not appear in /proc")
        time.sleep(0.002)


@dataclass(frozen=True)
class _Stat:
    state: str
    threads: int  # those that still run; of a zombie, too
    started: int


def _stat(pid: int) -> _Stat | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text[text.rindex(")") + 2 :].split()  # the name before it may hold spaces and brackets
    return _Stat(state=fields[0], threads=int(fields[17]), started=int(fields[19]))


def _command_line(pid: int) -> tuple[str, ...]:
    try:
        raw = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return ()
    return tuple(os.fsdecode(part) for part in raw.removesuffix(b"\0").split(b"\0"))
