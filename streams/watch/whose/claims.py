"""What the views of jobs say about paths: which to follow, and which attempts could have written there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from schemas.decisions import AttemptView, JobView
from schemas.identity import AttemptId
from schemas.vocabulary import FINAL_STATES, AttemptState, Mode
from streams.watch.whose.ownership import Window

DEFAULT_INTERVAL_MS = 60_000
LAST_SECOND_MS = 999
_NOT_STARTED = {AttemptState.PENDING, AttemptState.HELD, AttemptState.CONFIGURING}


@dataclass(frozen=True)
class Writer:
    """An attempt that reports a path, and what matters of it for its lines."""

    window: Window
    nodes: tuple[str, ...]
    kept_every_ms: int
    raw_job_id: int
    """The job as Slurm itself names it where it writes into the output."""
    running_ms: int | None = None
    """When it was seen to run, of one that does as far as known."""

    @property
    def attempt(self) -> AttemptId:
        return self.window.attempt


@dataclass(frozen=True)
class Claim:
    """All that is known of one path. `over`: every attempt that reports it has ended."""

    writers: tuple[Writer, ...]
    shared: bool
    over: bool

    def writer(self, attempt: AttemptId) -> Writer:
        return next(writer for writer in self.writers if writer.attempt == attempt)

    @cached_property
    def windows(self) -> tuple[Window, ...]:
        return tuple(writer.window for writer in self.writers)

    @cached_property
    def start_ms(self) -> int:
        """When the first attempt began; nobody else is known to have written before."""
        return min(window.start_ms for window in self.windows if window.start_ms is not None)


def claims_of(views: Iterable[JobView]) -> Mapping[str, Claim]:
    """Return the claim on each path that some attempt may have written to.

    Jobs that are closed or disabled claim nothing. A path that several jobs report counts as shared.
    """
    writers: dict[str, list[Writer]] = defaultdict(list)
    flagged: set[str] = set()
    jobs: dict[str, set[str]] = defaultdict(set)
    running: set[str] = set()
    for view in views:
        if view.closed or view.mode is Mode.DISABLED:
            continue
        interval_ms = view.aps.progress_kept_every_ms if view.aps else DEFAULT_INTERVAL_MS
        for attempt, window in zip(view.attempts, windows_of(view), strict=True):
            running_ms = view.viewed_ms if attempt.state is AttemptState.RUNNING else None
            for path in dict.fromkeys(attempt.log_paths):
                writers[path].append(Writer(window, attempt.nodes, interval_ms, view.raw_job_id, running_ms))
                jobs[path].add(f"{view.cluster}/{view.job_id}")
                if window.start_ms is not None and window.end_ms is None:
                    running.add(path)
                if view.aps is not None and view.aps.log_file_paths_shared_across_attempts:
                    flagged.add(path)
    return {
        path: Claim(tuple(known), path in flagged or len(jobs[path]) > 1, path not in running)
        for path, known in writers.items()
        if any(writer.window.start_ms is not None for writer in known)
    }


def windows_of(view: JobView) -> list[Window]:
    """When each attempt of a job could write, oldest first.

    An attempt ended at the latest when Slurm requeued it, which is the submit time of its successor; one that is final
    without a known end has ended when the view was made. Slurm tells whole seconds: the last one counts in full.
    """
    windows = []
    for number, attempt in enumerate(view.attempts):
        successor = view.attempts[number + 1] if number + 1 < len(view.attempts) else None
        end_ms = attempt.end_ms
        if end_ms is None and successor is not None:
            end_ms = successor.submit_time * 1000
        if end_ms is None and attempt.state in FINAL_STATES:
            end_ms = view.viewed_ms
        windows.append(Window(attempt.attempt, _start_ms(attempt), None if end_ms is None else end_ms + LAST_SECOND_MS))
    return windows


def _start_ms(attempt: AttemptView) -> int | None:
    if attempt.start_ms is not None or attempt.state in _NOT_STARTED:
        return attempt.start_ms
    return attempt.submit_time * 1000
