"""Ports are chosen free, once, and remembered; a remembered one that someone else took meanwhile is chosen anew."""

import fcntl
import json
import random
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from infra.local.parts import StackError

LOWEST, HIGHEST = 15000, 31999  # below the usual range of outgoing connections, which may take any port of theirs


def is_free(port: int) -> bool:
    """Whether nobody listens on the port on any address (a connection in TIME_WAIT does not count)."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True


class Ports:
    """The remembered ports of one stack, in one JSON file of name to number. With `keep` none is chosen anew."""

    def __init__(self, file: Path, *, keep: bool = False) -> None:
        self._file = file
        self._keep = keep

    def known(self, name: str) -> int | None:
        return self._read().get(name)

    def free(self, *names: str) -> list[int]:
        """Ports for servers which do not run now, in the order of `names`. Raises `StackError` when there is none."""
        with self._locked():
            ports = self._read()
            for name in names:
                if name not in ports or not is_free(ports[name]):
                    if name in ports and self._keep:
                        raise StackError(f"port {ports[name]} of {name} is taken; `recovery up` chooses another")
                    ports[name] = _choose(set(ports.values()))
            draft = self._file.with_suffix(".tmp")
            draft.write_text(json.dumps(ports, indent=1))
            draft.replace(self._file)
        return [ports[name] for name in names]

    def _read(self) -> dict[str, int]:
        if not self._file.exists():
            return {}
        ports: dict[str, int] = json.loads(self._file.read_text())
        return ports

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with self._file.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _choose(taken: set[int]) -> int:
    for port in random.sample(range(LOWEST, HIGHEST), 500):
        if port not in taken and is_free(port):
            return port
    raise StackError(f"no free TCP port found between {LOWEST} and {HIGHEST}")
