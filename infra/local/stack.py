"""The whole local stack in one data folder: its parts start in parallel, stop in parallel, and are found again."""

import fcntl
import json
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from infra.local.endpoints import Endpoints
from infra.local.folder import DataFolder
from infra.local.kafka import Kafka
from infra.local.parts import Part, Report, StackError
from infra.local.ports import Ports
from infra.local.postgres import Postgres
from infra.local.registry import Registry
from infra.local.slurm import Slurm

ENDPOINT_NAMES = {"bootstrap": "kafka", "url": "registry", "dsn": "postgres", "slurm_conf": "slurm_conf"}
VARIABLES = {
    "kafka": "RECOVERY_KAFKA__BOOTSTRAP",
    "registry": "RECOVERY_REGISTRY__URL",
    "postgres": "RECOVERY_POSTGRES__URL",
    "slurm_conf": "SLURM_CONF",
}


@dataclass(frozen=True)
class PartStatus:
    """What `status` says of one part."""

    name: str
    healthy: bool
    endpoints: Mapping[str, str]


class Stack:
    """All parts of one data folder. Safe to call from several processes: they take turns.

    `instead` takes the place of parts of the same name: servers that others run, such as containers. With `keep_ports`
    a part whose port someone else took does not start: its clients would not find it elsewhere.
    """

    def __init__(
        self, data_folder: Path, instead: Mapping[str, Part] | None = None, *, keep_ports: bool = False
    ) -> None:
        self._folder = DataFolder(data_folder.resolve())
        ports = Ports(self._folder.root / "ports.json", keep=keep_ports)
        parts: tuple[Part, ...] = (
            Kafka(self._folder, ports),
            Registry(self._folder, ports),
            Postgres(self._folder, ports),
            Slurm(self._folder, ports),
        )
        self.parts: Mapping[str, Part] = {part.name: part for part in parts} | dict(instead or {})

    @property
    def data_folder(self) -> Path:
        return self._folder.root

    def start(self, report: Report, only: Collection[str] | None = None) -> Endpoints | None:
        """Starts the parts (all, or those named), and writes their endpoints; what runs already is left alone.

        Returns the endpoints, or None where only a few parts are up. Raises the error of the part that failed, or a
        `StackError` that names several, after the others have started.
        """
        self._folder.create()
        chosen = [self.parts[name] for name in (self.parts if only is None else only)]
        with self._locked(), ThreadPoolExecutor(len(chosen)) as pool:
            futures = {part.name: pool.submit(part.start, report) for part in chosen}
            errors = {name: future.exception() for name, future in futures.items()}
            failed = {name: error for name, error in errors.items() if error is not None}
            started = self._write_endpoints(failed.keys())
        if len(failed) == 1:
            raise next(iter(failed.values()))
        if failed:
            summary = "; ".join(f"{name}: {error}" for name, error in failed.items())
            raise StackError(summary) from next(iter(failed.values()))
        return Endpoints.load(self._folder.root) if {"kafka", "registry", "postgres"} <= started else None

    def revive(self, name: str, report: Report) -> None:
        """Starts a part again that died; does nothing where the stack was stopped meanwhile. Raises `StackError`.

        Parts are revived beside each other, and not while the stack starts or stops.
        """
        part = self.parts[name]
        with self._locked(fcntl.LOCK_SH), self._locked(name=f"{name}.lock"):
            if not (self._folder.root / "endpoints.json").exists():
                return
            part.start(report)

    def stop(self) -> None:
        """Ends every part; data stays. Raises the first part's error after all were tried."""
        if not self._folder.root.exists():
            return
        self._folder.create()
        with self._locked(), ThreadPoolExecutor(len(self.parts)) as pool:
            for file in ("endpoints.json", "env"):
                (self._folder.root / file).unlink(missing_ok=True)
            for future in [pool.submit(part.stop) for part in self.parts.values()]:
                future.result()
            self._folder.discard_sockets()

    def status(self) -> list[PartStatus]:
        """Asks every part now."""
        with ThreadPoolExecutor(len(self.parts)) as pool:
            healthy = pool.map(lambda part: part.healthy(), self.parts.values())
            return [
                PartStatus(part.name, fine, part.endpoints)
                for part, fine in zip(self.parts.values(), healthy, strict=True)
            ]

    def _write_endpoints(self, failed: Collection[str]) -> set[str]:
        """Writes `endpoints.json` and `env` (for a shell) for all parts that are up; returns their endpoints' names."""
        with ThreadPoolExecutor(len(self.parts)) as pool:
            healthy = pool.map(lambda part: part.name not in failed and part.healthy(), self.parts.values())
            up = [part for part, fine in zip(self.parts.values(), healthy, strict=True) if fine]
        known = {ENDPOINT_NAMES[name]: value for part in up for name, value in part.endpoints.items()}
        lines = [f"export {VARIABLES[name]}='{value}'\n" for name, value in known.items()]
        for file, text in (("endpoints.json", json.dumps(known, indent=1)), ("env", "".join(lines))):
            draft = self._folder.run / file
            draft.touch(mode=0o600)  # it holds a password
            draft.write_text(text)
            draft.replace(self._folder.root / file)
        return set(known)

    @contextmanager
    def _locked(self, how: int = fcntl.LOCK_EX, name: str = "stack.lock") -> Iterator[None]:
        with (self._folder.run / name).open("w") as lock:
            fcntl.flock(lock, how)
            yield
