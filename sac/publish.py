"""Which looks are worth a fact: changes, and one fresh look for each generation of open Advice. Pure but for memory.

A disabled job is recorded when it is first seen, when the reason changes and when it leaves, and not in between. What
was published is remembered in this process only: after a restart everything is published anew, which deciders take.
"""

from __future__ import annotations

from collections.abc import Iterable

from sac.observe import same_but_when
from sac.slurm.squeue import Look
from sac.view import Known
from schemas.facts import JobObserved
from schemas.vocabulary import AttemptState, Mode


class Publisher:
    """Remembers the last published look at each job."""

    def __init__(self) -> None:
        self._last: dict[str, JobObserved] = {}
        self._left: set[str] = set()

    def changes(self, looks: Iterable[JobObserved], known: Known) -> list[JobObserved]:
        """The looks to publish, remembered as published."""
        chosen = [seen for seen in looks if self._is_news(seen) and not self._is_between(seen, known)]
        for seen in chosen:
            self._last[seen.job_id] = seen
            self._left.discard(seen.job_id)
        return chosen

    def gone(self, look: Look, known: Known) -> list[str]:
        """Jobs that were shown before, by this process or an earlier one, and that slurmctld no longer shows."""
        earlier = {job_id for job_id, view in known.jobs.items() if not view.closed and view.attempts}
        return sorted(job_id for job_id in (earlier | self._last.keys()) - self._left if not look.shows(job_id))

    def last(self, job_id: str) -> JobObserved | None:
        return self._last.get(job_id)

    def is_left(self, job_id: str) -> None:
        """Its final look is published: it is not looked for again unless it appears."""
        self._last.pop(job_id, None)
        self._left.add(job_id)

    def _is_news(self, seen: JobObserved) -> bool:
        before = self._last.get(seen.job_id)
        if before is None or before.advice_generation != seen.advice_generation != 0:
            return True
        if seen.mode is before.mode is Mode.DISABLED:
            return (seen.mode_reason, seen.aps_error) != (before.mode_reason, before.aps_error)
        return not same_but_when(seen, before)

    def _is_between(self, seen: JobObserved, known: Known) -> bool:
        """While a requeued attempt completes, Slurm shows the next restart count with the old SubmitTime.

        Such a look is of no attempt: only one that is known already can be seen completing.
        """
        if seen.state is not AttemptState.COMPLETING:
            return False
        before = self._last.get(seen.job_id)
        shown = (seen.restart_count, seen.submit_time)
        if before is not None and (before.restart_count, before.submit_time) == shown:
            return False
        return known.attempt(seen.job_id, *shown) is None
