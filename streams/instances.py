"""Static group membership for processes that come without slots: a name that a restarted process takes again.

A member that is killed leaves its name behind; the next process with that name takes its partitions over at once,
without a rebalance and without waiting for the session of the dead one.
"""

from __future__ import annotations

import fcntl
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

MOST = 64


class TooManyMembers(RuntimeError):
    """Every numbered name of this machine is in use."""


@contextmanager
def numbered_instance(data: Path, process: str) -> Iterator[str]:
    """Hold `<process>-<host>-<folder>-<n>` with the lowest free n until the block ends (or the process is killed).

    The number is a lock on a file in `data`. Raises TooManyMembers.
    """
    folder = data / "run"
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(MOST):
        with (folder / f"{process}-{number}.lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            mark = sha256(str(data.resolve()).encode()).hexdigest()[:8]
            yield f"{process}-{socket.gethostname()}-{mark}-{number}"
            return
    raise TooManyMembers(f"{MOST} processes {process} run on {data} already; stop some")
