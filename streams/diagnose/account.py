"""One file's account of the run: what failed, and what happened that makes a line mean less.

Read once, front to back, in memory that does not grow with the file. A fault that training outlived is dropped; when a
run starts over in the same file, the earlier run's failure is only remembered; what comes after a normal end counts as
such.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC
from functools import partial

from schemas.facts import Evidence
from schemas.vocabulary import FaultClass, LineRole, Phase, Remedy
from streams.decide.roots import CERTAIN, ENDED_BY_SCHEDULER, FORERUNNERS, root_line
from streams.decide.state import Line
from streams.decide.weighing import Earlier
from streams.diagnose.answering import answered_ms
from streams.diagnose.attempts import Attempts
from streams.diagnose.course import READ_OF_A_PIECE, UNKNOWN, Course
from streams.diagnose.epochs import Epochs, Reached
from streams.diagnose.fronts import Fronts
from streams.diagnose.habits import Habits, tell_a_failure_only, tells_an_end
from streams.diagnose.hosts import Hosts, host_of_line
from streams.diagnose.peers import Peers
from streams.diagnose.reading import END_BYTES, Ends, Piece, last_lines
from streams.diagnose.saves import Saves
from streams.diagnose.skipping import NONE_IN_STEPS, Numbers, skipped_for_ever
from streams.diagnose.tracebacks import last_raised
from streams.diagnose.unknown_saves import last_save, step_before
from streams.diagnose.voices import Voices
from streams.sources.files import Lines
from streams.watch.early import Written
from streams.watch.masking import digest_of, kept_text
from streams.watch.matching.matcher import Fault, Found, Matcher
from streams.watch.matching.patterns import compile_pattern
from streams.watch.matching.progress import Checkpoint, Step
from streams.watch.matching.surroundings import tail_of
from streams.watch.skipping import is_skipped
from streams.watch.whose.neighbours import NEAR_BYTES, first_stamp, last_stamp
from streams.watch.whose.origin import (
    named_by_place,
    named_in_front,
    named_nodes,
    names_of,
    origin_among,
    word_in_front,
)
from streams.watch.whose.stamps import offset_ms, stamp_ms

MOST_OF_ORIGIN = 8
SKEW_MS, LATE_MS = 2_000, 1_500_000
"""A line may be printed late; by less than the one, clocks differ, too, and by more than the other, those of zones."""
STEP_INTERVAL_MS = 6_000
"""Of steps in a row one a second is read; of those without a time the first and the last."""
_CANCELLED = " CANCELLED AT "
_TASK_FAILURE = "DUE TO TASK FAILURE"
# A bar of tqdm, which is fresh before any time has passed; and the last line of an exception that nobody caught, or
# what the GPU's kernel says of it.
_BAR = re.compile(rb"\d%\|[^|\n]{0,400}\| *(?:(?P<fresh>0/\d+ \[00:00<)|\d+/\d+ \[)")
_RAISED = re.compile(
    r"\s*(?:\[rank\d+\]: *)?(?:[A-Za-z_][\w.]*)?(?:Error|Exception): |[^\n]{0,200}: block: \[\d+,\d+,\d+\], thread: \["
)
_RAISED_BY_ANY = compile_pattern(r"(?:[A-Za-z_][\w.]*)?(?:Error|Exception): ", at_start=True)
"""The same after what any launcher puts before it."""
_COMPLETED = re.compile(rb"\|COMPLETED\|0:0|JobState=COMPLETED|\bJob '[\w-]{1,80}' succeeded\b")
# What programs print only where training came to its end, and nowhere after a failure.
_NORMAL_END = re.compile(
    rb"\[after training is done\]|\{'train_runtime': |`Trainer\.fit` stopped: `max_"
    rb"|\[titan\] .{0,60} Training completed\b"
)
# What was learned, as it is found by all ranks together.
_VALIDATED = re.compile(rb"validation loss at iteration \d+ \||\{'eval_loss': '?\d")
# A program may save what it has because it fails.
_SAVED_FOR_A_FAILURE = re.compile(rb"(?i)emergenc|crash|exception|error|fail|interrupt|preempt|sig(?:term|nal)|exit")
_NEVER_UNDONE = {
    *ENDED_BY_SCHEDULER,
    *(FaultClass.NCCL_TIMEOUT, FaultClass.NODE_LOST, FaultClass.NUMERIC_NAN, FaultClass.STRAGGLER),
}
_DONE = re.compile(rb"(?i)\s*(?:all )?done[.!]?\s*")
MOST_LINES = 512
MOST_NODES = 4096
# Names of nodes are looked for in every line of this much of a file, and in every line of interest or of srun.
NODES_BYTES = 1 << 20
_OF_SRUN = re.compile(rb"srun: error: [^\n]{1,200}")
# Lines that may say which node an address or a rank means.
_PLACE = re.compile(
    rb"NCCL INFO .{0,160}(?:Using|OOB|nranks)|\d\.\d{1,3}\.\d{1,3}\.\d|\brank=?[ ]?\d+, node\b|global_rank="
    rb"|srun: error: \S{1,63}: tasks? \d|\bRank=\d+ Node="
)
MOST_PLACES, PLACE_BYTES = 4096, 400


@dataclass(frozen=True)
class Sighting:
    """A matched line, and what was known when it was printed."""

    line: Line
    finished: bool
    silent_ms: int | None
    step: int | None
    in_step: bool = False
    """It stands on the line of a step that did well."""
    survived: bool = False
    """The file has outlived the same words before, again and again."""
    went_on: bool = False
    """The program then saved what it had come to, or validated, as it does where nothing failed."""

    def shifted(self, ms: int) -> Sighting:
        """The same by another clock."""
        return replace(self, line=_shifted(self.line, ms))


@dataclass
class Account:
    """What one file says. `near_ms`: when the file was written, for stamps without a year."""

    name: str
    near_ms: int
    faults: list[Sighting] = field(default_factory=list)
    earlier: list[Earlier] = field(default_factory=list)
    failed_before: list[Line] = field(default_factory=list)
    """Why the runs failed that are told before this one."""
    outlived: int = 0
    """Faults after which training went on."""
    nodes: dict[str, str] = field(default_factory=dict)
    """The nodes that lines name, by their names with and without the domain."""
    places: list[str] = field(default_factory=list)
    """Lines that may say which node an address or a rank means."""
    frameworks: Counter[str] = field(default_factory=Counter)
    first_step: int | None = None
    last_step: int | None = None
    """Both counted over all epochs, where the lines say how many steps each has."""
    last_epoch: int | None = None
    last_checkpoint: int | None = None
    marked: str | None = None
    """The framework, by lines without a step."""
    saved_by_words: int | None = None
    """The last save of a program that no format knows."""
    advanced_ms: int = 0
    """When training last moved on; 0 if no line says when."""
    peers: Peers = field(default_factory=Peers)
    numbers: Numbers = field(default_factory=Numbers)
    epochs: Epochs = field(default_factory=Epochs)
    voices: Voices = field(default_factory=Voices)
    course: Course = field(default_factory=Course)
    saves: Saves = field(default_factory=Saves)
    hosts: Hosts = field(default_factory=Hosts)
    fronts: Fronts = field(default_factory=Fronts)
    habits: Habits = field(default_factory=Habits)
    ends: Ends = field(default_factory=Ends)
    finished: bool = False
    finished_ms: int = 0
    """When the program said so; 0 if no line says when."""
    offset_ms: int | None = None
    """How far ahead of UTC the zone is that lines name with their times; None where they name none."""
    _gaps_ms: deque[int] = field(default_factory=partial(deque, maxlen=2))
    _epoch_ms: int = 0
    _epoch_gaps_ms: deque[int] = field(default_factory=partial(deque, maxlen=2))
    _attempts: Attempts = field(default_factory=Attempts)
    _now_ms: int = 0
    _idle_since_ms: int | None = None
    """When the last step was printed, or the first stamped line after it."""
    _tail: bytes = b""
    _last: Piece | None = None
    """The last lines that were read."""
    _read: int = 0
    _kept: Counter[tuple[str, str | None, int | None]] = field(default_factory=Counter)
    _anew: bool = False
    """Whether another run began in this file since the last step."""
    _written: Written = field(default_factory=Written)
    _before: list[Sighting] = field(default_factory=list)
    """The failure of the run before the one that is told now."""

    def take(self, piece: Piece, matcher: Matcher) -> None:
        """Read on."""
        if self._read < NODES_BYTES:
            for line in piece.data.splitlines():
                named, leading = named_by_place(line), named_in_front(line)
                for node in named if leading is None else (*named, leading):
                    self._meet(node)
                self.hosts.hear(line, named, word := word_in_front(line))
                self.fronts.hear(word)
                self.peers.take(line)
                if _PLACE.search(line[:PLACE_BYTES]):
                    self._keep_place(line)
        else:
            for line in _OF_SRUN.findall(piece.data):
                self._name(line)
                self._keep_place(line)
        self.peers.compare(piece.data)
        self._read += len(piece.data)
        if self.last_step is None:
            self.ends.take(piece)
        lines = Lines(piece.data, piece.line_no)
        step_of_last_piece = self.last_step
        last_step: Found | None = None
        waited_at: int | None = None
        every = matcher.scan(piece.data, self._tail, STEP_INTERVAL_MS, len(piece.data) // READ_OF_A_PIECE)
        judged = 0
        for found in every:
            if found.fault is not None or found.phase is not None:
                self._reach(self.epochs.between(piece.data, judged, found.start))
                self._validated(piece.data, judged, found.start)
                judged = piece.data.find(b"\n", found.start) + 1 or len(piece.data)
            stamped = self._stamp(found.line)
            silent_ms = self._silence(found, stamped, piece.data)
            self._now_ms = max(self._now_ms, stamped or 0)
            place = partial(self._place, found, piece.offset + found.start, lines.before(found.start))
            self._note(found, stamped, silent_ms, place)
            self.saves.take(found, place)
            self.numbers.take(found, self._tail, piece.data)
            last_step = found if found.progress is not None else last_step
            waited_at = found.start if waited_at is None and _is_waiting(found) else waited_at
        self._reach(self.epochs.between(piece.data, judged, len(piece.data)))
        self._validated(piece.data, judged, len(piece.data))
        if self.numbers.healed(piece.data):
            self._outlive(lambda line: line.signature == NONE_IN_STEPS)
        self.course.take(piece, every, self._stamp)
        self.voices.listen(piece.data, self._stamp, waited_at)
        if last_step is not None:
            after = piece.data[last_step.start : last_step.start + NEAR_BYTES]
            self._idle_since_ms = self._stamp(last_step.line) or first_stamp(after, self._stamp)
        self._now_ms = max(self._now_ms, last_stamp(piece.data, self._stamp) or 0)
        named_ms = last_stamp(piece.data, offset_ms)
        self.offset_ms = self.offset_ms if named_ms is None else named_ms
        if not self.frameworks.keys() - {UNKNOWN}:
            self._by_words(piece.data, matcher, every, step_of_last_piece)
        self._last = last_lines(self._tail, piece)
        self._tail = tail_of(piece.data)
        if self.last_step is not None and self._idle_since_ms is None:
            self._idle_since_ms = self._now_ms or None

    def read_last_traceback(self, matcher: Matcher) -> None:
        """A run that ends with a traceback did not end well, whatever stands before its lines."""
        last, explained = self._last, any(one.line.signature not in FORERUNNERS for one in self.faults)
        raised = None if last is None or explained or self.finished else last_raised(last, matcher)
        if last is None or raised is None or raised.found.fault is None:
            return
        found, line_no = replace(raised.found, line=raised.line), last.line_no + last.data.count(b"\n", 0, raised.start)
        place = partial(self._place, found, last.offset + raised.start, line_no)
        self._failed(found, raised.found.fault, self._stamp(raised.line), None, place)

    def end(self) -> None:
        """There is no more: what was read last decides what the run was about, and how it ended."""
        for node in self.fronts.nodes:
            self._meet(node)
        skips, training = self.course.skips, self.course.training
        if training is not None:
            self.first_step, self.last_step = training.first, training.last
        if skips.for_ever and skips.first is not None:
            line = skipped_for_ever(replace(skips.first, file=self.name))
            self.faults.append(Sighting(line, False, None, self.last_step))
        # If the run that started over says nothing, the failure before it is what happened.
        if not self.faults and self._before and not self.finished:
            self.faults = self._before
            self.earlier, self.failed_before = self.earlier[:-1], self.failed_before[:-1]
        self._mark_habits()
        unfinished = self.saves.waited_for([one.line for one in self.faults])
        if unfinished is not None:
            self.faults.append(Sighting(unfinished, False, None, self.last_step))

    def shifted(self, ms: int) -> Account:
        """The same by another clock."""
        return replace(
            self,
            faults=[one.shifted(ms) for one in self.faults],
            failed_before=[_shifted(line, ms) for line in self.failed_before],
            advanced_ms=self.advanced_ms and self.advanced_ms + ms,
            finished_ms=self.finished_ms and self.finished_ms + ms,
            _now_ms=self._now_ms and self._now_ms + ms,
            _idle_since_ms=self._idle_since_ms and self._idle_since_ms + ms,
        )

    @property
    def cut(self) -> bool:
        """Whether there were more lines of interest than are kept."""
        return max(self._kept.values(), default=0) > MOST_OF_ORIGIN or self._kept.total() > MOST_LINES

    @property
    def now_ms(self) -> int:
        """The time of the last line that says one; 0 if none does."""
        return self._now_ms

    @property
    def usual_ms(self) -> int:
        """The time from one step to the next, as it was lately, or from one epoch where no steps are counted; 0 where
        it is not known. Of the last two the shorter one: the other may have held a requeue."""
        if self.last_step is None:
            return min(self._epoch_gaps_ms, default=0)
        return min(self._gaps_ms) if len(self._gaps_ms) == self._gaps_ms.maxlen else 0

    @property
    def answered_ms(self) -> int:
        """For how long nothing but answers to requests was printed at the end of a log without steps."""
        return answered_ms(self.ends.pieces, self._stamp)

    @property
    def idle_ms(self) -> int:
        """How long other lines were printed after the last step."""
        return 0 if self._idle_since_ms is None else self._now_ms - self._idle_since_ms

    @property
    def _has_not_begun(self) -> bool:
        """Whether no step, epoch or save was seen: who is done by then has prepared something."""
        return self.last_step is None and self.last_checkpoint is None and not self.epochs.begun

    def _by_words(self, data: bytes, matcher: Matcher, every: Sequence[Found], before: int | None) -> None:
        """What a program says of itself whose steps no format reads. `before`: the last step before this piece."""
        if self.marked is None:
            self.marked = matcher.marked(data[:END_BYTES])
        saved = last_save(data)
        if saved is None:
            return
        step = step_before(data, saved.start, every) if saved.step is None else saved.step
        self.saved_by_words = before if step is None else step

    def _stamp(self, line: bytes) -> int | None:
        return stamp_ms(line, zone=UTC, near_ms=self.near_ms)

    def _place(self, found: Found, offset: int, line_no: int) -> Evidence:
        text = kept_text(found.line, found.at)
        return Evidence(self.name, offset, line_no, None, self._now_ms, None, None, text, digest_of(text))

    def _silence(self, found: Found, stamped: int | None, data: bytes) -> int | None:
        """How long no step, or nothing at all, was printed before the scheduler ended the run."""
        ended = found.fault is not None and found.fault.signature.fault_class is FaultClass.SCHEDULER_TIMEOUT
        if not ended or stamped is None:
            return None
        before = self._tail + data[max(0, found.start - NEAR_BYTES) : found.start]
        last_ms = self.advanced_ms or last_stamp(before, self._stamp) or self._now_ms
        return stamped - last_ms if last_ms else None

    def _keep_place(self, line: bytes) -> None:
        if len(self.places) < MOST_PLACES:
            self.places.append(line[:PLACE_BYTES].decode("utf-8", "replace"))

    def _name(self, line: bytes) -> None:
        for node in named_nodes(line):
            self._meet(node)

    def _meet(self, node: str) -> None:
        if node not in self.nodes and len(self.nodes) < MOST_NODES:
            self.nodes |= names_of([node])

    def _note(self, found: Found, stamped: int | None, silent_ms: int | None, place: Callable[[], Evidence]) -> None:
        if found.progress is not None:
            finite = not _is_nan(found.fault) and not is_skipped(found.line)
            # A bar that an exception closes is printed once more, with what is printed next behind it.
            bar = _BAR.search(found.line)
            fresh = bar is not None and bar["fresh"] is not None and found.progress.step == 0
            closed = bar is not None and (not fresh or found.fault is not None)
            self._moved(found.progress, finite=finite, closed=closed)
        for saved in self._written.saves(found):
            step = self.last_step if saved.step is None else saved.step
            self.last_checkpoint = step if step is not None else self.last_checkpoint
            at_the_last = saved.step is not None and saved.step == self.last_step
            if at_the_last and not _SAVED_FOR_A_FAILURE.search(found.line):
                self._went_on()
        if found.loaded is not None:
            self._started_over(found.loaded)
        if found.fault is not None:
            self._failed(found, found.fault, stamped, silent_ms, place)
        if found.phase is Phase.FINISHING and not (self._has_not_begun and _DONE.fullmatch(found.line)):
            self.finished, self.finished_ms = True, self._now_ms
            self._drop(lambda one: one.in_step)
            if _NORMAL_END.search(found.line) and not self._has_ended:
                self._outlive(_is_undone)
            if _COMPLETED.search(found.line):
                self._completed()

    def _moved(self, step: Step, *, finite: bool, closed: bool) -> None:
        self.frameworks[step.framework] += 1
        if step.framework == UNKNOWN and len(self.frameworks) > 1:
            return
        if finite and self.faults and self._attempts.is_back(step):
            self._started_over(None)
        if finite and self._attempts.is_further(step):
            closed = closed and self._attempts.reached is None  # where no bar was seen before, it may not have moved
            unmoved = closed and step.step == 0
            self._go_on(lambda line: not (unmoved or _is_final(line) or (closed and _is_raised(line))))
            if self._attempts.moved(step, self._now_ms):
                self._before = []
            self.finished = False
            self._kept.clear()
            if self.advanced_ms and self._now_ms and self.last_step is not None:
                self._gaps_ms.append((self._now_ms - self.advanced_ms) // max(1, step.of_run - self.last_step))
            self.advanced_ms = self._now_ms
        if self.first_step is None or (self._anew and self.last_step is not None and step.of_run <= self.last_step):
            self.first_step = step.of_run
        self.last_step, self.last_epoch, self._anew = step.of_run, step.epoch, False

    def _reach(self, epochs: Sequence[Reached]) -> None:
        """If training went on, what was reported before did not end it, save what the program itself raised."""
        for reached in epochs:
            self._go_on(lambda line: not (_is_final(line) or _is_raised_by_any(line)))
            self._before, self.finished = [], False
            self._kept.clear()
            now_ms = self._stamp(reached.line)
            if now_ms is not None and self._epoch_ms:
                self._epoch_gaps_ms.append(now_ms - self._epoch_ms)
            self._epoch_ms = now_ms or 0

    def _validated(self, data: bytes, low: int, high: int) -> None:
        if self.faults and _VALIDATED.search(data, low, high):
            self._went_on()

    @property
    def _has_ended(self) -> bool:
        """Whether it was told that a process failed: what others print after that is no sign that all went well."""
        return any(tells_an_end(one.line) for one in self.faults)

    def _went_on(self) -> None:
        """The program did what it does where nothing failed: what came before is no reason by itself for its end."""
        if not self._has_ended:
            self.faults = [replace(one, went_on=one.went_on or _is_undone(one.line)) for one in self.faults]

    def _completed(self) -> None:
        """The scheduler says that all went well: what was met on the way was nothing, save broken hardware.

        A script that goes on after its step was ended for a task's failure completes, too.
        """
        if any(_TASK_FAILURE in one.line.evidence.text for one in self.faults):
            return
        self._outlive(lambda line: line.precedence < CERTAIN)

    def _go_on(self, over: Callable[[Line], bool]) -> None:
        """Training goes on: whatever it is that is over now, the run survives."""
        self.habits.outlived([one.line for one in self.faults if over(one.line)])
        self._outlive(over)

    def _outlive(self, over: Callable[[Line], bool]) -> None:
        """Drop the faults that did not end the run."""
        self._drop(lambda one: over(one.line))

    def _drop(self, over: Callable[[Sighting], bool]) -> None:
        lasting = [one for one in self.faults if not over(one)]
        self.outlived += len(self.faults) - len(lasting)
        self.faults = lasting

    def _started_over(self, loaded: Checkpoint | None) -> None:
        self._anew = True
        self._attempts.begin(loaded)
        if not self.faults:
            return
        self._mark_habits()
        root = root_line([one.line for one in telling(self.faults) or self.faults])
        self.earlier.append(Earlier(root.signature, self.last_step))
        self.failed_before.append(root)
        self._before, self.faults, self.finished = self.faults, [], False
        self._kept.clear()

    def _mark_habits(self) -> None:
        survived = self.habits.survived([one.line for one in self.faults])
        self.faults = [replace(one, survived=often) for one, often in zip(self.faults, survived, strict=True)]

    def _failed(
        self,
        found: Found,
        fault: Fault,
        stamped: int | None,
        silent_ms: int | None,
        place: Callable[[], Evidence],
    ) -> None:
        self._name(found.line)
        self.fronts.meet(word_in_front(found.line))
        origin = origin_among(found.line, self.nodes)
        node = fault.node or origin.node or host_of_line(found.line)
        if node is not None:
            self._meet(node)
        key = (fault.signature.id, node, origin.rank)
        self._kept[key] += 1
        if self._kept[key] > MOST_OF_ORIGIN or len(self.faults) >= MOST_LINES:
            return
        late = stamped is not None and SKEW_MS <= self._now_ms - stamped < LATE_MS
        evidence = replace(place(), line_ms=stamped if late else None, node=node, rank=origin.rank)
        signature = fault.signature
        line = Line(
            signature.id,
            signature.fault_class,
            signature.scope,
            signature.remedy,
            signature.role,
            signature.precedence,
            fault.detail,
            fault.peer,
            fault.blamed_rank,
            fault.sequence,
            evidence,
        )
        in_step = found.progress is not None and not _is_nan(fault) and not is_skipped(found.line)
        self.faults.append(Sighting(line, self.finished, silent_ms, self.last_step, in_step))


def _shifted(line: Line, ms: int) -> Line:
    seen = line.evidence
    line_ms = None if seen.line_ms is None else seen.line_ms + ms
    return replace(line, evidence=replace(seen, line_ms=line_ms, read_ms=seen.read_ms and seen.read_ms + ms))


def telling(sightings: Sequence[Sighting]) -> list[Sighting]:
    """Those that may explain the end.

    What the run survives does only where a program is said to have failed, and nothing else says of what; what it went
    on after, only where more is told than that the scheduler ended it: others may wait for whoever failed.
    """
    others = [one for one in sightings if not one.survived]
    some = list(sightings) if tell_a_failure_only([one.line for one in others]) else others
    rest = [one for one in some if not one.went_on]
    return rest if all(one.line.fault_class in ENDED_BY_SCHEDULER for one in rest) else some


def _is_final(line: Line) -> bool:
    """Whether steps after it take nothing back: the scheduler ended the run, or a device makes each step slow."""
    slow = line.fault_class is FaultClass.STRAGGLER and line.remedy is Remedy.RESTART_EXCLUDING_NODE
    return slow or line.fault_class is FaultClass.SCHEDULER_TIMEOUT or _CANCELLED in line.evidence.text


def _is_undone(line: Line) -> bool:
    """Whether a program that goes on as it should shows that this was nothing."""
    return line.precedence < CERTAIN and line.fault_class not in _NEVER_UNDONE


def _is_raised(line: Line) -> bool:
    return line.role is LineRole.CAUSE and _RAISED.match(line.evidence.text) is not None


def _is_raised_by_any(line: Line) -> bool:
    return line.role is LineRole.CAUSE and _RAISED_BY_ANY.search(line.evidence.text.encode()) is not None


def _is_waiting(found: Found) -> bool:
    return found.fault is not None and found.fault.signature.fault_class is FaultClass.NCCL_TIMEOUT


def _is_nan(fault: Fault | None) -> bool:
    return fault is not None and fault.signature.fault_class is FaultClass.NUMERIC_NAN
