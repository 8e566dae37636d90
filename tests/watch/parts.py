"""Jobs, attempts and sources for the tests of watch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, tzinfo
from functools import cache
from pathlib import Path

from schemas.aps import Aps
from schemas.bookkeeping import RecordParked, SourceRead
from schemas.decisions import AttemptView, JobView
from schemas.identity import AttemptId, derived_id
from schemas.vocabulary import AttemptState, Mode
from streams.watch.events import LineFact
from streams.watch.matching.examples import load_matcher
from streams.watch.matching.matcher import Matcher
from streams.watch.matching.packs import load_packs
from streams.watch.source import Source
from streams.watch.telling import Reading
from streams.watch.throttle import Throttle
from streams.watch.whose.claims import Claim, claims_of

T0 = 1_785_578_400_000
"""2026-08-01T10:00:00Z, when attempt 0 starts in these tests."""
XID = "[2026-08-01 {time}] node2 rank 3: kernel: NVRM: Xid (PCI:0000:06:00): 79, GPU has fallen off the bus."
NODES = ("node1", "node2")


@cache
def matcher() -> Matcher:
    return load_matcher(load_packs())


def reading(*, skew_ms: int = 2_000, hold_ms: int = 60_000, zone: tzinfo = UTC) -> Reading:
    return Reading(matcher(), Throttle(), zone, skew_ms, hold_ms)


def attempt(index: int, job_id: str = "7") -> AttemptId:
    return AttemptId("local", job_id, T0 // 1000, index)


def attempt_view(
    index: int,
    path: Path | str,
    *,
    job_id: str = "7",
    start_ms: int | None = T0,
    end_ms: int | None = None,
    state: AttemptState = AttemptState.RUNNING,
    submit_time: int = T0 // 1000,
) -> AttemptView:
    return AttemptView(attempt(index, job_id), submit_time, start_ms, end_ms, state, NODES, (str(path),))


def job_view(
    *attempts: AttemptView, job_id: str = "7", shared: bool = False, mode: Mode = Mode.OBSERVE, interval_s: int = 60
) -> JobView:
    aps = Aps(log_file_paths_shared_across_attempts=shared, progress_interval_s=interval_s)
    return JobView(
        event_id=derived_id("test view", job_id, str(attempts)),
        cause="",
        cluster="local",
        job_id=job_id,
        raw_job_id=int(job_id),
        workflow_id="wf",
        aps=aps,
        mode=mode,
        attempts=attempts,
        quarantined=False,
        closed=False,
        viewed_ms=T0,
    )


def claim_on(path: Path | str, *views: JobView) -> Claim:
    return claims_of(views)[str(path)]


def running(path: Path | str) -> Claim:
    """Attempt 0 runs and is the only one that reports the path."""
    return claim_on(path, job_view(attempt_view(0, path)))


def everything(source: Source, now_ms: int, claim: Claim) -> list[LineFact | RecordParked]:
    """One turn, and more of them while there is more."""
    events = list(source.turn(now_ms, claim))
    while source.more:
        events += source.turn(now_ms, claim)
    return events


def facts_of(events: Sequence[LineFact | RecordParked]) -> Iterator[LineFact]:
    for event in events:
        assert not isinstance(event, RecordParked), event
        yield event


def restarted(source: Source, now_ms: int, own: Reading | None = None) -> Source:
    """Another process goes on from what this one wrote down."""
    position: SourceRead = source.position(now_ms)
    source.close()
    return Source(source.path, own or reading(), position)
