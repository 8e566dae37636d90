"""One named background server of a stack: its record in `run/`, its output in `log/`."""

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from infra.local.folder import DataFolder
from infra.local.parts import PartFailed
from infra.local.process import Process, spawn
from infra.local.wait import until


@dataclass(frozen=True)
class Daemon:
    """Starts at most one process of its name in its data folder."""

    name: str
    folder: DataFolder

    @property
    def log(self) -> Path:
        return self.folder.log / f"{self.name}.log"

    @property
    def _record(self) -> Path:
        return self.folder.run / f"{self.name}.json"

    def process(self) -> Process | None:
        """The running process, if there is one."""
        process = Process.load(self._record)
        return process if process is not None and process.alive() else None

    def running(self) -> bool:
        return self.process() is not None

    def died(self) -> bool:
        """Whether it was started and has ended, and nobody has told it to."""
        process = Process.load(self._record)
        return process is not None and not process.alive()

    def start(self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, launcher: Sequence[str] = ()) -> None:
        """Starts the program in the background, with `env` added to the present environment."""
        leftover = Process.load(self._record)
        if leftover is not None:
            leftover.kill()  # of a server that died, helpers may live on and hold its files
        merged = {**os.environ, **(env or {})}
        spawn(argv, env=merged, log=self.log, launcher=launcher, record=self._record)

    def wait_ready(self, answers: Callable[[], bool], *, seconds: float) -> None:
        """Waits until it answers. Raises `PartFailed` with the end of its log, once it is dead or time is over."""
        try:
            until(answers, seconds=seconds, what=f"{self.name} starting", still_possible=self.running)
        except PartFailed as failure:
            raise PartFailed(f"{failure}; the end of {self.log}:\n{self.last_lines()}") from failure

    def stop(self, *, seconds: float, number: int = signal.SIGTERM) -> Process | None:
        """Ends the process and what is left of its group, and forgets it; returns it, if there was one."""
        process = Process.load(self._record)
        if process is not None:
            process.end(seconds=seconds, number=number)
            self._record.unlink()
        return process

    def last_lines(self, count: int = 15) -> str:
        if not self.log.exists():
            return "(empty)"
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-count:])
