"""Turns what a line says, and whose it is, into facts. The same line always gives the same events."""

from __future__ import annotations

from dataclasses import dataclass

from schemas.bookkeeping import RecordParked, SourceRead
from schemas.facts import (
    CheckpointLoaded,
    CheckpointSaved,
    Evidence,
    PhaseEntered,
    ProgressObserved,
    SignatureMatched,
)
from schemas.identity import AttemptId, Position, derived_id
from schemas.vocabulary import Phase
from streams.sources.files import Place
from streams.watch.masking import digest_of, kept_text
from streams.watch.matching.matcher import Fault, Found
from streams.watch.matching.progress import Checkpoint, Step
from streams.watch.whose.origin import Origin

LineFact = SignatureMatched | ProgressObserved | CheckpointSaved | CheckpointLoaded | PhaseEntered

# A line may give one fact of each kind; the ordinal keeps their positions apart.
_FAULT, _PROGRESS, _SAVED, _LOADED, _PHASE = range(5)
_KINDS = 5


def source_of(path: str) -> str:
    """The source's name in positions."""
    return f"file:{path}"


def position_in(source: str, place: Place, line_ms: int | None, now_ms: int) -> SourceRead:
    """How far a source was read, as it is written down; `line_ms` is the time that its lines had reached, if known."""
    return SourceRead(
        event_id=derived_id("position", source, place.epoch, place.offset),
        cause="",
        source=source,
        identity=place.identity,
        epoch=place.epoch,
        offset=place.offset,
        line_no=place.line_no,
        line_ms=line_ms,
        read_ms=now_ms,
    )


@dataclass(frozen=True)
class Line:
    """A line that says something, and where and when it was read.

    `source` is empty for the file `path` itself. `index` tells apart lines at one offset. `identity`: what names the
    line in a store, whose offsets are times.
    """

    path: str
    epoch: int
    offset: int
    line_no: int
    line_ms: int | None
    read_ms: int
    found: Found
    source: str = ""
    index: int = 0
    identity: str = ""

    @property
    def source_name(self) -> str:
        """The source in positions."""
        return self.source or source_of(self.path)

    def position(self, ordinal: int) -> Position:
        return Position(self.source_name, self.epoch, self.offset, self.index * _KINDS + ordinal)

    def event_id(self, attempt: AttemptId, ordinal: int) -> str:
        if self.identity:
            return derived_id("watch", attempt.key, self.source_name, self.epoch, self.identity, ordinal)
        return derived_id("watch", attempt.key, self.source_name, self.epoch, self.offset, ordinal)


def fault_fact(line: Line, attempt: AttemptId, fault: Fault, origin: Origin) -> SignatureMatched:
    """A line of a known fault."""
    text = kept_text(line.found.line, line.found.at)
    return SignatureMatched(
        event_id=line.event_id(attempt, _FAULT),
        cause="",
        attempt=attempt,
        position=line.position(_FAULT),
        signature=fault.signature.id,
        fault_class=fault.signature.fault_class,
        scope=fault.signature.scope,
        remedy=fault.signature.remedy,
        role=fault.signature.role,
        precedence=fault.signature.precedence,
        detail=fault.detail,
        peer=fault.peer,
        blamed_rank=fault.blamed_rank,
        sequence=fault.sequence,
        evidence=Evidence(
            file=line.path,
            offset=line.offset,
            line_no=line.line_no,
            line_ms=line.line_ms,
            read_ms=line.read_ms,
            node=origin.node,
            rank=origin.rank,
            text=text,
            digest=digest_of(text),
        ),
    )


def progress_fact(line: Line, attempt: AttemptId, step: Step) -> ProgressObserved:
    """The training loop moved."""
    return ProgressObserved(
        event_id=line.event_id(attempt, _PROGRESS),
        cause="",
        attempt=attempt,
        position=line.position(_PROGRESS),
        framework=step.framework,
        step=step.of_run,
        total_steps=step.total_of_run,
        seconds_per_step=step.seconds_per_step(line.found.line),
        loss=step.loss(line.found.line),
        line_ms=line.line_ms,
        read_ms=line.read_ms,
    )


def saved_fact(line: Line, attempt: AttemptId, saved: Checkpoint, step: int) -> CheckpointSaved:
    """A save is complete; `step` is the line's, or the last that the attempt printed."""
    return CheckpointSaved(
        event_id=line.event_id(attempt, _SAVED),
        cause="",
        attempt=attempt,
        position=line.position(_SAVED),
        framework=saved.framework,
        step=step,
        path=saved.path,
        line_ms=line.line_ms,
        read_ms=line.read_ms,
    )


def loaded_fact(line: Line, attempt: AttemptId, loaded: Checkpoint, step: int) -> CheckpointLoaded:
    """The attempt resumed; `step` as for a save."""
    return CheckpointLoaded(
        event_id=line.event_id(attempt, _LOADED),
        cause="",
        attempt=attempt,
        position=line.position(_LOADED),
        framework=loaded.framework,
        step=step,
        path=loaded.path,
        line_ms=line.line_ms,
        read_ms=line.read_ms,
    )


def phase_fact(line: Line, attempt: AttemptId, phase: Phase) -> PhaseEntered:
    """The attempt does something else than stepping, or is done."""
    return PhaseEntered(
        event_id=line.event_id(attempt, _PHASE),
        cause="",
        attempt=attempt,
        position=line.position(_PHASE),
        phase=phase,
        line_ms=line.line_ms,
        read_ms=line.read_ms,
    )


def parked_line(line: Line, reason: str, now_ms: int) -> RecordParked:
    """A line that no attempt can be given: kept with the reason, secrets masked."""
    source = line.source_name
    return RecordParked(
        event_id=derived_id("watch", "parked", source, line.epoch, line.identity or line.offset),
        cause="",
        topic=source,
        partition=line.epoch,
        offset=line.offset,
        key=source.encode(),
        value=kept_text(line.found.line, line.found.at).encode("utf-8", "replace"),
        headers=(f"line_no={line.line_no}", f"line_ms={line.line_ms}", f"read_ms={line.read_ms}"),
        reason=reason,
        parked_ms=now_ms,
    )
