"""Killed in the middle, doubled, or left alone with Slurm: no action is done twice, and no hold lasts for ever."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sac.slurm.squeue import SlurmJob
from schemas.topics import FLEET
from schemas.vocabulary import AttemptState, DesiredState, Operation, Outcome, Refusal
from tests.sac.parts import ACT, Bus, Cluster, Room, advice, comment, until

pytestmark = [pytest.mark.stack, pytest.mark.slurm]
SHORT = {"RECOVERY_SLURM__COMMAND_TIMEOUT_S": "1.5"}  # an unanswered command settles after 4.5 s


def killing_scontrol(folder: Path, *, send: bool) -> dict[str, str]:
    """A scontrol which, at its first requeuehold, kills the controller with -9: before or after the real command."""
    folder.mkdir()
    real = subprocess.run(["which", "scontrol"], capture_output=True, text=True, check=True).stdout.strip()
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


def crash_at_the_hold(cluster: Cluster, bus: Bus, room: Room, folder: Path, *, send: bool) -> SlurmJob:
    """A controller dies at the requeuehold of a job; returns the job as it was before."""
    job_id = cluster.submit("--comment", comment())
    job = cluster.wait(job_id, AttemptState.RUNNING)
    with room.process("sac", ACT, SHORT, killing_scontrol(folder, send=send)) as first:
        bus.emit(advice(job, DesiredState.RESTARTED, exclude=job.nodes))
        assert first.wait(timeout=30) == -signal.SIGKILL
    assert [i.operation for i in bus.intents(job_id)] == [Operation.REQUEUE_HOLD]
    assert bus.outcomes(job_id) == []
    return job


def test_killed_between_intent_and_command_nothing_is_asked_twice(
    cluster: Cluster, bus: Bus, room: Room, tmp_path: Path
) -> None:
    job = crash_at_the_hold(cluster, bus, room, tmp_path / "bin", send=False)
    with room.process("sac", ACT, SHORT):
        refusal = until("it is not asked again", lambda: next(iter(bus.refusals(job.job_id)), None))
    assert refusal.reason is Refusal.UNKNOWN_STATE
    assert [o.outcome for o in bus.outcomes(job.job_id)] == [Outcome.UNKNOWN]
    assert len(bus.intents(job.job_id)) == 1
    assert cluster.job(job.job_id).restart_count == 0


def test_killed_between_command_and_outcome_the_restart_is_completed_once(
    cluster: Cluster, bus: Bus, room: Room, tmp_path: Path
) -> None:
    job = crash_at_the_hold(cluster, bus, room, tmp_path / "bin", send=True)
    with room.process("sac", ACT, SHORT):
        second = cluster.wait(job.job_id, AttemptState.RUNNING, restarts=1)
    assert second.nodes != job.nodes
    assert [i.operation for i in bus.intents(job.job_id)] == [
        Operation.REQUEUE_HOLD,
        Operation.UPDATE_CONSTRAINTS,
        Operation.RELEASE,
    ]
    hold, update = bus.outcomes(job.job_id)[0], bus.intents(job.job_id)[1]
    assert hold.outcome is Outcome.UNKNOWN
    assert update.intended_ms >= hold.ended_ms + 4500  # nothing before the lost command's effect could no longer arrive
    assert cluster.job(job.job_id).restart_count == 1


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
