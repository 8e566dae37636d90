"""One log source beside files: batches of labelled records in, facts out, and how far that has come.

Lines of a job whose owner is not known yet hold back the later lines of that job and the source's position, never
those of other jobs. The bounds are a time, after which a line is parked, and a number, at which nothing more is read.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from schemas.bookkeeping import RecordParked, SourceRead
from schemas.identity import AttemptId
from streams.sources.feed import Batches
from streams.sources.files import Place
from streams.sources.lines import Batch, Cursor, Labels, SourceLine, SourceState
from streams.watch.events import LineFact, parked_line, position_in
from streams.watch.guessing import LOOKED_AT
from streams.watch.records import Records, Said
from streams.watch.telling import Reading, Teller
from streams.watch.whose.claims import Writer
from streams.watch.whose.labelled import Directory, Mislabelled, Stranger
from streams.watch.whose.origin import Origin
from streams.watch.whose.ownership import Unowned, Wait, written_at

BATCHES_A_TURN = 4
MOST_PENDING, MOST_PENDING_BYTES = 20_000, 64 << 20
MOST_PARKED = 100
"""Parked lines of a job in a row, after which the next ones would say nothing new; of an unknown job the first."""
LABELLESS_MS = 600_000
"""For so long a record without labels says that the collector does not set them."""
STRANGER_MS = 600_000
"""A job id that stayed unknown is not waited for again for this long."""
MOST_STRANGERS = 10_000


@dataclass(frozen=True)
class Seen:
    """What came of one attempt: when its newest record was written, and how much there was so far."""

    at_ms: int
    size: int


class StoreReader:
    """Follows one source. `turn` gives events; `positions` is what may be written once they are delivered."""

    def __init__(self, feed: Batches, cluster: str, reading: Reading) -> None:
        self.name = feed.name
        self.cluster = cluster
        self.state = SourceState.FOLLOWED
        self.problem = ""
        self.more = False
        """The last turn took lines: there may be more at once."""
        self.records_read = self.not_parked = self.unlabelled = 0
        self.seen: dict[AttemptId, Seen] = {}
        """The attempts whose records came."""
        self.mislabelled: dict[AttemptId, str] = {}
        """The attempts whose job's records fit none of them, and why; until one does."""
        self.heard_ms = 0
        """The time of the newest record, of whatever job."""
        self.took_ms: int | None = None
        """When records came last; None before the first."""
        self.dead: dict[AttemptId, str] = {}
        """The attempts that were asked about and of which it tells nothing, for all fell silent together; and why."""
        self.wanted: frozenset[AttemptId] = frozenset()
        """The attempts whose last lines are kept, since nobody knows what they count."""
        self.recent: dict[AttemptId, bytes] = {}
        """The last lines of the attempts that are wanted."""
        self._labelless_ms: int | None = None
        self._feed = feed
        self._reading = reading
        self._records = Records(reading)
        self._teller = Teller(reading)
        self._pending: dict[str, deque[Said]] = {}
        self._waiting = self._waiting_bytes = 0
        self._cursors: dict[str, Cursor] = {}
        self._parked: Counter[str] = Counter()
        self._strangers: OrderedDict[str, int] = OrderedDict()

    @property
    def waiting(self) -> int:
        """Lines that wait for news of their job."""
        return self._waiting

    def labelless(self, now_ms: int) -> bool:
        """Whether records come, or came moments ago, that name neither a job nor a file."""
        return self._labelless_ms is not None and now_ms - self._labelless_ms < LABELLESS_MS

    def close(self) -> None:
        """Stop reading."""
        self._feed.close()

    def forget(self, kept: set[AttemptId]) -> None:
        """Forget all attempts but these."""
        self._teller.forget(kept)
        self.seen = {attempt: seen for attempt, seen in self.seen.items() if attempt in kept}
        self.mislabelled = {attempt: why for attempt, why in self.mislabelled.items() if attempt in kept}
        self.dead = {attempt: why for attempt, why in self.dead.items() if attempt in kept}

    def want(self, attempts: frozenset[AttemptId]) -> None:
        """Keep the last lines of these attempts, and of no others."""
        self.wanted = attempts
        self.recent = {attempt: text for attempt, text in self.recent.items() if attempt in attempts}

    def turn(
        self, now_ms: Callable[[], int], directory: Directory, is_followed: Callable[[str], bool]
    ) -> Iterator[LineFact | RecordParked]:
        """Take what has come and give its facts. Give all of it to Kafka before `positions` is asked for.

        Lines of a file that watch follows itself are not told a second time.
        """
        self.more = False
        for job in list(self._pending):
            yield from self._settle(job, now_ms(), directory)
        for _ in range(BATCHES_A_TURN):
            if self._waiting >= MOST_PENDING or self._waiting_bytes >= MOST_PENDING_BYTES:
                return
            batch = self._feed.take()
            if batch is None:
                return
            self._take(batch, now_ms(), directory, is_followed)
            for job in list(self._pending):
                yield from self._settle(job, now_ms(), directory)

    def positions(self, now_ms: int) -> Iterator[SourceRead]:
        """How far all facts were given: not beyond a line that waits."""
        held: dict[str, int] = {}
        for lines in self._pending.values():
            for one in lines:
                held[one.record.cursor] = min(held.get(one.record.cursor, one.record.mark), one.record.mark)
        for source, cursor in self._cursors.items():
            yield position_at(cursor, min(cursor.offset, held.get(source, cursor.offset)), now_ms)

    def _take(self, batch: Batch, now_ms: int, directory: Directory, is_followed: Callable[[str], bool]) -> None:
        self.state, self.problem = batch.state, batch.problem
        self.more = self.more or bool(batch.lines)
        self._cursors |= {cursor.source: cursor for cursor in batch.cursors}
        self.records_read += len(batch.lines)
        if batch.lines:
            self.heard_ms = max(self.heard_ms, *(min(line.at_ms, now_ms) for line in batch.lines))
            self.took_ms = now_ms
            self.dead.clear()
        self._look_at_labels(batch.lines, now_ms, directory)
        for said in self._said(batch, now_ms, directory):
            if said.record.labels.filename is not None and is_followed(said.record.labels.filename):
                continue
            self._pending.setdefault(_job(said.record.labels), deque()).append(said)
            self._waiting += 1
            self._waiting_bytes += len(said.line.found.line)

    def _said(self, batch: Batch, now_ms: int, directory: Directory) -> list[Said]:
        own = self._reading.own
        if not own:
            return self._records.said(batch, now_ms)
        return self._records.said(batch, now_ms, lambda labels: own.searches(directory.attempts(labels)))

    def _look_at_labels(self, records: Sequence[SourceLine], now_ms: int, directory: Directory) -> None:
        """Note whose output grew, and labels that fit nothing, also of lines that say nothing else."""
        newest = {record.labels: record for record in records}
        sizes = Counter[Labels]()
        for record in records:
            sizes[record.labels] += len(record.text) + 1
        for labels, record in newest.items():
            whose = directory.whose(labels, written_at(record.at_ms, now_ms), self._reading.skew_ms)
            if isinstance(whose, Writer):
                known = self.seen.get(whose.attempt, Seen(0, 0))
                self.seen[whose.attempt] = Seen(max(known.at_ms, record.at_ms), known.size + sizes[labels])
                self.mislabelled.pop(whose.attempt, None)
                if whose.attempt in self.wanted:
                    text = b"".join(one.text + b"\n" for one in records if one.labels == labels)
                    self.recent[whose.attempt] = (self.recent.get(whose.attempt, b"") + text)[-LOOKED_AT:]
            elif isinstance(whose, Mislabelled | Stranger) and whose.writers:
                for writer in whose.writers:
                    if writer.attempt not in self.seen:
                        self.mislabelled[writer.attempt] = whose.reason
            elif labels.job_id is None and labels.filename is None:
                self.unlabelled += 1
                self._labelless_ms = now_ms

    def _settle(self, job: str, now_ms: int, directory: Directory) -> Iterator[LineFact | RecordParked]:
        """Give the facts of a job's lines, up to the first whose owner is not known yet."""
        lines = self._pending[job]
        while lines:
            said = lines[0]
            line, labels = said.line, said.record.labels
            written = written_at(said.record.at_ms, now_ms, said.written_ms)
            whose = directory.whose(labels, written, self._reading.skew_ms)
            if isinstance(whose, Wait) and self._may_wait(job, whose, line.read_ms, now_ms):
                return
            lines.popleft()
            self._waiting -= 1
            self._waiting_bytes -= len(line.found.line)
            if isinstance(whose, Writer):
                self._parked.pop(job, None)
                yield from self._teller.facts(line, whose, Origin(labels.node, labels.rank))
            elif isinstance(whose, Wait):
                yield from self._park(job, said, whose, now_ms)
        del self._pending[job]

    def _may_wait(self, job: str, verdict: Wait, read_ms: int, now_ms: int) -> bool:
        if isinstance(verdict, Unowned):
            return False
        known_ms = self._strangers.get(job) if isinstance(verdict, Stranger) else None
        if known_ms is not None and now_ms - known_ms < STRANGER_MS:
            return False
        return now_ms - read_ms < self._reading.hold_ms

    def _park(self, job: str, said: Said, verdict: Wait, now_ms: int) -> Iterator[RecordParked]:
        stranger = isinstance(verdict, Stranger)
        if stranger and now_ms - self._strangers.get(job, -STRANGER_MS) >= STRANGER_MS:
            self._strangers[job] = now_ms
            self._strangers.move_to_end(job)
            if len(self._strangers) > MOST_STRANGERS:
                self._parked.pop(self._strangers.popitem(last=False)[0], None)
        self._parked[job] += 1
        if self._parked[job] <= (1 if stranger else MOST_PARKED):
            yield parked_line(said.line, f"{verdict.reason} ({self.name})", now_ms)
        else:
            self.not_parked += 1


def position_at(cursor: Cursor, offset: int, now_ms: int) -> SourceRead:
    """A cursor as what is written down, at an offset that it has passed."""
    return position_in(cursor.source, Place(cursor.identity, cursor.epoch, offset), None, now_ms)


def _job(labels: Labels) -> str:
    """What lines wait for together: those of a job keep their order."""
    return labels.job_id or labels.filename or ""
