"""The story of one job, for a person who must find out why a run went wrong."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from schemas.facts import CheckpointSaved, ProgressObserved

if TYPE_CHECKING:
    from tests.chaos.disturber import Done
    from tests.chaos.oracle import Truth
    from tests.chaos.records import Records

HIDDEN = ("event_id", "cause", "attempt", "cluster", "job_id", "position", "decided_ms", "aps", "policy", "log_paths")
LONGEST = 300


def tell(truth: Truth, records: Records, disturbances: Sequence[Done]) -> str:
    """Facts, decisions and actions of the job with what was done to the world, by time; then what Slurm says."""
    lines = [
        (at, f"{topic.removeprefix('recovery.'):9} {_shown(event)}")
        for at, topic, event in records.story
        if _job(event) == truth.job_id and not isinstance(event, ProgressObserved | CheckpointSaved)
    ]
    if lines:
        first, last = min(lines)[0] - 2_000, max(lines)[0] + 2_000
        lines += [(d.began_ms, f"--------- {d.what}") for d in disturbances if first <= d.began_ms <= last]
    told = [f"{_clock(at)} {text}" for at, text in sorted(lines)]
    told += [f"faults: {truth.faults}", f"slurmctld: {truth.shown}", f"orders: {truth.orders}"]
    return "\n".join([*told, *(f"accounting: {row}" for row in truth.accounted)])


def _job(event: object) -> object:
    attempt = getattr(event, "attempt", None)
    if attempt is not None:
        return attempt.job_id
    key = getattr(event, "key", "")
    return getattr(event, "job_id", None) or str(key).partition("/")[2]


def _shown(event: object) -> str:
    attempt = getattr(event, "attempt", None)
    whose = f" of attempt {attempt.index}" if attempt is not None else ""
    fields = ", ".join(f"{name}={value}" for name, value in vars(event).items() if name not in HIDDEN and value)
    return f"{type(event).__name__}{whose}: {fields}"[:LONGEST]


def _clock(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%H:%M:%S.%f")[:-3]
