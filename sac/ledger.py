"""What is on record of our own actions: intents, outcomes, refusals. Pure; fed from `recovery.actions` in its order.

The identity of an action is (cluster, job, incarnation, attempt, operation, generation); a requeuehold has no
generation, because an attempt may have only one. A refusal always keeps the generation: it says what was not done for
that Advice.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from schemas.facts import ActionEnded, ActionIntended, ActionRefused
from schemas.identity import AttemptId, JobKey, derived_id
from schemas.vocabulary import Operation, Outcome, Refusal


def action_id(attempt: AttemptId, operation: Operation, generation: int, target: str = "") -> str:
    """The identity of an action. `target` tells apart the components of a heterogeneous job."""
    counted = 0 if operation is Operation.REQUEUE_HOLD else generation
    return derived_id("action", attempt.key, operation, counted, target)


def refusal_id(attempt: AttemptId, operation: Operation, generation: int) -> str:
    """The identity under which an action is refused, for one Advice generation."""
    return derived_id("refused", attempt.key, operation, generation)


@dataclass(frozen=True)
class Action:
    """One action: its last intent, how that ended (None: nobody knows), and how often it was tried."""

    intent: ActionIntended
    ended: ActionEnded | None
    tries: int

    @property
    def outcome(self) -> Outcome:
        return self.ended.outcome if self.ended is not None else Outcome.UNKNOWN

    @property
    def last_ms(self) -> int:
        """When the command was sent or came back, whichever is known."""
        return self.ended.ended_ms if self.ended is not None else self.intent.intended_ms

    def settled(self, now_ms: int, settle_ms: int) -> bool:
        """Whether an effect can no longer arrive."""
        return self.outcome is not Outcome.UNKNOWN or now_ms >= self.last_ms + settle_ms


@dataclass
class Ledger:
    """All actions on record."""

    _actions: dict[str, Action] = field(default_factory=dict)
    _of_job: dict[JobKey, set[str]] = field(default_factory=dict)
    _refused: set[tuple[str, Refusal]] = field(default_factory=set)
    _observed_only: set[tuple[AttemptId, int]] = field(default_factory=set)

    def add(self, record: ActionIntended | ActionEnded | ActionRefused) -> None:
        """Take in one record; the same one again changes nothing."""
        if isinstance(record, ActionRefused):
            self._refused.add((record.action_id, record.reason))
            if record.reason is Refusal.OBSERVE_MODE:
                self._observed_only.add((record.attempt, record.generation))
            return
        known = self._actions.get(record.action_id)
        if isinstance(record, ActionIntended):
            if known is None or known.intent.event_id != record.event_id:
                self._actions[record.action_id] = Action(record, None, known.tries + 1 if known else 1)
                self._of_job.setdefault(record.attempt.job, set()).add(record.action_id)
        elif known is not None and record.cause == known.intent.event_id:
            self._actions[record.action_id] = replace(known, ended=record)

    def action(self, identity: str) -> Action | None:
        return self._actions.get(identity)

    def of_job(self, job: JobKey) -> Collection[Action]:
        """All actions for any attempt of one job: Slurm's commands name the job, so a late one hits what is there."""
        return [self._actions[identity] for identity in self._of_job.get(job, ())]

    def of(self, attempt: AttemptId) -> Collection[Action]:
        """All actions for one attempt."""
        return [action for action in self.of_job(attempt.job) if action.intent.attempt == attempt]

    def open(self) -> Collection[Action]:
        """Intents whose outcome is not on record: their process died between the two. Safe to ask from any thread."""
        return [action for action in list(self._actions.values()) if action.ended is None]

    def refused(self, identity: str, reason: Refusal) -> bool:
        """Whether this refusal is on record."""
        return (identity, reason) in self._refused

    def observed_only(self, attempt: AttemptId, generation: int) -> bool:
        """Whether this generation was refused in observe mode: a later change to act does not revive it."""
        return (attempt, generation) in self._observed_only

    def our_hold(self, attempt: AttemptId) -> Action | None:
        """Our own requeuehold of this attempt, unless Slurm refused it."""
        held = self.action(action_id(attempt, Operation.REQUEUE_HOLD, 0))
        return held if held is not None and held.outcome is not Outcome.REFUSED else None
