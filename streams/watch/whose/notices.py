"""What Slurm writes into a job's output when it takes the job away: whoever writes after that is another attempt.

The scheduler's observer may be down, and then the views still show the attempt running. The notice gives its window an
end until they know better, so that a successor's lines wait instead of being taken for its own. Any program may print
such a line, such as that of an attempt before: it must be of this moment, and it holds for a while only. After a time
limit no successor comes by itself: whoever starts the job again has learnt from the scheduler that it ended.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from streams.watch.whose.claims import Claim, Writer
from streams.watch.whose.neighbours import Stamp
from streams.watch.whose.ownership import Window

TEAR_DOWN_MS = 30_000
"""What is said so soon after the notice is of the attempt that ends: Slurm kills it no later, unless told otherwise."""
RECENT_MS = 600_000
"""Of an older notice the views have long known: if they still show the attempt running, it runs."""
ZONES_MS = 900_000
"""All zones differ by whole quarters of an hour."""
_MARK = b" CANCELLED AT "
_NOTICE = re.compile(rb"\*\*\* JOB (\d{1,19}) ON \S+ CANCELLED AT \S+ DUE TO (?:JOB REQUEUE|PREEMPTION|NODE FAILURE)")


@dataclass(frozen=True)
class _Notice:
    said_ms: int
    """When the job was taken, as the notice says."""
    taken_ms: int
    """The same by our clock, if its zone is another than we think."""

    def is_of(self, start_ms: int) -> bool:
        """Whether it can be of an attempt that began then; else an attempt before is quoted."""
        return start_ms <= min(self.said_ms, self.taken_ms)


class Notices:
    """The last notice of each job that reports one path."""

    def __init__(self, skew_ms: int) -> None:
        self._skew_ms = skew_ms
        self._known: dict[int, _Notice] = {}

    def read(self, data: bytes, claim: Claim, stamp: Stamp, absent_ms: int | None, read_ms: int) -> None:
        """Take note of what lines say that were not there at one look of ours, if known, and were at another."""
        if _MARK not in data:
            return
        jobs = {writer.raw_job_id for writer in claim.writers}
        for match in _NOTICE.finditer(data):
            said_ms = stamp(match.group())
            taken_ms = None if said_ms is None else self._moment_ms(said_ms, absent_ms, read_ms)
            if said_ms is not None and taken_ms is not None and int(match.group(1)) in jobs:
                self._known[int(match.group(1))] = _Notice(said_ms, taken_ms)

    def windows(self, claim: Claim, now_ms: int) -> tuple[Window, ...]:
        """When each attempt could write, as far as views and notices tell."""
        if not self._known:
            return claim.windows
        return tuple(self._window(writer, now_ms) for writer in claim.writers)

    def _moment_ms(self, said_ms: int, absent_ms: int | None, read_ms: int) -> int | None:
        """When the job was taken: as the notice says, or as we saw it appear if only the zone is another.

        None where it is neither: then an old one is quoted.
        """
        earliest_ms = read_ms - RECENT_MS if absent_ms is None else absent_ms - self._skew_ms
        latest_ms = read_ms + self._skew_ms
        if earliest_ms <= said_ms <= latest_ms:
            return said_ms
        is_of_zone = absent_ms is not None and (latest_ms - said_ms) % ZONES_MS <= latest_ms - earliest_ms
        return read_ms if is_of_zone else None

    def _window(self, writer: Writer, now_ms: int) -> Window:
        window, notice = writer.window, self._known.get(writer.raw_job_id)
        if notice is None or window.end_ms is not None or window.start_ms is None or not notice.is_of(window.start_ms):
            return window
        end_ms = notice.taken_ms + TEAR_DOWN_MS
        outlived = writer.running_ms is not None and writer.running_ms > end_ms + self._skew_ms
        return window if outlived or now_ms - notice.taken_ms > RECENT_MS else replace(window, end_ms=end_ms)
