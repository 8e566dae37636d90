"""`<data>/run/<process>.json`: where a running process says which pid it has and where it answers.

`recovery status` finds processes by these files. A file may outlive its process (`kill -9`), so a reader trusts one
only while a process with that pid and that start is there.
"""

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path


@dataclass(frozen=True)
class RunRecord:
    """One running process of ours.

    `born` is the kernel's start time of the pid (ticks since boot): with it, a pid that was given to another program
    is told apart. `addresses` holds what else the process listens on, such as {"http": "http://127.0.0.1:4001"}.
    """

    process: str
    slot: int | None
    pid: int
    born: int
    host: str
    port: int
    started_ms: int
    addresses: dict[str, str]

    @property
    def name(self) -> str:
        """Return `decide-0` for a process in a slot, else the process."""
        return self.process if self.slot is None else f"{self.process}-{self.slot}"

    @property
    def url(self) -> str:
        """Return the base of its health and metrics."""
        return f"http://{self.host}:{self.port}"

    def alive(self) -> bool:
        """Return whether that very process is there, and not as a zombie."""
        return birth(self.pid) == self.born


def birth(pid: int) -> int | None:
    """Return when the process started, in ticks since boot; None when there is none, or only its zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in ("Z", "X") else int(fields[19])


def run_folder(data: Path) -> Path:
    """Return the folder of the run files."""
    return data / "run"


class RunFile:
    """The run file of this process, written whole or not at all."""

    def __init__(self, data: Path, record: RunRecord) -> None:
        """Take `<name>.json`, or `<name>.<pid>.json` while another living process has that one."""
        self._record = record
        self._folder = run_folder(data)
        self._folder.mkdir(parents=True, exist_ok=True)
        first = self._folder / f"{record.name}.json"
        holder = _read(first) if first.is_file() else None
        taken = holder is not None and holder.pid != record.pid and holder.alive()
        self.path = self._folder / f"{record.name}.{record.pid}.json" if taken else first
        self._write()

    def announce(self, name: str, address: str) -> None:
        """Add an address on which the process listens."""
        self._record = replace(self._record, addresses={**self._record.addresses, name: address})
        self._write()

    def remove(self) -> None:
        """Take the file away, unless another process has it by now."""
        holder = _read(self.path) if self.path.is_file() else None
        if holder is not None and holder.pid == self._record.pid:
            self.path.unlink(missing_ok=True)

    def _write(self) -> None:
        draft = self._folder / f".{self.path.name}.{os.getpid()}"
        draft.write_text(json.dumps(asdict(self._record), indent=2) + "\n", encoding="utf-8")
        draft.replace(self.path)


def read_run_files(data: Path) -> list[RunRecord]:
    """Return the records of all run files, by name, of living and dead processes."""
    records = (_read(path) for path in sorted(run_folder(data).glob("[!.]*.json")))
    return [record for record in records if record is not None]


def forget_dead(data: Path) -> None:
    """Remove the run files that processes left behind when they were killed."""
    for path in run_folder(data).glob("[!.]*.json"):
        record = _read(path)
        if record is not None and not record.alive():
            path.unlink(missing_ok=True)


def _read(path: Path) -> RunRecord | None:
    """Return the record; None when it went away meanwhile or is not one of ours (another tool's, a torn disk)."""
    with suppress(OSError, ValueError, TypeError):
        return RunRecord(**json.loads(path.read_text(encoding="utf-8")))
    return None
