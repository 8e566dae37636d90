"""What a line whose owner is known is told as: its facts, throttled, with its origin and its step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import tzinfo

import structlog

from schemas.identity import AttemptId
from streams.watch.early import Written
from streams.watch.events import Line, LineFact, fault_fact, loaded_fact, phase_fact, progress_fact, saved_fact
from streams.watch.matching.matcher import Found, Matcher
from streams.watch.matching.progress import Checkpoint, Step
from streams.watch.own import OwnFormat, OwnFormats
from streams.watch.skipping import Skips, fault_of
from streams.watch.throttle import Throttle
from streams.watch.whose.claims import Writer
from streams.watch.whose.origin import Origin, names_of, origin_of

log = structlog.get_logger(__name__)

NOT_SAID = Origin(None, None)


@dataclass(frozen=True)
class Reading:
    """What is the same for all sources."""

    matcher: Matcher
    throttle: Throttle
    zone: tzinfo | None
    skew_ms: int
    hold_ms: int
    own: OwnFormats = field(default_factory=OwnFormats)


class Teller:
    """Tells the lines of one source. It remembers the last step of each attempt, and how many in a row were skipped."""

    def __init__(self, reading: Reading) -> None:
        self._throttle = reading.throttle
        self._own = reading.own
        self._steps: dict[AttemptId, int] = {}
        self._skips: dict[AttemptId, Skips[None]] = {}
        self._written: dict[AttemptId, Written] = {}

    def facts(self, line: Line, writer: Writer, said: Origin = NOT_SAID) -> Iterator[LineFact]:
        """The facts of one line. `said`: who printed it by its labels, where the line itself does not say."""
        attempt = writer.attempt
        found = _as_own(line.found, self._own.of(attempt)) if self._own else line.found
        at_ms = line.read_ms if line.line_ms is None else line.line_ms
        if found.fault is not None:
            origin, signature = _origin(line, writer, said), found.fault.signature.id
            if self._throttle.keeps_fault(attempt, signature, origin.node, origin.rank, at_ms, line.read_ms):
                yield fault_fact(line, attempt, found.fault, origin)
        if found.progress is not None:
            self._steps[attempt] = number = found.progress.of_run
            if self._learns_no_more(line, attempt, found.progress):
                yield fault_fact(line, attempt, fault_of(found.progress.at), _origin(line, writer, said))
            if self._throttle.keeps_progress(attempt, number, at_ms, line.read_ms, writer.kept_every_ms):
                yield progress_fact(line, attempt, found.progress)
        for saved in self._written.setdefault(attempt, Written()).saves(found):
            if (step := self._step_of(saved, line, attempt)) is not None:
                yield saved_fact(line, attempt, saved, step)
        if found.loaded is not None and (step := self._step_of(found.loaded, line, attempt)) is not None:
            yield loaded_fact(line, attempt, found.loaded, step)
        if found.phase is not None and self._throttle.keeps_phase(attempt, found.phase, at_ms, line.read_ms):
            yield phase_fact(line, attempt, found.phase)

    def recall(self, earlier: Iterable[Found], attempt: AttemptId) -> None:
        """Lines that were told before a restart: a save among them may be one only once the program goes on."""
        written = self._written.setdefault(attempt, Written())
        for found in earlier:
            for _told in written.saves(found):
                pass

    def forget(self, kept: set[AttemptId]) -> None:
        """Forget all attempts but these."""
        self._steps = {attempt: step for attempt, step in self._steps.items() if attempt in kept}
        self._skips = {attempt: skips for attempt, skips in self._skips.items() if attempt in kept}
        self._written = {attempt: written for attempt, written in self._written.items() if attempt in kept}

    def _learns_no_more(self, line: Line, attempt: AttemptId, step: Step) -> bool:
        """Whether with this line it is to be told that every step is skipped; once for each row of such steps.

        Only of formats with a loss: by that the decider sees that a run learns again. After a restart of watch the row
        is counted anew, so that it may be told once more, of a later line.
        """
        if step.form.loss is None or line.found.fault is not None:
            return False
        skips = self._skips.setdefault(attempt, Skips())
        skips.stepped(step.of_run, line.found.line, lambda: None)
        tell = skips.for_ever and not skips.told
        skips.told = skips.told or tell
        return tell

    def _step_of(self, checkpoint: Checkpoint, line: Line, attempt: AttemptId) -> int | None:
        """Some frameworks say that a save is complete and not of which step: then it is the last one printed."""
        step = self._steps.get(attempt) if checkpoint.step is None else checkpoint.step
        if step is None:
            log.warning("checkpoint of unknown step", path=line.path, attempt=attempt.key, next="not recorded")
        return step


def _as_own(found: Found, own: OwnFormat | None) -> Found:
    """What the line says to whom it belongs: his own format comes first."""
    if own is None:
        return found
    step, saved = own.step(found.line), own.checkpoint(found.line)
    return replace(found, progress=step or found.progress, saved=saved or found.saved)


def _origin(line: Line, writer: Writer, said: Origin) -> Origin:
    """Who printed the line: by what its fault says, by its prefix, else by its labels. Only allocated nodes count."""
    origin = origin_of(line.found.line, writer.nodes)
    fault = line.found.fault
    if fault is not None and fault.node in writer.nodes:
        origin = replace(origin, node=fault.node)
    if origin.node is None and said.node is not None:
        names = names_of(writer.nodes)
        origin = replace(origin, node=names.get(said.node) or names.get(said.node.partition(".")[0]))
    return origin if origin.rank is not None else replace(origin, rank=said.rank)
