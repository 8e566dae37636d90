"""What became of jobs that left slurmctld: asked of accounting, in the background, until it knows.

slurmdbd may be slow or down, which must not stop the looks at slurmctld: one call at a time, in a thread of its own.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import structlog

from sac.slurm import sacct
from sac.slurm.answers import Known, Unknown
from sac.slurm.commands import SlurmCommands
from sac.slurm.sacct import MAX_IDS, Accounted

FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 60.0
log = structlog.get_logger(__name__)

Records = Mapping[str, tuple[Accounted, ...]]


@dataclass(frozen=True)
class _Wait:
    until: float
    seconds: float


class LeftJobs:
    """Asks accounting for jobs by id; each is asked for again, ever more rarely, until `found` is told."""

    def __init__(self, commands: SlurmCommands) -> None:
        self._commands = commands
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="sacct")
        self._call: Future[Known[Records] | Unknown] | None = None
        self._waits: dict[str, _Wait] = {}

    def look(self, job_ids: Iterable[str]) -> Records:
        """Take the answer that has come, and ask for those of these jobs that are due. Never waits."""
        wanted = set(job_ids)
        for forgotten in self._waits.keys() - wanted:  # it appeared again
            del self._waits[forgotten]
        answer: Records = {}
        if self._call is not None and self._call.done():
            result, self._call = self._call.result(), None
            if isinstance(result, Unknown):
                log.warning("accounting unknown", reason=result.reason, next="asked again")
            else:
                answer = result.value
        now = time.monotonic()
        due = sorted(job for job in wanted if job not in answer and self._is_due(job, now))[:MAX_IDS]
        if due and self._call is None:
            for job in due:
                before = self._waits.get(job)
                seconds = min(before.seconds * 2, LONGEST_WAIT_S) if before is not None else FIRST_WAIT_S
                self._waits[job] = _Wait(now + seconds, seconds)
            self._call = self._pool.submit(sacct.records, self._commands, due)
        return answer

    def found(self, job_id: str) -> None:
        self._waits.pop(job_id, None)

    def close(self) -> None:
        """A call that is under way ends by its own time limit."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _is_due(self, job: str, now: float) -> bool:
        wait = self._waits.get(job)
        return wait is None or now >= wait.until
