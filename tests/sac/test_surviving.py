"""Killed in the middle, doubled, or left alone with Slurm: no action is done twice, and no hold lasts for ever."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from pathlib import Path

import pytest

from recovery.process import EXIT_FENCED
from schemas.topics import FLEET
from schemas.vocabulary import AttemptState, DesiredState, Operation, Outcome, Refusal
from tests.sac.parts import ACT, CLUSTER, Bus, Cluster, Room, advice, comment, until

pytestmark = [pytest.mark.stack, pytest.mark.slurm]
SHORT = {"RECOVERY_SLURM__COMMAND_TIMEOUT_S": "1.5"}  # an unanswered command settles after 4.5 s


def killing_scontrol(folder: Path, *, send: bool) -> dict[str, str]:
    """A scontrol which, at its first requeuehold, kills the controller with -9: before or after the real command."""
    folder.mkdir()
    real = shutil.which("scontrol")
    script = folder / "scontrol"
    script.write_text(
        f"""#!{sys.executable}
import os, pathlib, signal, subprocess, sys
fired = pathlib.Path({str(folder / "fired")!r})
if sys.argv[1] == "requeuehold" and not fired.exists():
    fired.touch()
    if {send}:
        subprocess.run([{real!r}, *sys.argv[1:]], check=True)
    timeout = os.getppid()
    controller = int(pathlib.Path(f"/proc/{{timeout}}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(controller, signal.SIGKILL)
    sys.exit(0)
os.execv({real!r}, ["scontrol", *sys.argv[1:]])
"""
    )
    script.chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


def test_killed_at_the_hold_before_or_after_the_command_no_action_is_done_twice(
    cluster: Cluster, bus: Bus, room: Room, tmp_path: Path
) -> None:
    lost, done = (cluster.wait(cluster.submit("--comment", comment()), AttemptState.RUNNING) for _ in range(2))

    # The first controller dies after its intent was recorded, and before the command was sent.
    with room.process("sac", ACT, SHORT, killing_scontrol(tmp_path / "before", send=False)) as first:
        bus.emit(advice(lost, DesiredState.RESTARTED, exclude=lost.nodes))
        assert first.wait(timeout=30) == -signal.SIGKILL
    assert [i.operation for i in bus.intents(lost.job_id)] == [Operation.REQUEUE_HOLD]
    assert bus.outcomes(lost.job_id) == []

    # The second dies when its own command was sent, for another job, and before it could say how that ended.
    bus.emit(advice(done, DesiredState.RESTARTED, exclude=done.nodes))
    with room.process("sac", ACT, SHORT, killing_scontrol(tmp_path / "after", send=True), ready=False) as second:
        assert second.wait(timeout=30) == -signal.SIGKILL
    assert [i.operation for i in bus.intents(done.job_id)] == [Operation.REQUEUE_HOLD]
    assert bus.outcomes(done.job_id) == []

    # The third completes what was begun, and begins anew what was lost, once no effect of either can arrive any more.
    with room.process("sac", ACT, SHORT):
        successor = cluster.wait(done.job_id, AttemptState.RUNNING, restarts=1)
        cluster.wait(lost.job_id, AttemptState.RUNNING, restarts=1)
    assert successor.nodes != done.nodes
    assert [i.operation for i in bus.intents(done.job_id)] == [
        Operation.REQUEUE_HOLD,
        Operation.UPDATE_CONSTRAINTS,
        Operation.RELEASE,
    ]
    hold, update = bus.outcomes(done.job_id)[0], bus.intents(done.job_id)[1]
    assert hold.outcome is Outcome.UNKNOWN
    assert update.intended_ms >= hold.ended_ms + 4_500
    assert cluster.job(done.job_id).restart_count == 1

    first_try, second_try = bus.intents(lost.job_id)[:2]
    assert first_try.action_id == second_try.action_id
    assert second_try.operation is Operation.REQUEUE_HOLD
    assert second_try.intended_ms >= bus.outcomes(lost.job_id)[0].ended_ms + 4_500
    assert [o.outcome for o in bus.outcomes(lost.job_id)[:2]] == [Outcome.UNKNOWN, Outcome.ACCEPTED]
    assert cluster.job(lost.job_id).restart_count == 1


def test_a_second_controller_stands_by_and_takes_over(cluster: Cluster, bus: Bus, room: Room) -> None:
    job_id = cluster.submit("--comment", comment())
    job = cluster.wait(job_id, AttemptState.RUNNING)
    with room.process("sac", ACT) as leader, room.process("sac", ACT, ready=False) as second:
        looks = len(bus.observed(job_id))
        time.sleep(2)
        assert len(bus.observed(job_id)) == looks  # two that look would publish everything twice
        leader.send_signal(signal.SIGTERM)
        assert leader.wait(timeout=20) == 0
        bus.emit(advice(job, DesiredState.TERMINATED))
        cluster.wait(job_id, AttemptState.CANCELLED)
        assert second.poll() is None
    assert [i.operation for i in bus.intents(job_id)] == [Operation.CANCEL]


def test_a_controller_whose_place_was_taken_sends_nothing_and_exits_to_be_started_again(
    cluster: Cluster, bus: Bus, room: Room
) -> None:
    job = cluster.wait(cluster.submit("--comment", comment()), AttemptState.RUNNING)
    with room.process("sac", ACT) as stale:
        bus.take_the_place_of(CLUSTER)  # as one does that leads after this one was cut off
        bus.emit(advice(job, DesiredState.TERMINATED))
        assert stale.wait(timeout=20) == EXIT_FENCED
    assert bus.intents(job.job_id) == []
    assert cluster.job(job.job_id) == job


def test_in_observe_mode_the_refusal_is_recorded_once_and_slurm_is_untouched(
    cluster: Cluster, bus: Bus, room: Room
) -> None:
    job_id = cluster.submit("--comment", comment())
    job = cluster.wait(job_id, AttemptState.RUNNING)
    failing = cluster.submit("--comment", comment(mode="observe"), script="exit 1")
    with room.process("sac"):  # acknowledged by nobody
        bus.emit(advice(job, DesiredState.RESTARTED, exclude=job.nodes))
        refusal = until("it is refused", lambda: next(iter(bus.refusals(job_id)), None))
        time.sleep(1.5)
    assert refusal.reason is Refusal.OBSERVE_MODE
    assert "SLURM_ADVISOR_ACKNOWLEDGE_SCHEDULER_ACTIONS" in refusal.detail
    assert len(bus.refusals(job_id)) == 1
    with room.process("sac", ACT):  # what was issued while only observing is stale now
        until("it is stale", lambda: [r for r in bus.refusals(job_id) if r.reason is Refusal.STALE])
    assert bus.intents(job_id) == bus.intents(failing) == []
    assert cluster.job(job_id) == job
    assert cluster.restarts_accounted(job_id) == cluster.restarts_accounted(failing) == 0


def test_while_slurm_does_not_answer_nothing_is_known_and_nothing_is_done(
    cluster: Cluster, bus: Bus, room: Room, tmp_path: Path
) -> None:
    job_id = cluster.submit("--comment", comment())
    job = cluster.wait(job_id, AttemptState.RUNNING)
    broken = tmp_path / "bin"
    broken.mkdir()
    (broken / "squeue").write_text("#!/bin/sh\necho 'slurm_load_jobs error: Socket timed out' >&2; exit 1\n")
    (broken / "squeue").chmod(0o755)
    with room.process("sac", ACT, {"PATH": f"{broken}:{os.environ['PATH']}"}, ready=False):
        bus.emit(advice(job, DesiredState.TERMINATED))
        seen = until("the heartbeat says so", lambda: [e for e in bus.events(FLEET) if "Socket timed out" in e.detail])
    assert all(heartbeat.unknown for heartbeat in seen)
    assert (bus.observed(job_id), bus.intents(job_id), bus.refusals(job_id)) == ([], [], [])
    assert cluster.job(job_id) == job


def test_a_job_that_left_is_told_by_accounting_and_one_that_accounting_calls_running_is_waited_for(
    cluster: Cluster, bus: Bus, room: Room, tmp_path: Path
) -> None:
    ended, running = cluster.submit("--comment", comment(), script="exit 3"), cluster.submit("--comment", comment())
    cluster.wait(running, AttemptState.RUNNING)
    failed = cluster.wait(ended, AttemptState.FAILED)
    hidden = tmp_path / "hidden"
    squeue = shutil.which("squeue")
    (tmp_path / "squeue").write_text(
        f"""#!{sys.executable}
import json, pathlib, subprocess, sys
shown = subprocess.run([{squeue!r}, *sys.argv[1:]], capture_output=True, text=True, check=True).stdout
if pathlib.Path({str(hidden)!r}).exists():
    document = json.loads(shown)
    document["jobs"] = [job for job in document["jobs"] if str(job["job_id"]) not in {(ended, running)!r}]
    shown = json.dumps(document)
print(shown)
"""
    )
    (tmp_path / "squeue").chmod(0o755)
    with room.process("sac", {"PATH": f"{tmp_path}:{os.environ['PATH']}"}):
        until("both were seen", lambda: bus.observed(ended) and bus.observed(running))
        hidden.touch()
        final = until("it left", lambda: [o for o in bus.observed(ended) if not o.in_controller])[-1]
        time.sleep(1.5)
        assert all(o.in_controller for o in bus.observed(running))
    assert (final.state, final.exit_code, final.submit_time) == (AttemptState.FAILED, 3 << 8, failed.submit_time)
    assert final.end_ms == failed.end_time * 1000
    cluster.run("scancel", running)


def test_the_watchdog_releases_old_recovery_holds_with_everything_else_down(cluster: Cluster, room: Room) -> None:
    ours, kept, foreign, first, off = (
        cluster.submit("--comment", comment()),
        cluster.submit("--comment", comment()),
        cluster.submit("--comment", comment(environment="another-site")),
        cluster.submit("--hold", "--comment", comment()),
        cluster.submit("--comment", comment(auto_resume_mode=None)),
    )
    for job_id in (ours, kept, foreign, off):
        cluster.wait(job_id, AttemptState.RUNNING)
        cluster.run("scontrol", "requeuehold", job_id)
        cluster.wait(job_id, AttemptState.PENDING, restarts=1)
    cluster.run("scontrol", "hold", kept)
    nothing = {"RECOVERY_KAFKA__BOOTSTRAP": "127.0.0.1:1", "RECOVERY_REGISTRY__URL": "http://127.0.0.1:1"}
    quick = {"RECOVERY_WATCHDOG__TICK_S": "0.2", "RECOVERY_WATCHDOG__TIMEOUT_S": "2"}
    act = {"RECOVERY_WATCHDOG__MODE": "act", "RECOVERY_WATCHDOG__ACKNOWLEDGE": "true"}

    with room.process("watchdog", nothing, quick, {"RECOVERY_WATCHDOG__MODE": "act"}):  # not acknowledged
        time.sleep(3)
        assert cluster.job(ours).priority == 0
    with room.process("watchdog", nothing, quick, act):
        started = time.monotonic()
        until("our hold is released", lambda: cluster.job(ours).priority != 0)
        assert time.monotonic() - started > 1.5
        cluster.wait(ours, AttemptState.RUNNING, restarts=1)
    assert [cluster.job(job_id).priority for job_id in (kept, foreign, first, off)] == [0, 0, 0, 0]
    cluster.run("scancel", ours, kept, foreign, first, off)
