"""The process `watchdog`: no hold of ours is ever without an exit. It needs Slurm, and nothing else of this system.

It releases a job that it has itself seen requeue-held for `watchdog.timeout_s` without a break: the same attempt at
every look that got an answer. Only jobs of this installation that want recovery by requeue; never a first attempt
(a dependency gate may hold it), never a hold by a user or an admin. Its timers live in this process: after a restart
every hold has its whole time again. A hold that an operator placed with `scontrol requeuehold` looks like ours.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

import structlog

from recovery.metrics import counter, gauge
from recovery.process import ProcessContext, run_process
from recovery.settings import Settings
from sac.mode import not_admitted
from sac.observe import hold_of, opted_in
from sac.slurm import squeue
from sac.slurm.answers import Unknown
from sac.slurm.commands import Sent, SlurmCommands
from sac.slurm.glimpse import changed
from sac.slurm.squeue import SlurmJob
from schemas.vocabulary import AttemptState, Hold, Outcome

RETRY_TIMEOUTS = 3
"""A release that did not help is repeated after this many command timeouts: its effect may still arrive."""

log = structlog.get_logger(__name__)
RELEASES = counter("watchdog_releases", "Releases sent, by outcome.", "outcome")
HELD = gauge("watchdog_held_jobs", "Recovery holds that the watchdog has a timer for.")


def run(settings: Settings) -> int:
    """Run until told to stop; returns the exit code."""
    return run_process("watchdog", settings, _body)


def _body(context: ProcessContext) -> None:
    settings = context.settings
    watchdog = Watchdog(settings, SlurmCommands.of(settings.slurm))
    limit_s = settings.watchdog.tick_s + 10 * settings.slurm.command_timeout_s
    while True:
        context.health.beat(limit_s)
        unknown = watchdog.run_pass(time.monotonic())
        if unknown is None:
            context.health.ready()
        else:
            context.health.not_ready(f"Slurm is unknown: {unknown}")
        if context.stop.wait(settings.watchdog.tick_s):
            return


@dataclass(frozen=True)
class Held:
    """One attempt in a hold. Another attempt, or the same after a release, is another hold."""

    job_id: str
    restart_count: int
    submit_time: int


@dataclass(frozen=True)
class Timer:
    """When a hold was first seen, and when it may be released (again)."""

    since: float
    due: float


class Watchdog:
    """The timers of one cluster. Times are those of a monotonic clock."""

    def __init__(self, settings: Settings, commands: SlurmCommands) -> None:
        self._settings = settings
        self._commands = commands
        self._timers: dict[Held, Timer] = {}
        self._reported: set[Held] = set()
        self._unknown: str | None = None

    def run_pass(self, now: float) -> str | None:
        """Look, and release what is due. Returns why Slurm is unknown, if it is: then no timer moves or ends."""
        look = squeue.look(self._commands, self._settings.slurm.cluster, {})
        if isinstance(look, Unknown):
            if look.reason != self._unknown:
                log.warning("pass", did="nothing, Slurm is unknown", reason=look.reason, next="look again")
            self._unknown = look.reason
            return look.reason
        self._unknown = None
        for job, held in self.due(look.value.jobs.values(), look.value.unreadable.keys(), now):
            if self._may_act:
                self._release(job, held, now)
            elif held not in self._reported:
                self._reported.add(held)
                log.info("would release", job=job.job_id, attempt=job.restart_count, held_s=self._age(held, now))
        HELD.set(len(self._timers))
        return None

    def due(self, jobs: Iterable[SlurmJob], unreadable: Iterable[str], now: float) -> list[tuple[SlurmJob, Held]]:
        """Bring the timers up to what is held now, and return the holds whose time is over."""
        held = {Held(job.job_id, job.restart_count, job.submit_time): job for job in jobs if self.is_ours(job)}
        unseen = set(unreadable)  # not known to be released
        for gone in [key for key in self._timers if key not in held and key.job_id not in unseen]:
            del self._timers[gone]
            self._reported.discard(gone)
        for key in held:
            self._timers.setdefault(key, Timer(now, now + self._settings.watchdog.timeout_s))
        return [(job, key) for key, job in held.items() if now >= self._timers[key].due]

    def is_ours(self, job: SlurmJob) -> bool:
        """Whether this is a recovery hold of this installation."""
        if job.restart_count < 1 or hold_of(job) is not Hold.REQUEUE or job.het_offset:
            return False
        aps, aps_error = opted_in(job) or (None, None)
        admitted = not_admitted(aps, aps_error, job.partition, self._settings.sac) is None
        return admitted and aps is not None and aps.auto_resume_mode == "requeue"

    @property
    def _may_act(self) -> bool:
        return self._settings.watchdog.mode == "act" and self._settings.watchdog.acknowledge

    def _release(self, job: SlurmJob, held: Held, now: float) -> None:
        target = str(job.raw_job_id) if job.het_leader is not None else job.job_id
        differs = changed(self._commands, target, job.restart_count, AttemptState.PENDING)
        if differs is not None:
            log.info("not released", job=job.job_id, reason=differs, next="look again")
            return
        sent: Sent = self._commands.send("scontrol", "release", target)
        RELEASES.labels(sent.outcome).inc()
        again_s = max(RETRY_TIMEOUTS * self._settings.slurm.command_timeout_s, self._settings.watchdog.tick_s)
        self._timers[held] = Timer(self._timers[held].since, now + again_s)
        said = log.info if sent.outcome is Outcome.ACCEPTED else log.error
        said(
            "released a hold",
            job=job.job_id,
            attempt=job.restart_count,
            held_s=self._age(held, now),
            outcome=sent.outcome,
            detail=sent.detail,
            next=f"look again; if it is still held, repeat after {again_s:g} s",
        )

    def _age(self, held: Held, now: float) -> int:
        return round(now - self._timers[held].since)
