"""One followed path: blocks of lines in, facts out, and how far that has come.

Nothing here knows Kafka or a clock. A source gives facts in the order of the lines. A line whose owner is not known
yet holds back everything after it, until the news comes or the bound is reached and the line is parked; so `position`
never passes a line whose facts were not given.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from schemas.bookkeeping import RecordParked, SourceRead
from streams.sources.files import Block, FileFollower, FileState, Place
from streams.watch.events import Line, LineFact, parked_line, position_in, source_of
from streams.watch.matching.candidates import Own
from streams.watch.matching.surroundings import tail_of
from streams.watch.telling import Reading, Teller
from streams.watch.whose.claims import Claim
from streams.watch.whose.neighbours import NEAR_BYTES, Carried, Neighbours, Stamp, first_stamp
from streams.watch.whose.notices import Notices
from streams.watch.whose.ownership import Owner, Unowned, Verdict, Wait, Window, Written, owner_of
from streams.watch.whose.stamps import names_zone, repeat_ms, stamp_ms

# A file that begins anew may be a new attempt's, which the scheduler's observer tells within this time.
SETTLE_MS = 3_000
# The last line, without an end, is taken once its writers are over and the file was quiet for this long.
QUIET_MS = 2_000
# Blocks of one source in one turn: a large backlog must not keep the others waiting.
BLOCKS_A_TURN = 16
# So many where jobs bring patterns of their own, one of which may take a second for each.
OWN_BLOCKS_A_TURN = 1
# A file in which nothing was new for so long is looked at only so often.
IDLE_MS, IDLE_LOOK_MS = 60_000, 500
# Lines of interest after which a turn ends with its block: a block of nothing else takes seconds.
FOUND_A_TURN = 2_000
# Parked lines in a row, after which the next ones would say nothing new.
MOST_PARKED = 100


@dataclass(frozen=True)
class _Pending:
    """A line to settle: the `number`th of interest in its block."""

    line: Line
    absent_ms: int | None
    number: int
    neighbours: Neighbours


class Source:
    """Follows one path. `turn` gives events; `position` is what may be written once they are delivered."""

    def __init__(self, path: str, reading: Reading, position: SourceRead | None = None) -> None:
        self.path = path
        self._reading = reading
        place = None if position is None else _place(position)
        self._follower = FileFollower(path, place)
        self._done = (place or Place(), Carried(None if position is None else position.line_ms))
        self._block_end = self._done
        self._pending: deque[_Pending] = deque()
        self._epoch_since_ms: int | None = None
        self._in_time = False
        """No line that comes now can be older than the known attempts: stamps have reached their time, or are none."""
        self._notices = Notices(reading.skew_ms)
        self._looked_back = False
        self._claim: Claim | None = None
        self._next_look_ms = 0
        self._tail = b""
        self._teller = Teller(reading)
        self.more = False
        """Whether there is more to read at once."""
        self.waiting = ""
        """Why the source is held back; empty while it is not."""
        self.bytes_read = 0
        self._parked_in_a_row = 0
        self.not_parked = 0
        """Lines of a long run that belong to nobody: the first ones of it are parked, the rest is only counted."""

    @property
    def state(self) -> FileState:
        return self._follower.state

    @property
    def problem(self) -> str:
        return self._follower.problem

    @property
    def read_to(self) -> tuple[int, int]:
        """Epoch and offset before which all facts were given."""
        return self._done[0].epoch, self._done[0].offset

    def close(self) -> None:
        """Let go of the file."""
        self._follower.close()

    def grew_ms(self, now_ms: int) -> int | None:
        """When the file was last seen to change; None if it never was."""
        return now_ms - self._follower.quiet_ms(now_ms) if self.state is FileState.FOLLOWED else None

    def recent(self, count: int) -> bytes:
        """The last bytes that were read, at most `count`."""
        return self._follower.behind(count)

    def finished(self, now_ms: int) -> bool:
        """Whether nothing is left to settle, and the file is absent or has not changed for a while."""
        quiet = self.state is not FileState.FOLLOWED or self._follower.quiet_ms(now_ms) >= QUIET_MS
        return not self._pending and not self.more and quiet

    def position(self, now_ms: int) -> SourceRead:
        """How far all facts were given."""
        place, carried = self._done
        return position_in(source_of(self.path), place, carried.ms, now_ms)

    def turn(self, now_ms: int, claim: Claim) -> Iterator[LineFact | RecordParked]:
        """Read what is new and give its facts. Give all of it to Kafka before `position` is asked for."""
        yield from self._settle(now_ms, claim)
        self.more = False
        if self._pending or not self._due(now_ms, claim):
            return
        over, found = claim.over and self._follower.quiet_ms(now_ms) >= QUIET_MS, 0
        most = OWN_BLOCKS_A_TURN if self._own_searches(claim) else BLOCKS_A_TURN
        for count, block in enumerate(self._follower.look(now_ms, over=over), start=1):
            found += self._take(block, now_ms, claim)
            yield from self._settle(now_ms, claim)
            if self._pending or count >= most or found >= FOUND_A_TURN:
                self.more = not self._pending
                return
        if self._follower.idle_ms(now_ms) >= IDLE_MS:
            self._next_look_ms = now_ms + IDLE_LOOK_MS

    def _due(self, now_ms: int, claim: Claim) -> bool:
        """Whether to look now: another claim may mean another attempt, which begins at once."""
        if claim is not self._claim and claim != self._claim:
            self._next_look_ms = 0
        self._claim = claim
        return now_ms >= self._next_look_ms

    def _take(self, block: Block, now_ms: int, claim: Claim) -> int:
        """Find the block's lines of interest; return how many there are."""
        self.bytes_read += len(block.data)
        place, carried = self._block_end
        if block.start.epoch != place.epoch:
            carried, self._epoch_since_ms, self._in_time = Carried(None), now_ms, False

        stamp = partial(stamp_ms, zone=self._reading.zone, near_ms=block.read_ms)
        self._look_back(block, claim, stamp)

        lines = []
        interval_ms = min((writer.kept_every_ms for writer in claim.writers), default=0)
        before, self._tail = (self._tail if block.start.epoch == place.epoch else b""), tail_of(block.data)
        for found in self._reading.matcher.scan(block.data, before, interval_ms, own=self._own_searches(claim)):
            if found.fault is not None:  # every notice is one, too: the whole block need not be searched again
                self._notices.read(found.line, claim, stamp, block.after_ms, block.read_ms)
            offset, line_no = block.start.offset + found.start, block.lines.before(found.start) + 1
            lines.append(Line(self.path, block.start.epoch, offset, line_no, stamp(found.line), block.read_ms, found))
        self._block_end = (block.end, carried.after(block.data, stamp, block.after_ms))
        if not lines:
            return 0
        starts, own = [line.found.start for line in lines], [line.line_ms for line in lines]
        neighbours = Neighbours(block.data, starts, own, carried.ms, stamp)
        self._pending.extend(_Pending(line, block.after_ms, number, neighbours) for number, line in enumerate(lines))
        return len(lines)

    def _own_searches(self, claim: Claim) -> Sequence[Own]:
        """What finds lines of the own formats of those who write here."""
        formats = self._reading.own
        return formats.searches(writer.attempt for writer in claim.writers) if formats else ()

    def _look_back(self, block: Block, claim: Claim, stamp: Stamp) -> None:
        """Neither notices nor saves that wait for the program to go on are written down: after a restart those just
        before the place are read again. A save is nobody's where several attempts could have written it."""
        if self._looked_back:
            return
        self._looked_back = True
        earlier = self._follower.before(block.start.offset, NEAR_BYTES)
        self._notices.read(earlier, claim, stamp, None, block.read_ms)
        if len(claim.writers) == 1:
            whole = earlier if len(earlier) == block.start.offset else earlier.partition(b"\n")[2]
            self._teller.recall(self._reading.matcher.scan(whole), claim.writers[0].attempt)

    def _settle(self, now_ms: int, claim: Claim) -> Iterator[LineFact | RecordParked]:
        """Give the facts of pending lines, up to the first whose owner is not known yet."""
        windows = self._notices.windows(claim, now_ms)
        while self._pending:
            pending = self._pending[0]
            verdict = self._verdict(pending, claim, windows, now_ms)
            held = now_ms - pending.line.read_ms < self._reading.hold_ms
            if held and isinstance(verdict, Wait) and not isinstance(verdict, Unowned):
                self.waiting = verdict.reason
                return
            self._pending.popleft()
            if isinstance(verdict, Owner):
                self._parked_in_a_row = 0
                yield from self._teller.facts(pending.line, claim.writer(verdict.attempt))
            else:
                self._parked_in_a_row += 1
                if self._parked_in_a_row <= MOST_PARKED:
                    yield parked_line(pending.line, verdict.reason, now_ms)
                else:
                    self.not_parked += 1
        self.waiting = ""
        self._done = self._block_end

    def _verdict(self, pending: _Pending, claim: Claim, windows: Sequence[Window], now_ms: int) -> Verdict:
        """Whose the line is; of a time that clocks showed twice both moments must say the same."""
        written, reading = self._written(pending, claim, windows, now_ms), self._reading
        own_ms = written.own_ms
        again_ms = 0 if own_ms is None else repeat_ms(own_ms, reading.zone)
        if own_ms is None or again_ms == 0 or names_zone(pending.line.found.line):
            return owner_of(written, windows, shared=claim.shared, skew_ms=reading.skew_ms)
        low, high = (written.absent_ms or 0) - reading.skew_ms, written.read_ms + reading.skew_ms
        moments = [moment for moment in (own_ms, own_ms + again_ms) if low <= moment <= high] or [own_ms]
        verdicts = {
            owner_of(replace(written, own_ms=moment), windows, shared=claim.shared, skew_ms=reading.skew_ms)
            for moment in moments
        }
        return verdicts.pop() if len(verdicts) == 1 else Wait("clocks showed its time twice, as summer time ended")

    def _written(self, pending: _Pending, claim: Claim, windows: Sequence[Window], now_ms: int) -> Written:
        line, since_ms = pending.line, self._epoch_since_ms
        after_ms = before_ms = None
        alone = len(windows) == 1 and windows[0].end_ms is None
        if line.line_ms is not None:
            self._in_time = line.line_ms >= claim.start_ms
        elif not alone or not (self._in_time or (pending.absent_ms or 0) >= claim.start_ms):
            around = pending.neighbours
            after_ms, before_ms = around.after_ms[pending.number], around.before_ms[pending.number]
            self._in_time = around.has_none or (after_ms is not None and after_ms >= claim.start_ms)
            if before_ms is None and not (alone and self._in_time):
                before_ms = first_stamp(b"\n" + self._follower.peek(NEAR_BYTES), around.stamp)
        return Written(
            own_ms=line.line_ms,
            after_ms=after_ms,
            before_ms=before_ms,
            absent_ms=pending.absent_ms,
            read_ms=line.read_ms,
            new_epoch=since_ms is not None and now_ms - since_ms < SETTLE_MS,
        )


def _place(position: SourceRead) -> Place:
    return Place(position.identity, position.epoch, position.offset, position.line_no)
