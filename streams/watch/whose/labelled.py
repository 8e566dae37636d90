"""Whose record is it, by its labels? Pure, and never "the newest by default".

A source is bound to one cluster, and its job ids may be raw ones. A record is its attempt's that slurm_job_attempt
names, whatever the line says of its time; else of the one that reports its file and during whose time it was written.
Labels that fit nothing known wait like any other line; where the job is known and they still do not fit, the collector
is told wrong.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from schemas.decisions import JobView
from schemas.identity import AttemptId
from schemas.vocabulary import Mode
from streams.sources.lines import Labels
from streams.watch.whose.claims import DEFAULT_INTERVAL_MS, Writer, windows_of
from streams.watch.whose.ownership import Wait, Window, Written, owner_of


@dataclass(frozen=True)
class Stranger(Wait):
    """No job that we know has this id: it may be new, or none of ours, or these attempts', whose file it names."""

    writers: tuple[Writer, ...] = ()


@dataclass(frozen=True)
class Mislabelled(Wait):
    """The labels do not fit what is known of these attempts."""

    writers: tuple[Writer, ...] = ()


@dataclass(frozen=True)
class Nobody:
    """Nothing to wait for: the job is left alone, or the record says nothing of itself."""

    reason: str


Whose = Writer | Wait | Nobody


@dataclass(frozen=True)
class _Job:
    left_alone: bool
    writers: tuple[Writer, ...]
    paths: tuple[tuple[str, ...], ...]
    """For each writer the paths that its attempt reports."""


@dataclass
class Directory:
    """The jobs of one cluster by each of their ids, and by the paths that they report."""

    cluster: str
    _by_id: dict[str, list[_Job]] = field(default_factory=lambda: defaultdict(list))
    _by_path: dict[str, list[Writer]] = field(default_factory=lambda: defaultdict(list))

    @classmethod
    def of(cls, cluster: str, views: Iterable[JobView]) -> Directory:
        made = cls(cluster)
        for view in views:
            if view.cluster == cluster and not view.closed:
                made._add(view)
        return made

    def ids(self, job_id: str) -> tuple[str, ...]:
        """All ids under which a job's lines may be labelled."""
        known = self._by_id.get(job_id, [])
        return tuple(name for name, jobs in self._by_id.items() if any(job in known for job in jobs)) or (job_id,)

    def attempts(self, labels: Labels) -> list[AttemptId]:
        """All attempts that may have written under these labels."""
        if labels.job_id is None:
            return [writer.attempt for writer in self._by_path.get(labels.filename or "", [])]
        return [writer.attempt for job in self._by_id.get(labels.job_id, []) for writer in job.writers]

    def whose(self, labels: Labels, written: Written, skew_ms: int) -> Whose:
        """Say whose record this is."""
        if labels.job_id is not None:
            jobs = self._by_id.get(labels.job_id, [])
            if not jobs:
                return self._stranger(labels)
            if all(job.left_alone for job in jobs):
                return Nobody(f"job {labels.job_id} is left alone")
            return _of_jobs(labels, jobs, written, skew_ms)
        if labels.filename is not None:
            writers = self._by_path.get(labels.filename, [])
            return _by_time(writers, written, skew_ms) if writers else Stranger("no known attempt reports this path")
        return Nobody("the record has neither a job id nor a file")

    def _stranger(self, labels: Labels) -> Stranger:
        words = f"no job {labels.job_id} is known in cluster {self.cluster}"
        writers = tuple(self._by_path.get(labels.filename or "", ()))
        if not writers:
            return Stranger(words)
        jobs = ", ".join(dict.fromkeys(writer.attempt.job_id for writer in writers))
        return Stranger(f"{words}, and the label filename is {labels.filename}, which job {jobs} reports", writers)

    def _add(self, view: JobView) -> None:
        interval_ms = view.aps.progress_kept_every_ms if view.aps else DEFAULT_INTERVAL_MS
        windows = zip(view.attempts, windows_of(view), strict=True)
        writers = tuple(Writer(window, attempt.nodes, interval_ms, view.raw_job_id) for attempt, window in windows)
        paths = tuple(attempt.log_paths for attempt in view.attempts)
        job = _Job(view.mode is Mode.DISABLED, writers, paths)
        for job_id in dict.fromkeys((view.job_id, str(view.raw_job_id))):
            self._by_id[job_id].append(job)
        for writer, known in zip(writers, paths, strict=True):
            for path in () if job.left_alone else dict.fromkeys(known):
                self._by_path[path].append(writer)


def _of_jobs(labels: Labels, jobs: Sequence[_Job], written: Written, skew_ms: int) -> Whose:
    every = tuple(writer for job in jobs for writer in job.writers)
    if labels.attempt is not None:
        named = [writer for writer in every if writer.attempt.index == labels.attempt]
        if not named:
            return Wait(f"attempt {labels.attempt} of job {labels.job_id} is not known yet")
        return _of_named(named, every, written, skew_ms)
    if labels.filename is None:
        return Mislabelled("lines have neither a filename nor a slurm_job_attempt label", every)
    fitting = [
        writer for job in jobs for writer, paths in zip(job.writers, job.paths, strict=True) if labels.filename in paths
    ]
    if not fitting:
        known = sorted({path for job in jobs for paths in job.paths for path in paths})
        words = f"the label filename is {labels.filename}, and the job reports {', '.join(known) or 'no file'}"
        return Mislabelled(words, every)
    return _by_time(fitting, written, skew_ms)


def _of_named(named: Sequence[Writer], every: Sequence[Writer], written: Written, skew_ms: int) -> Whose:
    """The attempt that a label names, unless the record's own time says that it was another of the same job."""
    if len(named) > 1:
        return _by_time(named, written, skew_ms)
    [writer] = named
    record_ms = written.record_ms
    if record_ms is None or writer.window.start_ms is None:
        return writer
    moments = (record_ms, record_ms if written.own_ms is None else written.own_ms)
    if any(_within(writer.window, moment, skew_ms) for moment in moments):
        return writer
    others = [one for one in every if one is not writer and _within(one.window, record_ms, 0)]
    if not others:
        return writer
    index, other = writer.attempt.index, others[-1].attempt.index
    words = f"the label slurm_job_attempt is {index}, and the record's time is that of attempt {other}"
    return Mislabelled(words, (writer, *others))


def _by_time(writers: Sequence[Writer], written: Written, skew_ms: int) -> Whose:
    verdict = owner_of(written, [writer.window for writer in writers], shared=True, skew_ms=skew_ms)
    if isinstance(verdict, Wait):
        return verdict
    return next(writer for writer in writers if writer.attempt == verdict.attempt)


def _within(window: Window, moment_ms: int, skew_ms: int) -> bool:
    started = window.start_ms is not None and window.start_ms - skew_ms <= moment_ms
    return started and (window.end_ms is None or moment_ms <= window.end_ms + skew_ms)
