"""What Slurm writes into a job's output when it takes the job away: whoever writes after that is another attempt.

The scheduler's observer may be down, and then the views still show the attempt running. The notice gives its window an
end until they know better, so that a successor's lines wait instead of being taken for its own.
"""

from __future__ import annotations

import re
from dataclasses import replace

from streams.watch.claims import Claim, Writer
from streams.watch.neighbours import Stamp
from streams.watch.ownership import Window

TEAR_DOWN_MS = 30_000
"""What is said so soon after the notice is of the attempt that ends: Slurm kills it no later, unless told otherwise."""
RECENT_MS = 600_000
"""An older notice that nobody saw appear is one of which the views have long known."""
_MARK = b" CANCELLED AT "
_NOTICE = re.compile(
    rb"\*\*\* JOB (\d{1,19}) ON \S+ CANCELLED AT \S+ DUE TO (?:JOB REQUEUE|PREEMPTION|NODE FAILURE|TIME LIMIT)"
)


class Notices:
    """The last notice of each job that reports one path."""

    def __init__(self, skew_ms: int) -> None:
        self._skew_ms = skew_ms
        self._taken_ms: dict[int, int] = {}

    def read(self, data: bytes, claim: Claim, stamp: Stamp, absent_ms: int | None, read_ms: int) -> None:
        """Take note of what lines say that were not there at one look of ours, if known, and were at another."""
        if _MARK not in data:
            return
        jobs = {writer.raw_job_id for writer in claim.writers}
        for match in _NOTICE.finditer(data):
            taken_ms = self._moment_ms(stamp(match.group()), absent_ms, read_ms)
            if taken_ms is not None and int(match.group(1)) in jobs:
                self._taken_ms[int(match.group(1))] = taken_ms

    def windows(self, claim: Claim) -> tuple[Window, ...]:
        """When each attempt could write, as far as views and notices tell."""
        return tuple(map(self._window, claim.writers)) if self._taken_ms else claim.windows

    def _moment_ms(self, said_ms: int | None, absent_ms: int | None, read_ms: int) -> int | None:
        """When the job was taken: as the notice says, unless we saw it appear at another time."""
        earliest_ms = read_ms - RECENT_MS if absent_ms is None else absent_ms - self._skew_ms
        if said_ms is not None and earliest_ms <= said_ms <= read_ms + self._skew_ms:
            return said_ms
        return None if absent_ms is None else read_ms

    def _window(self, writer: Writer) -> Window:
        window, taken_ms = writer.window, self._taken_ms.get(writer.raw_job_id)
        if taken_ms is None or window.end_ms is not None or window.start_ms is None or taken_ms < window.start_ms:
            return window
        return replace(window, end_ms=taken_ms + TEAR_DOWN_MS)
