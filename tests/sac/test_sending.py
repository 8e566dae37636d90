"""Around one command: its intent is on record first, what has changed is not sent, a yes is not taken for an effect."""

from __future__ import annotations

from dataclasses import dataclass, field

from sac.act import Actor, Record
from sac.ledger import Ledger
from sac.plan import plan
from sac.slurm.answers import Known, Unknown
from sac.slurm.commands import Sent, SlurmCommands
from sac.steps import Intent
from schemas.facts import ActionEnded, ActionIntended
from schemas.identity import Position
from schemas.vocabulary import AttemptState, DesiredState, Outcome
from tests.sac.model import ACTING, START_MS, ModelJob, advice, situation


@dataclass
class Paper:
    """A recorder, and the order in which things happened."""

    story: list[str]
    records: list[Record] = field(default_factory=list)

    def record(self, *records: Record) -> None:
        self.records += records
        self.story += [type(record).__name__ for record in records]

    def next_position(self) -> Position:
        return Position("sac:c", 0, len(self.records) + 1)


class Commands(SlurmCommands):
    """Answers each look at the job with the next of `looks`, and takes every command."""

    def __init__(self, story: list[str], *looks: str) -> None:
        super().__init__(None, 1)
        self.story = story
        self.looks = list(looks)

    def read(self, *argv: str, may_be_empty: bool = False) -> Known[str] | Unknown:  # noqa: ARG002
        look = self.looks.pop(0)
        return Known(look) if look else Unknown("squeue did not answer")

    def send(self, *argv: str) -> Sent:
        self.story.append(" ".join(argv))
        return Sent(Outcome.ACCEPTED, "")


def act(state: AttemptState, *looks: str) -> tuple[ActionEnded, list[str], Paper]:
    job = ModelJob(state=state)
    order = advice(job, DesiredState.RESTARTED, index=0, submit_time=job.submit_time, generation=1)
    (intent,) = plan(situation(job, START_MS, order), Ledger(), ACTING, START_MS)
    assert isinstance(intent, Intent)
    story: list[str] = []
    paper = Paper(story)
    return Actor(Commands(story, *looks), paper).act(intent), story, paper


def test_the_intent_is_on_record_before_the_command_and_the_outcome_after_it() -> None:
    ended, story, paper = act(AttemptState.RUNNING, "7_3 0 RUNNING\n", "7_3 1 COMPLETING\n")
    assert story == ["ActionIntended", "scontrol requeuehold Incomplete 7_3", "ActionEnded"]
    assert ended.outcome is Outcome.ACCEPTED
    intended = paper.records[0]
    assert isinstance(intended, ActionIntended)
    assert (ended.cause, ended.action_id) == (intended.event_id, intended.action_id)
    assert intended.command == "scontrol requeuehold Incomplete 7_3"


def test_what_changed_since_the_look_is_not_sent() -> None:
    for look in ("7_3 1 RUNNING\n", "7_3 0 COMPLETED\n", "7_3 0 RUNNING\n7_4 0 RUNNING\n", "rubbish\n", ""):
        ended, story, _ = act(AttemptState.RUNNING, look)
        assert story == ["ActionIntended", "ActionEnded"]
        assert ended.outcome is Outcome.REFUSED
        assert ended.detail.startswith("not sent")


def test_a_hold_that_came_too_late_is_a_refusal_though_slurm_said_yes() -> None:
    ended, _, _ = act(AttemptState.RUNNING, "7_3 0 RUNNING\n", "7_3 0 FAILED\n")
    assert ended.outcome is Outcome.REFUSED
    assert "did nothing" in ended.detail


def test_where_the_look_after_a_hold_fails_its_answer_stands() -> None:
    ended, _, _ = act(AttemptState.FAILED, "7_3 0 FAILED\n", "")
    assert ended.outcome is Outcome.ACCEPTED
