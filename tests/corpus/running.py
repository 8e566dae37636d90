"""Stories of attempts that run on after a fault, hang, slow down or are suspended: what the corpus holds of them."""

from __future__ import annotations

from collections.abc import Callable

from schemas.decisions import OutputAsked
from schemas.policy import Policy
from schemas.vocabulary import AttemptState, FaultClass, LineRole, Phase, Remedy, Scope
from tests.decide.story import Story

STRAGGLERS = Policy(straggler_recovery=1)


def trained(policy: Policy | None = None, every_s: float = 60) -> Story:
    story = Story() if policy is None else Story(policy=policy)
    story.observe(AttemptState.RUNNING)
    for step in range(12):
        story.progress(step)
        story.wait(every_s)
    return story


def ended(story: Story) -> Story:
    """The attempt fails, and the next one runs to its end."""
    story.observe(AttemptState.FAILED)
    story.wait(120)
    story.held_then_running(1)
    story.progress(20, 1)
    story.observe(AttemptState.COMPLETED, 1)
    story.wait(60)
    return story


def asked(story: Story, times: int = 1) -> bool:
    """Wait until the attempt is asked about so often; an hour long."""
    for _ in range(3600):
        if len(story.events(OutputAsked)) >= times:
            return True
        story.wait(1)
    return False


def caught(story: Story) -> None:
    story.line(
        "ValueError: caught", fault_class=FaultClass.USER_CODE, scope=Scope.JOB, remedy=Remedy.RESTART, precedence=13
    )


def hung() -> Story:
    """Silence that is confirmed."""
    story = trained()
    asked(story)
    story.output_checked(900)
    story.wait(400)
    return ended(story)


def hung_for_a_while() -> Story:
    """A hang that was none, and a crash after it."""
    story = trained()
    asked(story)
    story.output_checked(900)
    for step in range(20, 24):
        story.progress(step)
        story.wait(60)
    story.line()
    return ended(story)


def talked_on() -> Story:
    """Output grows without a step until patience ends; once nobody answers, once it can't be seen."""
    story = trained()
    number = 1
    while asked(story, number):
        number += 1
        if number == 2:
            story.wait(70)
        elif number == 3:
            story.output_checked(0, error="permission denied")
        else:
            story.output_checked(3)
    story.wait(60)
    return ended(story)


def in_phases() -> Story:
    """Saves, evaluations and an end that was none, with a fault in between; then a standstill."""
    story = trained()
    story.enter(Phase.CHECKPOINT)
    story.wait(300)
    story.checkpoint(12)
    story.progress(13)
    story.enter(Phase.EVALUATION)
    caught(story)
    story.wait(600)
    story.progress(14)
    story.enter(Phase.FINISHING)
    story.progress(15)
    story.progress(16)
    asked(story)
    story.output_checked(900)
    return ended(story)


def outweighed() -> Story:
    """A traceback, and the node's own word after it was attributed."""
    story = trained()
    caught(story)
    story.wait(20)
    story.node_fault()
    story.wait(2)
    return ended(story)


def survived() -> Story:
    """Faults that training outlives, a node that says so on and on, and a collective that times out later."""
    story = trained()
    for step in range(20, 30):
        story.node_fault()
        story.wait(30)
        story.progress(step)
        story.wait(30)
    story.node_fault(remedy=Remedy.RESTART, scope=Scope.UNKNOWN, role=LineRole.CONSEQUENCE, precedence=40)
    story.wait(600)
    story.line(
        "timed out", fault_class=FaultClass.NCCL_TIMEOUT, role=LineRole.CONSEQUENCE, precedence=30, signature="t"
    )
    return ended(story)


def suspended() -> Story:
    """A fault, a suspension while its grace ends, and a standstill afterwards."""
    story = trained()
    story.line()
    story.wait(10)
    story.observe(AttemptState.SUSPENDED)
    story.wait(3600)
    story.observe(AttemptState.RUNNING)
    story.wait(600)
    return ended(story)


def slow() -> Story:
    """Steps that become slow while a node says why, where stragglers are restarted."""
    story = trained(STRAGGLERS)
    story.node_fault("a slow clock", fault_class=FaultClass.STRAGGLER, role=LineRole.CONSEQUENCE, precedence=50)
    for step in range(20, 30):
        story.progress(step, seconds=0.9)
        story.wait(60)
    return ended(story)


def slow_for_a_while() -> Story:
    """Steps that become slow and normal again, recorded only."""
    story = trained()
    for step in range(20, 40):
        story.progress(step, seconds=0.9 if step < 30 else 0.2)
        story.wait(60)
    return ended(story)


RUNNING: tuple[Callable[[], Story], ...] = (
    hung,
    hung_for_a_while,
    talked_on,
    in_phases,
    outweighed,
    survived,
    suspended,
    slow,
    slow_for_a_while,
)
