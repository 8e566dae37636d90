"""What runs on this machine, asked now: each process of ours through its run file, each part of the local stack."""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import httpx
from prometheus_client.parser import text_string_to_metric_families

from recovery.metrics import LAG_NAME
from recovery.run_files import RunRecord

ASK_TIMEOUT_S = 3.0


@dataclass(frozen=True)
class Lag:
    """How many records of a topic a consumer group has yet to read."""

    topic: str
    group: str
    records: int


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
    lag: tuple[Lag, ...] = ()


def ask_all(records: Sequence[RunRecord]) -> list[ProcessStatus]:
    """Ask all processes at the same time; takes at most a few seconds whatever they do."""
    with ThreadPoolExecutor(max_workers=8) as pool:
        return list(pool.map(ask, records))


def ask(record: RunRecord) -> ProcessStatus:
    """Ask one process how it is. A process that does not answer is running, not ready."""
    alive = record.alive()
    ready, health, lag = (False, "not running", ()) if not alive else _ask_running(record)
    return ProcessStatus(
        name=record.name,
        pid=record.pid,
        running=alive,
        ready=ready,
        health=health,
        started_ms=record.started_ms,
        url=record.url,
        addresses=record.addresses,
        lag=lag,
    )


def _ask_running(record: RunRecord) -> tuple[bool, str, tuple[Lag, ...]]:
    try:
        with httpx.Client(base_url=record.url, timeout=ASK_TIMEOUT_S) as client:
            alive, ready, metrics = (client.get(path) for path in ("/healthz", "/readyz", "/metrics"))
    except httpx.HTTPError as error:
        return False, f"does not answer on {record.url} ({type(error).__name__})", ()
    wrong = [answer.text.strip() for answer in (alive, ready) if answer.status_code != httpx.codes.OK]
    return not wrong, "; ".join(wrong) or "ready", tuple(_lags(metrics.text))


def _lags(text: str) -> Iterable[Lag]:
    for family in text_string_to_metric_families(text):
        if family.name == LAG_NAME:
            for sample in family.samples:
                yield Lag(sample.labels["topic"], sample.labels["group"], int(sample.value))
