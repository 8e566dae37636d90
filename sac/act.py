"""Carries out one intent: on record first, then checked once more against Slurm, then sent, then its outcome recorded.

scontrol has no compare-and-set. What narrows the gap is a look at the one job immediately before its command, and
`requeuehold Incomplete` for what runs: plain requeuehold restarts a job that has completed meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from sac.slurm.commands import DETAIL, Sent, SlurmCommands
from sac.slurm.glimpse import Glimpse, changed, glimpse
from sac.slurm.nodes import compress
from sac.steps import Intent, Refused
from schemas.facts import ActionEnded, ActionIntended, ActionRefused
from schemas.identity import Position, derived_id
from schemas.vocabulary import AttemptState, Operation, Outcome

SEND_WITHIN_S = 2.0
"""A command leaves this soon after its intent was recorded, or not at all: after a pause, another may lead."""

Record = ActionIntended | ActionEnded | ActionRefused
Command = tuple[str, ...]


class Recorder(Protocol):
    """Where actions are put on record; returns once they are committed. Raises FencedError."""

    def record(self, *records: Record) -> None: ...

    def next_position(self) -> Position: ...


def commands_for(intent: Intent) -> tuple[Command, ...]:
    """What is sent for an intent, in order."""
    target = intent.target
    match intent.operation:
        case Operation.REQUEUE_HOLD:
            ended = intent.state not in (AttemptState.RUNNING, AttemptState.SUSPENDED)
            return (("scontrol", "requeuehold", *(() if ended else ("Incomplete",)), target),)
        case Operation.UPDATE_CONSTRAINTS:
            return (("scontrol", "update", f"JobId={target}", f"ExcNodeList={compress(intent.nodes)}"),)
        case Operation.RELEASE:
            now = (("scontrol", "update", f"JobId={target}", "StartTime=now"),) if intent.start_now else ()
            return (*now, ("scontrol", "release", target))
        case Operation.CANCEL:
            return (("scancel", target),)


class Actor:
    """Sends the commands of one cluster."""

    def __init__(
        self,
        commands: SlurmCommands,
        recorder: Recorder,
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._commands = commands
        self._recorder = recorder
        self._clock_ms = clock_ms

    def refuse(self, refused: Refused) -> None:
        """Put on record what was not done, and why."""
        position = self._recorder.next_position()
        self._recorder.record(
            ActionRefused(
                event_id=derived_id("action-refused", refused.action_id, refused.reason),
                cause=refused.cause,
                attempt=refused.attempt,
                position=position,
                action_id=refused.action_id,
                operation=refused.operation,
                generation=refused.generation,
                reason=refused.reason,
                detail=refused.detail[:DETAIL],
                refused_ms=self._clock_ms(),
            )
        )

    def act(self, intent: Intent) -> ActionEnded:
        """Send one command, once. Raises what the recorder raises; nothing is sent before the intent is committed."""
        started = time.monotonic()
        commands = commands_for(intent)
        position = self._recorder.next_position()
        intended = ActionIntended(
            event_id=derived_id("action-intended", intent.action_id, position.offset),
            cause=intent.cause,
            attempt=intent.attempt,
            position=position,
            action_id=intent.action_id,
            operation=intent.operation,
            generation=intent.generation,
            command="; ".join(" ".join(command) for command in commands),
            nodes=intent.nodes,
            intended_ms=self._clock_ms(),
        )
        self._recorder.record(intended)
        differs = changed(self._commands, intent.target, intent.restart_count, intent.state)
        if differs is not None:
            sent = Sent(Outcome.REFUSED, f"not sent: {differs}")
        elif time.monotonic() - started > SEND_WITHIN_S:
            sent = Sent(Outcome.REFUSED, f"not sent: {SEND_WITHIN_S:g} s had passed since it was decided")
        else:
            sent = self._send(intent, commands)
        return self.end(intended, sent)

    def end(self, intended: ActionIntended, sent: Sent) -> ActionEnded:
        """Put an outcome on record."""
        ended = ActionEnded(
            event_id=derived_id("action-ended", intended.event_id),
            cause=intended.event_id,
            attempt=intended.attempt,
            position=self._recorder.next_position(),
            action_id=intended.action_id,
            operation=intended.operation,
            generation=intended.generation,
            outcome=sent.outcome,
            detail=sent.detail[:DETAIL],
            ended_ms=self._clock_ms(),
        )
        self._recorder.record(ended)
        return ended

    def _send(self, intent: Intent, commands: tuple[Command, ...]) -> Sent:
        *before, last = commands
        # A delay that could not be lifted only makes the job start later: not a reason to keep it held.
        said = [answer.detail for answer in (self._commands.send(*command) for command in before) if answer.detail]
        sent = self._commands.send(*last)
        if intent.operation is Operation.REQUEUE_HOLD and sent.outcome is Outcome.ACCEPTED:
            sent = self._effect_of_hold(intent, sent)
        return Sent(sent.outcome, "; ".join([*said, sent.detail]) if said else sent.detail)

    def _effect_of_hold(self, intent: Intent, sent: Sent) -> Sent:
        """`requeuehold Incomplete` says yes and does nothing where the attempt has just ended: that is a refusal."""
        now = glimpse(self._commands, intent.target)
        if isinstance(now, Glimpse) and now.restart_count == intent.restart_count:
            return Sent(Outcome.REFUSED, f"Slurm did nothing: the attempt is {now.state}")
        return sent
