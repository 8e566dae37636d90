"""Advice carried out on a real cluster, and what is left alone there."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from schemas.vocabulary import AttemptState, DesiredState, Hold, Mode, Operation, Outcome, Refusal
from tests.sac.parts import Bus, Cluster, advice, comment, until, view_of

pytestmark = [pytest.mark.stack, pytest.mark.slurm, pytest.mark.usefixtures("acting")]


def test_a_restart_holds_excludes_and_releases_and_the_job_runs_elsewhere(cluster: Cluster, bus: Bus) -> None:
    job_id = cluster.submit("-x", "node4", "--comment", comment())
    first = cluster.wait(job_id, AttemptState.RUNNING)

    bus.emit(advice(first, DesiredState.RESTARTED, exclude=(*first.nodes, "no-such-node"), generation=7))

    second = cluster.wait(job_id, AttemptState.RUNNING, restarts=1)
    assert second.nodes != first.nodes
    assert set(second.excluded_nodes) == {"node4", *first.nodes}
    running = until(
        "a fresh look for this generation",
        lambda: next((o for o in bus.observed(job_id) if o.restart_count == 1 and o.nodes == second.nodes), None),
    )
    assert running.advice_generation == 7
    assert running.log_paths == (str(cluster.folder / f"slurm-{job_id}.out"),)
    assert Path(running.log_paths[0]).exists()
    assert [i.operation for i in bus.intents(job_id)] == [
        Operation.REQUEUE_HOLD,
        Operation.UPDATE_CONSTRAINTS,
        Operation.RELEASE,
    ]
    assert {o.outcome for o in bus.outcomes(job_id)} == {Outcome.ACCEPTED}
    assert bus.refusals(job_id) == []
    time.sleep(1.5)  # several more passes with the Advice still open
    assert len(bus.intents(job_id)) == 3
    assert cluster.job(job_id).restart_count == 1


def test_no_look_between_two_attempts_is_published(cluster: Cluster, bus: Bus) -> None:
    job_id = cluster.submit("--comment", comment())
    first = cluster.wait(job_id, AttemptState.RUNNING)
    bus.emit(advice(first, DesiredState.RESTARTED))
    cluster.wait(job_id, AttemptState.RUNNING, restarts=1)

    shown = {(o.restart_count, o.submit_time) for o in bus.observed(job_id)}
    assert len(shown) == 2
    assert all(submitted > first.submit_time for count, submitted in shown if count == 1)


def test_an_attempt_that_just_failed_is_held_early_and_terminating_cancels_that_successor(
    cluster: Cluster, bus: Bus
) -> None:
    job_id = cluster.submit("--comment", comment(), script="sleep 2; exit 3")
    first = cluster.wait(job_id, AttemptState.RUNNING)
    bus.emit(view_of(first))

    def held() -> bool:
        return any(o.state is AttemptState.HELD and o.hold is Hold.REQUEUE for o in bus.observed(job_id))

    until("the failed attempt is requeued into a hold", held)
    assert [(i.operation, i.generation, i.cause) for i in bus.intents(job_id)] == [(Operation.REQUEUE_HOLD, 0, "")]
    failed = [o for o in bus.observed(job_id) if o.state is AttemptState.FAILED]
    assert [o.exit_code for o in failed] in ([3 << 8], [])  # it may be requeued before a look is published

    bus.emit(advice(first, DesiredState.TERMINATED))
    cluster.wait(job_id, AttemptState.CANCELLED, restarts=1)
    assert [i.operation for i in bus.intents(job_id)] == [Operation.REQUEUE_HOLD, Operation.CANCEL]


def test_a_failed_attempt_that_was_held_early_continues_from_its_hold(cluster: Cluster, bus: Bus) -> None:
    job_id = cluster.submit(
        "--comment", comment(), script='[ -n "$SLURM_RESTART_COUNT" ] || { sleep 2; exit 1; }; sleep 300'
    )
    first = cluster.wait(job_id, AttemptState.RUNNING)
    bus.emit(view_of(first))
    cluster.wait(job_id, AttemptState.PENDING, restarts=1)

    bus.emit(advice(first, DesiredState.RESTARTED, exclude=first.nodes))
    second = cluster.wait(job_id, AttemptState.RUNNING, restarts=1)
    assert second.nodes != first.nodes
    assert [i.generation for i in bus.intents(job_id)] == [0, 1, 1]


def test_released_advice_lifts_a_users_hold_but_not_an_admins(cluster: Cluster, bus: Bus) -> None:
    held = cluster.submit("--hold", "--comment", comment())
    locked = cluster.submit("--hold", "--comment", comment())
    cluster.run("scontrol", "hold", locked)
    bus.emit(advice(cluster.job(held), DesiredState.RELEASED))
    bus.emit(advice(cluster.job(locked), DesiredState.RELEASED))

    cluster.wait(held, AttemptState.RUNNING)
    refusal = until("the admin's hold is refused", lambda: next(iter(bus.refusals(locked)), None))
    assert refusal.reason is Refusal.FOREIGN_HOLD
    assert cluster.job(locked).reason == "JobHeldAdmin"
    assert bus.intents(locked) == []


def test_one_task_of_an_array_is_restarted_and_its_neighbour_is_not(cluster: Cluster, bus: Bus) -> None:
    array = cluster.submit("--array", "0-1", "--comment", comment())
    cluster.wait(f"{array}_0", AttemptState.RUNNING)
    first = cluster.wait(f"{array}_1", AttemptState.RUNNING)

    bus.emit(advice(first, DesiredState.RESTARTED))
    cluster.wait(f"{array}_1", AttemptState.RUNNING, restarts=1)
    assert cluster.job(f"{array}_0").restart_count == 0
    assert {i.command.split()[-1] for i in bus.intents(f"{array}_1")} == {f"{array}_1"}
    cluster.run("scancel", array)


def test_delayed_advice_for_attempt_0_never_touches_attempt_2(cluster: Cluster, bus: Bus) -> None:
    job_id = cluster.submit("--comment", comment())
    first = cluster.wait(job_id, AttemptState.RUNNING)
    for restarts in (1, 2):
        cluster.run("scontrol", "requeue", job_id)
        cluster.wait(job_id, AttemptState.PENDING, restarts)
        time.sleep(1.5)  # a relaunch within the same second fails by itself
        cluster.run("scontrol", "update", f"JobId={job_id}", "StartTime=now")
        cluster.wait(job_id, AttemptState.RUNNING, restarts)
    before = cluster.job(job_id)

    for generation, desired in enumerate(DesiredState, start=1):
        late = advice(first, desired, exclude=before.nodes, generation=generation)
        bus.emit(late)
        until(
            f"{desired} is refused",
            lambda g=generation: [r for r in bus.refusals(job_id) if r.generation == g],  # type: ignore[misc]
        )
    assert {r.reason for r in bus.refusals(job_id)} == {Refusal.OTHER_ATTEMPT}
    assert bus.intents(job_id) == []
    after = cluster.job(job_id)
    assert replace(after, priority=0) == replace(before, priority=0)


@pytest.mark.parametrize(
    ("given", "published"),
    [
        (None, 0),
        ("just a note", 0),
        ('{"APS":{"environment":"test-site","mode":"destroy"}}', 1),
        (comment(environment="another-site"), 1),
        (comment(environment=None), 1),
    ],
)
def test_a_job_that_is_not_ours_is_never_touched(cluster: Cluster, bus: Bus, given: str | None, published: int) -> None:
    job_id = cluster.submit(*(("--comment", given) if given else ()))
    job = cluster.wait(job_id, AttemptState.RUNNING)
    bus.emit(advice(job, DesiredState.TERMINATED))
    marker = cluster.submit("--comment", comment())
    until("a later job was seen", lambda: bus.observed(marker))
    time.sleep(1)

    assert cluster.job(job_id) == job
    assert bus.intents(job_id) == []
    seen = bus.observed(job_id)
    assert {o.mode for o in seen} <= {Mode.DISABLED}
    assert (len({o.advice_generation for o in seen}) if published else len(seen)) >= published
    assert bool(seen) is bool(published)
    cluster.run("scancel", marker, job_id)


def test_advice_against_a_completed_attempt_does_nothing(cluster: Cluster, bus: Bus) -> None:
    job_id = cluster.submit("--comment", comment(), script="true")
    job = cluster.wait(job_id, AttemptState.COMPLETED)
    bus.emit(advice(job, DesiredState.RESTARTED))
    refusal = until("it is refused", lambda: next(iter(bus.refusals(job_id)), None))
    assert refusal.reason is Refusal.UNKNOWN_STATE
    assert cluster.job(job_id).restart_count == 0
