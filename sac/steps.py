"""What planning is asked and what it answers: the situation of one job, and the step to take."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from schemas.decisions import Advice
from schemas.facts import JobObserved
from schemas.identity import AttemptId
from schemas.policy import Policy
from schemas.vocabulary import AttemptState, Disposition, Operation, Refusal


@dataclass(frozen=True)
class Intent:
    """One command to send, for whom and why, and what must still hold when it is sent."""

    attempt: AttemptId  # whose Advice this serves
    operation: Operation
    generation: int
    cause: str
    action_id: str
    target: str  # the id as Slurm's commands take it
    nodes: tuple[str, ...]  # the whole ExcNodeList
    restart_count: int  # as seen
    state: AttemptState  # as seen
    start_now: bool  # lift the delay that Slurm puts on a requeued job


@dataclass(frozen=True)
class Refused:
    """What was considered and not done."""

    attempt: AttemptId
    operation: Operation
    generation: int
    cause: str
    action_id: str
    reason: Refusal
    detail: str


Step = Intent | Refused


@dataclass(frozen=True)
class Situation:
    """All that is known of one job at one look."""

    observed: JobObserved
    attempt: AttemptId | None  # what the decider calls the attempt that Slurm shows; None while it has not said
    advice: tuple[Advice, ...]  # every Advice on record for the job
    quarantined: bool
    policy: Policy | None  # in force; None while its document is not in view
    known_nodes: frozenset[str] | None  # None: unknown
    components: tuple[JobObserved, ...] = ()  # of a heterogeneous job, the leader first

    @property
    def open_advice(self) -> Advice | None:
        """The pending Advice of the latest attempt that has one."""
        return open_advice(self.advice)


def open_advice(known: Iterable[Advice]) -> Advice | None:
    """The pending Advice of the latest attempt that has one."""
    pending = [advice for advice in known if advice.disposition is Disposition.PENDING]
    return max(pending, key=lambda a: (a.attempt.incarnation, a.attempt.index, a.generation), default=None)
