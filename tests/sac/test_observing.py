"""What is said of a job, what may be done with it, what is worth a fact, and how long a hold may last."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from recovery.settings import SacSettings, Settings, SlurmSettings, WatchdogSettings
from sac.mode import permission
from sac.observe import Stamp, hold_of, left, observe
from sac.publish import Publisher
from sac.slurm.answers import Known
from sac.slurm.commands import SlurmCommands
from sac.slurm.sacct import Accounted
from sac.slurm.squeue import Look, SlurmJob, parse
from sac.view import Known as KnownFromKafka
from sac.watchdog import Watchdog
from schemas.aps import Aps
from schemas.facts import JobObserved
from schemas.vocabulary import AttemptState, Hold, Mode, Refusal

ADMITTING = SacSettings(mode="act", acknowledge_scheduler_actions=True, environment="test", partitions=("main",))
CAPTURED = (Path(__file__).parent / "data" / "squeue-22.05.json").read_text()


def job(job_id: str = "1", **changes: object) -> SlurmJob:
    answer = parse(CAPTURED, "local")
    assert isinstance(answer, Known)
    return replace(answer.value.jobs[job_id], **changes)  # type: ignore[arg-type]


def seen(of: SlurmJob, look_ms: int = 1_000, generation: int = 0, settings: SacSettings = ADMITTING) -> JobObserved:
    one = observe(of, settings, Stamp("local", look_ms, "sha256:p", 1), generation, "")
    assert one is not None
    return one


def test_the_kind_of_hold_is_told_by_the_reason_before_the_text() -> None:
    held = job()
    assert hold_of(held) is Hold.REQUEUE
    assert hold_of(replace(held, description="job_requeued_in_held_state")) is Hold.REQUEUE
    assert hold_of(replace(held, reason="JobHeldAdmin")) is Hold.ADMIN  # the old text stays beside it
    assert hold_of(replace(held, reason="JobHoldMaxRequeue")) is Hold.ADMIN
    assert hold_of(replace(held, description="")) is Hold.USER
    assert hold_of(replace(held, description="launch failed requeued held")) is Hold.USER
    assert hold_of(replace(held, reason="BadConstraints", description="")) is Hold.NONE
    assert hold_of(replace(held, priority=100)) is Hold.NONE
    assert hold_of(replace(held, state=AttemptState.CANCELLED)) is Hold.NONE


def test_a_held_successor_shows_nothing_of_the_attempt_before() -> None:
    one = seen(job(exit_code=768, start_time=1795976300, end_time=1795979900))
    assert (one.state, one.exit_code, one.start_ms, one.end_ms, one.nodes) == (AttemptState.HELD, None, None, None, ())


def test_an_expected_end_is_no_end() -> None:
    running = seen(job("10+0", comment=job().comment))
    assert running.start_ms is not None
    assert running.end_ms is None


def test_a_job_without_aps_is_not_observed_at_all() -> None:
    stamp = Stamp("local", 1, "p", 1)
    for comment in ("", "a note", '{"other": {}}'):
        assert observe(job(comment=comment), ADMITTING, stamp, 0, "") is None


def test_the_workflow_is_named_by_the_first_of_four_things() -> None:
    def workflow(comment: str, name: str) -> str:
        return seen(job(comment=comment, name=name)).workflow_id

    assert workflow('{"APS":{"workflow_id":"w","workflow_name":"n"}}', "job") == "w"
    assert workflow('{"APS":{"workflow_name":"n"}}', "job") == "n"
    assert workflow('{"HEIMDALL":{}}', "job") == "job"
    assert workflow('{"APS":{}}', "") == "1"


@pytest.mark.parametrize(
    ("aps", "partition", "settings", "mode", "refusal"),
    [
        (Aps(environment="test", mode=Mode.ACT), "main", {}, Mode.ACT, None),
        (Aps(environment="test"), "main", {}, Mode.ACT, None),
        (Aps(environment="test", mode=Mode.ACT), "main", {"mode": "observe"}, Mode.ACT, None),
        (Aps(environment="test", mode=Mode.OBSERVE), "main", {}, Mode.OBSERVE, Refusal.OBSERVE_MODE),
        (Aps(environment="test"), "main", {"mode": "observe"}, Mode.OBSERVE, Refusal.OBSERVE_MODE),
        (
            Aps(environment="test", mode=Mode.ACT),
            "main",
            {"acknowledge_scheduler_actions": False},
            Mode.OBSERVE,
            Refusal.OBSERVE_MODE,
        ),
        (Aps(environment="test", mode=Mode.ACT), "main", {"mode": "disabled"}, Mode.DISABLED, Refusal.OBSERVE_MODE),
        (Aps(environment="Test", mode=Mode.ACT), "main", {}, Mode.DISABLED, Refusal.ENVIRONMENT),
        (Aps(mode=Mode.ACT), "main", {}, Mode.DISABLED, Refusal.ENVIRONMENT),
        (Aps(environment="", mode=Mode.ACT), "main", {"environment": ""}, Mode.DISABLED, Refusal.ENVIRONMENT),
        (Aps(environment="test", mode=Mode.ACT), "main,debug", {}, Mode.DISABLED, Refusal.PARTITION),
        (Aps(environment="test", mode=Mode.ACT), "main", {"partitions": ()}, Mode.DISABLED, Refusal.PARTITION),
        (None, "main", {}, Mode.DISABLED, Refusal.APS),
    ],
)
def test_the_mode_table(
    aps: Aps | None, partition: str, settings: dict[str, object], mode: Mode, refusal: Refusal | None
) -> None:
    allowed = permission(aps, None, partition, ADMITTING.model_copy(update=settings))
    assert (allowed.mode, allowed.refusal) == (mode, refusal)
    assert allowed.reason


def test_only_changes_and_new_generations_are_published() -> None:
    publisher, known, running = Publisher(), KnownFromKafka("local"), job("4", comment=job().comment)
    first = seen(running, 1)
    assert publisher.changes([first], known) == [first]
    assert publisher.changes([seen(running, 2)], known) == []
    with_advice = seen(running, 3, generation=4)
    assert publisher.changes([with_advice], known) == [with_advice]
    assert publisher.changes([seen(running, 4, generation=4)], known) == []
    assert publisher.changes([seen(running, 5)], known) == []  # the Advice was resolved: nothing to prove
    ended = seen(replace(running, requeue=False), 6)
    assert publisher.changes([ended], known) == [ended]


def test_a_disabled_job_is_published_once_and_again_only_if_the_reason_changes() -> None:
    publisher, known = Publisher(), KnownFromKafka("local")
    foreign = replace(job(), comment='{"APS":{"environment":"other"}}')
    assert len(publisher.changes([seen(foreign, 1)], known)) == 1
    assert publisher.changes([seen(replace(foreign, state=AttemptState.RUNNING), 2)], known) == []
    assert len(publisher.changes([seen(replace(foreign, comment='{"APS":3}'), 3)], known)) == 1


def test_a_look_between_two_attempts_is_not_published() -> None:
    publisher, known = Publisher(), KnownFromKafka("local")
    running = job("10+0", comment=job().comment)
    publisher.changes([seen(running, 1)], known)
    completing = replace(running, state=AttemptState.COMPLETING)
    between = replace(completing, restart_count=1)  # with the old SubmitTime
    assert publisher.changes([seen(between, 2)], known) == []
    assert len(publisher.changes([seen(completing, 3)], known)) == 1
    assert Publisher().changes([seen(completing, 4)], known) == []  # nobody knows yet which attempt this is


def test_a_job_that_left_is_final_only_by_its_own_record() -> None:
    publisher, known = Publisher(), KnownFromKafka("local")
    last = seen(job("4", comment=job().comment), 1)
    publisher.changes([last], known)
    assert publisher.gone(Look({}, {}, frozenset()), known) == ["4"]
    assert publisher.gone(Look({}, {"4": "unreadable"}, frozenset()), known) == []
    record = Accounted(
        "4", 4, last.submit_time, 1795976037, 1795976038, AttemptState.FAILED, 768, ("node1",), "u", "main", "j"
    )
    final = left(last, record, Stamp("local", 9, "sha256:p", 1), generation=3, cause="a")
    assert final is not None
    assert (final.in_controller, final.state, final.exit_code, final.end_ms) == (
        False,
        AttemptState.FAILED,
        768,
        1795976038000,
    )
    assert (final.restart_count, final.advice_generation) == (last.restart_count, 3)
    publisher.is_left("4")
    assert publisher.gone(Look({}, {}, frozenset()), known) == []


WATCHFUL = Settings(
    slurm=SlurmSettings(cluster="local"), sac=ADMITTING, watchdog=WatchdogSettings(timeout_s=600, tick_s=5)
)


def watchdog() -> Watchdog:
    return Watchdog(WATCHFUL, SlurmCommands(None, 1))


def ours(**changes: object) -> SlurmJob:
    return replace(job(), **changes)  # type: ignore[arg-type]


def test_a_hold_is_due_after_its_timeout_without_a_break() -> None:
    dog, held = watchdog(), ours()
    assert dog.due([held], [], 0) == []
    assert dog.due([held], [], 599) == []
    assert [due.job_id for due, _ in dog.due([held], [], 600)] == ["1"]


def test_a_break_or_another_attempt_starts_the_time_anew_and_an_unreadable_look_does_not() -> None:
    dog, held = watchdog(), ours()
    dog.due([held], [], 0)
    dog.due([], ["1"], 300)
    assert len(dog.due([held], [], 600)) == 1
    dog.due([], [], 601)
    assert dog.due([held], [], 700) == []
    again = replace(held, restart_count=2, submit_time=held.submit_time + 700)
    assert dog.due([again], [], 1_300) == []
    assert len(dog.due([again], [], 1_900)) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"restart_count": 0},
        {"reason": "JobHeldAdmin"},
        {"description": ""},
        {"priority": 5},
        {"partition": "other"},
        {"comment": ""},
        {"comment": '{"APS":3}'},
        {"comment": '{"APS":{"environment":"other","auto_resume_mode":"requeue"}}'},
        {"comment": '{"APS":{"environment":"test"}}'},
        {"state": AttemptState.RUNNING},
        {"het_leader": 1, "het_offset": 1},
    ],
)
def test_what_is_no_recovery_hold_of_ours_has_no_timer(changes: dict[str, object]) -> None:
    dog = watchdog()
    assert dog.is_ours(ours())
    held = ours(**changes)
    dog.due([held], [], 0)
    assert dog.due([held], [], 10_000) == []
