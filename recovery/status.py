"""What runs on this machine, asked now: each process of ours through its run file, each part of the local stack."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException

from recovery.figures import Figures, Lag, figures
from recovery.run_files import RunRecord

ASK_TIMEOUT_S = 3.0


@dataclass(frozen=True)
class ProcessStatus:
    """One process of ours. `health` is `ready`, or plain words for what is wrong; `started_ms` since the epoch.

    `pid`, `started_ms` and `url` are None where they are not known.
    """

    name: str
    pid: int | None
    running: bool
    ready: bool
    health: str
    started_ms: int | None
    url: str | None
    addresses: dict[str, str] = field(default_factory=dict)
    figures: Figures = field(default_factory=Figures)

    @property
    def lag(self) -> tuple[Lag, ...]:
        return self.figures.lag


def ask_all(records: Sequence[RunRecord]) -> list[ProcessStatus]:
    """Ask all processes at the same time; takes at most a few seconds whatever they do."""
    with ThreadPoolExecutor(max_workers=8) as pool:
        return list(pool.map(ask, records))


def ask(record: RunRecord) -> ProcessStatus:
    """Ask one process how it is. A process that does not answer is running, not ready."""
    alive = record.alive()
    ready, health, said = (False, "not running", Figures()) if not alive else _ask_running(record)
    return ProcessStatus(
        name=record.name,
        pid=record.pid,
        running=alive,
        ready=ready,
        health=health,
        started_ms=record.started_ms,
        url=record.url,
        addresses=record.addresses,
        figures=said,
    )


def _ask_running(record: RunRecord) -> tuple[bool, str, Figures]:
    try:
        alive, ready, metrics = (_get(record, path) for path in ("/healthz", "/readyz", "/metrics"))
    except (OSError, HTTPException) as error:
        return False, f"does not answer on {record.url} ({type(error).__name__})", Figures()
    wrong = [text.strip() for status, text in (alive, ready) if status != HTTPStatus.OK]
    return not wrong, "; ".join(wrong) or "ready", figures(metrics[1])


def _get(record: RunRecord, path: str) -> tuple[int, str]:
    """Ask with the plainest client there is: this runs several times a second while everything starts."""
    connection = HTTPConnection(record.host, record.port, timeout=ASK_TIMEOUT_S)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode("utf-8", "replace")
    finally:
        connection.close()
