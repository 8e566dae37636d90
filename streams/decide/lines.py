"""Lines as an incident keeps them: of the job's output, or of a node that the attempt runs on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from schemas.facts import Evidence, NodeFaultReported, ProgressObserved, SignatureMatched
from schemas.frozen import replace
from schemas.vocabulary import FaultClass, LineRole, Remedy, Witness
from streams.decide.nodes import AFTER_END_MS
from streams.decide.roots import FORERUNNERS
from streams.decide.state import KEPT_LINES, Attempt, Heard, Line

RootLine = Callable[[Sequence[Line]], Line]

SILENT = frozenset({Remedy.IGNORE, Remedy.WAIT})
STEPS_WITHOUT_NUMBER = frozenset({"nan-steps", "dead-steps", "skipped-steps"})
KEPT_HEARD = 8
HEARD_MS = 2_400_000
"""What was said explains within this time why others waited for it, or why nothing moves: longer than ranks wait for
each other, and than it takes to find steps slow of which watch keeps one in five minutes."""
LATELY_MS = 300_000
"""Within this, it explains what itself is a cause."""
IN_ORDER_MS = 100_000
"""A step that is told so long after a fault came after it, whatever their clocks say: no source is later than that."""


def of_output(fact: SignatureMatched) -> Line:
    """A line of the job's output."""
    return Line(
        fact.signature,
        fact.fault_class,
        fact.scope,
        fact.remedy,
        fact.role,
        fact.precedence,
        fact.detail,
        fact.peer,
        fact.blamed_rank,
        fact.sequence,
        fact.evidence,
    )


def of_node(fact: NodeFaultReported) -> Line:
    """What a node says, under its own name."""
    fault = fact.fault
    return Line(
        fault.signature,
        fault.fault_class,
        fault.scope,
        fault.remedy,
        fault.role,
        fault.precedence,
        fault.detail,
        None,
        None,
        None,
        fault.evidence,
        fault.witness,
    )


def is_certain(fact: NodeFaultReported) -> bool:
    """Whether the node is broken by its own word, and became so in the attempt's own time."""
    fault = fact.fault
    return fault.role is LineRole.CAUSE and fault.remedy is Remedy.RESTART_EXCLUDING_NODE and fact.distance_ms == 0


def is_recorded_only(line: Line) -> bool:
    """A program's own word that something is slow: the straggler detector judges that by step times."""
    return line.remedy is Remedy.WAIT and line.fault_class is FaultClass.STRAGGLER


def is_worth_hearing(line: Line) -> bool:
    """Whether what a node says may explain a failure that follows; that storage is waited for does."""
    return line.remedy not in SILENT or line.fault_class is FaultClass.STORAGE_IO or line.signature in FORERUNNERS


def is_without_number(lines: tuple[Line, ...], root_line: RootLine) -> bool:
    """Whether the cause is a step whose loss is no number: another such step is no way out of it."""
    return bool(lines) and root_line(lines).signature in STEPS_WITHOUT_NUMBER


def kept(lines: tuple[Line, ...], root_line: RootLine) -> tuple[Line, ...]:
    """The root, then the first line of each other signature and node, then the earliest: at most KEPT_LINES."""
    if len(lines) <= KEPT_LINES:
        return lines
    root = root_line(lines)
    known = {(root.signature, root.evidence.node)}
    new: list[Line] = []
    again: list[Line] = []
    for line in lines:
        key = (line.signature, line.evidence.node)
        if line is root:
            continue
        (again if key in known else new).append(line)
        known.add(key)
    return (root, *[*new, *again][: KEPT_LINES - 1])


def outweighs(line: Line, others: tuple[Line, ...], root_line: RootLine) -> bool:
    """Whether a line explains the others, and says something else than the one that explained them so far."""
    if line.role is not LineRole.CAUSE:
        return False
    return not others or (line.signature != root_line(others).signature and root_line((*others, line)) is line)


def is_told_again(attempt: Attempt, line: Line, now_ms: int) -> bool:
    """Whether a node that fails for hours says again what an incident was about that is over: training moved on."""
    incident = attempt.incident
    if incident is None or not incident.settled or now_ms - incident.last_line_ms > HEARD_MS:
        return False
    return _said(line) in map(_said, incident.lines)


def hear_again(attempt: Attempt, line: Line, now_ms: int) -> Attempt:
    """Keep it as what explains a failure that follows, and remember how long the node has been saying so."""
    incident = attempt.incident
    assert incident is not None
    return hear(replace(attempt, incident=replace(incident, last_line_ms=now_ms)), line, now_ms)


def hear(attempt: Attempt, line: Line, now_ms: int) -> Attempt:
    """Keep what was said, in case the attempt fails; who repeats himself is kept once."""
    others = tuple(one for one in attempt.heard if _said(one.line) != _said(line))
    return replace(attempt, heard=(*others, Heard(line, now_ms))[-KEPT_HEARD:])


def _said(line: Line) -> tuple[str, str | None, Witness]:
    return line.signature, line.evidence.node, line.witness


def known_before(attempt: Attempt, line: Line | None, now_ms: int) -> tuple[Line, ...]:
    """What is known when an incident opens, perhaps with a line: what was heard within the time in which it explains
    that, and the lines of an incident that was not decided yet."""
    limit_ms = LATELY_MS if line is not None and line.role is LineRole.CAUSE else HEARD_MS
    heard = tuple(one.line for one in attempt.heard if now_ms - one.heard_ms <= limit_ms)
    incident = attempt.incident
    if incident is None or incident.settled or now_ms - incident.last_line_ms > HEARD_MS:
        return heard
    return *heard, *incident.lines


def outlive(attempt: Attempt, fact: ProgressObserved, now_ms: int) -> Attempt:
    """Forget what nodes said before a step that was reached all the same; what makes steps slow does not end so."""

    def lasts(one: Heard) -> bool:
        slow = one.line.fault_class is FaultClass.STRAGGLER
        return slow or not (now_ms - one.heard_ms >= IN_ORDER_MS or is_after(fact, (one.line,)))

    return replace(attempt, heard=tuple(one for one in attempt.heard if lasts(one)))


def in_time(attempt: Attempt, lines: tuple[Line, ...]) -> tuple[Line, ...]:
    """The lines without those of nodes that came after the attempt's end, which was not known when they were told."""
    if attempt.end_ms is None:
        return lines
    last_ms = attempt.end_ms + AFTER_END_MS
    return tuple(line for line in lines if line.witness is Witness.OUTPUT or _printed_ms(line.evidence) <= last_ms)


def is_after(fact: ProgressObserved, lines: tuple[Line, ...]) -> bool:
    """Whether the step was printed after the lines, by the sources' own times: like is compared with like.

    A stamp is no match for a time of reading: its clock, or its zone, may be another.
    """

    def later(evidence: Evidence) -> bool:
        if fact.line_ms is not None and evidence.line_ms is not None:
            return fact.line_ms > evidence.line_ms
        return fact.read_ms > evidence.read_ms

    return all(later(line.evidence) for line in lines)


def _printed_ms(evidence: Evidence) -> int:
    return evidence.line_ms if evidence.line_ms is not None else evidence.read_ms
