"""Who is on which node: told to the node decider when an attempt starts there and when it is gone.

Without this a line in a node's log concerns nobody. What ends is told whole, so that losing the order loses nothing.
"""

from __future__ import annotations

from schemas.nodes import NodeAllocated, NodeFreed
from streams.decide.state import Attempt, JobState
from streams.decide.turn import Turn


def publish(turn: Turn, before: JobState, job: JobState) -> None:
    """Tell what changed between the two states."""
    for attempt in job.attempts:
        known = before.attempt(attempt.id)
        held = () if known is None else _held(known)
        if attempt.final:
            _free(turn, attempt, attempt.nodes if known is None or not known.final else ())
            continue
        _allocate(turn, attempt, tuple(node for node in _held(attempt) if node not in held))
        _free(turn, attempt, tuple(node for node in held if node not in attempt.nodes))
    for attempt in before.attempts:
        if job.attempt(attempt.id) is None:
            _free(turn, attempt, _held(attempt))


def _held(attempt: Attempt) -> tuple[str, ...]:
    """The nodes on which the attempt is now, as far as the scheduler was seen."""
    return () if attempt.final or attempt.start_ms is None else attempt.nodes


def _allocate(turn: Turn, attempt: Attempt, nodes: tuple[str, ...]) -> None:
    if attempt.start_ms is None:
        return
    for node in nodes:
        turn.emit(NodeAllocated(turn.next_id(), turn.cause, attempt.id, node, attempt.start_ms, turn.now_ms))


def _free(turn: Turn, attempt: Attempt, nodes: tuple[str, ...]) -> None:
    if attempt.start_ms is None:
        return
    end_ms = turn.now_ms if attempt.end_ms is None else attempt.end_ms
    for node in nodes:
        turn.emit(NodeFreed(turn.next_id(), turn.cause, attempt.id, node, attempt.start_ms, end_ms, turn.now_ms))
