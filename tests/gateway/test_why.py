"""The why of an attempt, from rows alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.milestones import milestones
from gateway.why import explain
from schemas.decisions import AdviceWithheld, AnomalyDetected, Decision
from schemas.facts import CommandGiven, Fact
from schemas.identity import Position
from schemas.policy import DEFAULT_POLICY, LOGIC
from schemas.vocabulary import (
    AnomalyKind,
    AttemptState,
    CommandKind,
    FaultClass,
    Hold,
    Mode,
    Operation,
    Outcome,
    Refusal,
)
from tests.gateway.stories import story_of
from tests.histories import failing, gpu_xid_failure, observed_only
from tests.history import START_MS, History, Recorded


def said(history: History, about: str, index: int = 0) -> str:
    return " ".join(s.text for s in explain(story_of(history, index)).sentences if s.about == about)


def test_a_recovered_attempt_is_explained_from_fault_to_running_again() -> None:
    why = explain(story_of(gpu_xid_failure()))
    assert why.summary.startswith(
        "Attempt 0 of job 42 had a fault of class gpu_hardware on node2; it was decided to restart it without node2."
        " It ran again and completed: attempt 1"
    )
    assert [sentence.about for sentence in why.sentences] == [
        *["happened"] * 3,
        "cause",
        "decided",
        *["done"] * 3,
        "outcome",
        "now",
    ]
    assert why.converged is True
    assert why.running_again is True


def test_the_cause_shows_its_lines_the_decisive_one_first() -> None:
    history = gpu_xid_failure()
    [cause] = [s for s in explain(story_of(history)).sentences if s.about == "cause"]
    assert "placed on node2; 2 fault lines were seen" in cause.text
    assert [line["node"] for line in cause.evidence] == ["node2", "node1"]


def test_the_decision_names_its_policy_and_rules() -> None:
    text = said(gpu_xid_failure(), "decided")
    assert f"The policy was {DEFAULT_POLICY.digest()}, the rules version {LOGIC}." in text
    assert "restart it without node2" in text


def test_each_scheduler_step_has_its_time_and_its_fate() -> None:
    text = said(gpu_xid_failure(), "done")
    assert text.count("and accepted after 20 ms") == 3
    assert "“exclude nodes” (node2)" in text
    assert "2026-02-02T02:40:08.100Z" in text


@pytest.mark.parametrize(
    ("outcome", "words"), [(Outcome.REFUSED, "and refused after 20 ms"), (Outcome.UNKNOWN, "took effect is unknown")]
)
def test_a_command_that_was_not_accepted_is_not_called_done(outcome: Outcome, words: str) -> None:
    history = History()
    history.acted(failing(history), Operation.REQUEUE_HOLD, outcome)
    assert words in said(history, "done")
    assert "accepted" not in said(history, "done")


def test_an_intent_without_an_answer_says_so() -> None:
    history = History()
    history.acted(failing(history), Operation.REQUEUE_HOLD)
    del history.records[-1]
    assert "no answer is recorded" in said(history, "done")


def test_in_observe_mode_it_says_what_would_have_been_done_and_that_it_was_not() -> None:
    why = explain(story_of(observed_only()))
    assert "was not taken" in said(observed_only(), "done")
    assert "(observe_mode): would have requeued the job into a held state" in said(observed_only(), "done")
    assert "was abandoned" in said(observed_only(), "outcome")
    assert (why.converged, why.running_again) == (False, False)
    assert why.sentences[-1].text.endswith("no later attempt was seen.")


def test_advice_that_nobody_acted_on_yet_is_neither_done_nor_converged() -> None:
    history = History()
    failing(history)
    assert "neither sent a command" in said(history, "done")
    assert "has not converged yet" in said(history, "outcome")


def test_a_held_successor_is_not_running_again() -> None:
    history = History()
    history.acted(failing(history), Operation.REQUEUE_HOLD)
    history.next_attempt()
    history.observed(AttemptState.HELD, hold=Hold.REQUEUE)
    why = explain(story_of(history))
    assert why.running_again is False
    assert "It is not running: attempt 1 is held since" in why.summary


def test_a_running_successor_that_trains_says_how_far_it_is() -> None:
    history = History()
    failing(history)
    history.next_attempt()
    history.observed(AttemptState.RUNNING, ("node1", "node3"))
    history.loaded(30)
    history.progress(50)
    now = said(history, "now")
    assert "running again: attempt 1 runs on node1 and node3" in now
    assert "resumed from the checkpoint of step 30, last seen at step 50 of 1000" in now


def test_a_decision_taken_anew_is_told_as_that() -> None:
    history = History()
    failing(history)
    history.tick(1000)
    history.advice(generation=2)
    assert said(history, "decided").count("it was decided to restart it") == 1
    assert "the same was decided anew, as Advice 2" in said(history, "decided")


def test_what_was_held_back_and_what_a_person_asked_for_are_told() -> None:
    history = History()
    failing(history)
    history.decision(
        AdviceWithheld("w", "", history.attempt, history.now_ms, "", Refusal.REQUEUE_LIMIT, "3 of 3 restarts are used")
    )
    asked: Fact = CommandGiven(
        "c", "", history.attempt, Position("person:ada", 0, 1), CommandKind.RESTART, "ada", "fixed", history.now_ms
    )
    history.fact(asked, "gateway")
    text = said(history, "decided")
    assert "held back (requeue_limit): 3 of 3 restarts are used." in text
    assert "ada asked at" in text


def test_an_attempt_without_incident_says_that_nothing_was_seen() -> None:
    history = History()
    history.observed(AttemptState.RUNNING, ("node1",))
    why = explain(story_of(history))
    assert why.summary.startswith("No incident was seen in attempt 0 of job 42. It is running")
    assert why.converged is None


def test_a_failure_without_a_line_rests_on_the_schedulers_word() -> None:
    history = History()
    history.observed(AttemptState.RUNNING, ("node1",))
    history.observed(AttemptState.FAILED, ("node1",))
    history.anomaly(None)
    assert "by the scheduler's word alone: Slurm reports FAILED" in said(history, "happened")
    assert "its cause is not known" in explain(story_of(history)).summary


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (AnomalyKind.NODE_FAULT, "A node that it ran on reported a fault (it says so); it was noticed at"),
        (AnomalyKind.HANG, "it counted as hung: it says so."),
        (AnomalyKind.STRAGGLER, "it counted as slow: it says so."),
    ],
)
def test_each_symptom_is_called_by_its_own_name(kind: AnomalyKind, text: str) -> None:
    history = History()
    history.observed(AttemptState.RUNNING, ("node1",))
    event: Decision = AnomalyDetected(
        "a", "", history.attempt, history.now_ms, history.incident_id, kind, FaultClass.UNKNOWN, "it says so", None
    )
    history.decision(event)
    assert text in said(history, "happened")


def test_milestones_run_from_the_written_line_to_training_again() -> None:
    steps = milestones(story_of(gpu_xid_failure()))
    assert [name for name, _ in steps] == [
        "lineWritten",
        "lineRead",
        "anomaly",
        "attributed",
        "advised",
        "held",
        "released",
        "runningAgain",
        "resumedFromCheckpoint",
        "trainingAgain",
    ]
    assert steps[0][1] == START_MS + 5450
    assert [at for _, at in steps] == sorted(at for _, at in steps)


def test_without_a_successor_there_are_no_milestones_after_the_advice() -> None:
    assert [name for name, _ in milestones(story_of(observed_only()))][-1] == "advised"


def test_every_prefix_of_a_history_can_be_explained() -> None:
    for history in (gpu_xid_failure(), observed_only()):
        for count in range(1, len(history.records) + 1):
            records: list[Recorded] = history.records[:count]
            part = replace(history, records=records)
            part.attempt = max((r.event.attempt for r in records if hasattr(r.event, "attempt")), default=part.attempt)
            for index in range(part.attempt.index + 1):
                assert explain(story_of(part, index)).summary


def test_a_job_that_recovery_leaves_alone_is_told_why_and_not_called_running() -> None:
    history = History("44", workflow_id="foreign", mode=Mode.DISABLED)
    history.observed(AttemptState.RUNNING, ("node1",))
    why = explain(story_of(history))
    assert why.summary.startswith("Attempt 0 of job 44 is left alone by recovery: asked for by the job's APS. It was")
    assert "Recovery leaves it alone: asked for by the job's APS." in said(history, "happened")
    assert "It is running" not in why.summary, "nobody has looked since"


def test_a_job_that_recovery_leaves_alone_is_told_how_it_ended() -> None:
    history = History("45", workflow_id="foreign", mode=Mode.DISABLED)
    history.observed(AttemptState.RUNNING, ("node1",))
    history.observed(AttemptState.COMPLETED, ("node1",), in_controller=False)
    assert said(history, "now").startswith("It is COMPLETED since")
