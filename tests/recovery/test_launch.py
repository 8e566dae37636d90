"""Starting many processes and waiting for them: with a real supervisor and real processes of ours."""

import fcntl
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from infra.local.daemon import Daemon
from infra.local.folder import DataFolder
from infra.local.keeper import Child
from infra.local.supervisor import Supervisor
from recovery.bring_up import bring_down
from recovery.launch import NotReadyError, children, wait_ready
from recovery.overview import Row, look
from recovery.process import EXIT_SETTINGS
from recovery.run_files import forget_dead, read_run_files
from recovery.settings import SacSettings, Settings, WatchdogSettings, load_settings
from tests.recovery.probes import START, UNTIL_STOPPED, within_deadline

pytestmark = pytest.mark.stack  # not pure: starts real processes
WAIT_S = 15.0
GIVEN_UP_S = 60.0


def quiet(_sentence: str) -> None:
    """Take a sentence of progress."""


def probe(data: Path, slot: int, body: str) -> Child:
    code = START.format(body=body, slot=slot)
    return Child(f"probe-{slot}", (sys.executable, "-c", code), {"RECOVERY_DATA": str(data)})


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    supervisor = Supervisor(tmp_path)
    try:
        yield supervisor
    finally:
        supervisor.stop()


def row_of(data: Path, name: str) -> Row:
    return next(row for row in look(data).rows if row.process.name == name)


def test_it_waits_until_all_are_ready_and_tells_each(tmp_path: Path, supervisor: Supervisor) -> None:
    late = "    context.stop.wait(0.5)" + UNTIL_STOPPED
    supervisor.start([probe(tmp_path, 0, UNTIL_STOPPED), probe(tmp_path, 1, late)], quiet)
    told: list[str] = []
    statuses = wait_ready(tmp_path, {"probe-0", "probe-1"}, WAIT_S, told.append)
    assert [status.name for status in statuses] == ["probe-0", "probe-1"]
    assert sorted(told) == ["probe-0 is ready", "probe-1 is ready"]


def test_a_wrong_setting_ends_the_wait_at_once_with_the_last_words(tmp_path: Path, supervisor: Supervisor) -> None:
    supervisor.start([probe(tmp_path, 0, "    raise SettingsError('slurm.cluster is x; it says y')")], quiet)
    began = time.monotonic()
    with pytest.raises(NotReadyError, match=r"probe-0 ended with code 2, log .*slurm.cluster is x; it says y"):
        wait_ready(tmp_path, {"probe-0"}, 60, quiet)
    assert time.monotonic() - began < WAIT_S


def test_what_is_not_ready_in_time_says_why(tmp_path: Path, supervisor: Supervisor) -> None:
    body = "    context.health.not_ready('no Kafka')\n    context.stop.wait(60)"
    supervisor.start([probe(tmp_path, 0, body)], quiet)
    within_deadline(lambda: True if read_run_files(tmp_path) else None)
    with pytest.raises(NotReadyError, match=r"not ready within 1 s: probe-0: no Kafka, log"):
        wait_ready(tmp_path, {"probe-0"}, 1.0, quiet)


def test_a_killed_process_is_back_and_the_overview_counts_it(tmp_path: Path, supervisor: Supervisor) -> None:
    supervisor.start([probe(tmp_path, 0, UNTIL_STOPPED)], quiet)
    [before] = wait_ready(tmp_path, {"probe-0"}, WAIT_S, quiet)
    assert row_of(tmp_path, "probe-0").restarts == 0
    assert before.pid is not None
    os.kill(before.pid, signal.SIGKILL)

    def back() -> Row | None:
        row = row_of(tmp_path, "probe-0")
        return row if row.process.ready and row.process.pid != before.pid else None

    assert within_deadline(back).restarts == 1
    assert len(look(tmp_path).rows) == 1


def test_the_overview_shows_a_process_that_keeps_ending(tmp_path: Path, supervisor: Supervisor) -> None:
    supervisor.start([Child("probe-0", (sys.executable, "-c", "raise SystemExit(3)"))], quiet)
    row = within_deadline(lambda: seen if "code 3" in (seen := row_of(tmp_path, "probe-0")).process.health else None)
    assert not row.process.ready
    assert not look(tmp_path).well


def test_a_process_with_a_wrong_setting_is_given_up_says_why_and_is_tried_again_by_the_next_start(
    tmp_path: Path, supervisor: Supervisor
) -> None:
    mended = tmp_path / "mended"
    body = f"""
    from pathlib import Path
    if not Path({str(mended)!r}).exists():
        raise SettingsError('slurm.cluster is x; it says y')
{UNTIL_STOPPED}"""
    wrong = replace(probe(tmp_path, 0, body), hopeless=EXIT_SETTINGS)
    supervisor.start([wrong], quiet)
    deadline = time.monotonic() + GIVEN_UP_S
    while not (row := row_of(tmp_path, "probe-0")).given_up:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert row.process.health == (
        "given up after 4 starts: stopped by a setting: slurm.cluster is x; it says y; correct it, then `recovery up` "
        f"(log {tmp_path / 'log' / 'probe-0.log'})"
    )
    assert not look(tmp_path).well
    mended.touch()
    supervisor.start([wrong], quiet)
    wait_ready(tmp_path, {"probe-0"}, WAIT_S, quiet)


def test_stopping_leaves_no_run_file(tmp_path: Path, supervisor: Supervisor) -> None:
    supervisor.start([probe(tmp_path, 0, UNTIL_STOPPED)], quiet)
    [status] = wait_ready(tmp_path, {"probe-0"}, WAIT_S, quiet)
    assert status.pid is not None
    os.kill(status.pid, signal.SIGKILL)
    supervisor.stop()
    forget_dead(tmp_path)
    assert read_run_files(tmp_path) == []
    assert look(tmp_path).nothing_runs


def test_every_process_gets_the_same_settings_and_deciders_a_slot_each(tmp_path: Path) -> None:
    environment = {"RECOVERY_DATA": str(tmp_path), "RECOVERY_DECIDE__SLOTS": "2", "RECOVERY_SAC__PARTITIONS": "gpu"}
    config = tmp_path / "mine.toml"
    config.touch()
    started = children(load_settings(config, environment), config)
    assert {"watch", "ask", "relay", "project", "gateway", "sac", "watchdog", "decide-0", "decide-1", "nodes-0"} == {
        child.name for child in started
    }
    for child in started:
        assert child.hopeless == EXIT_SETTINGS
        assert child.env["RECOVERY_DATA"] == str(tmp_path)
        assert child.env["RECOVERY_CONFIG"] == str(config)
        assert "RECOVERY_SAC__PARTITIONS" not in child.env, "what the operator set is inherited"
        assert child.env["RECOVERY_SAC__ENVIRONMENT"] == "local"


def environment_of(name: str, settings: Settings) -> Mapping[str, str]:
    return next(child.env for child in children(settings, None) if child.name == name)


def test_a_controller_that_may_hold_jobs_starts_with_a_watchdog_that_may_release_them() -> None:
    may_act = Settings(sac=SacSettings(acknowledge_scheduler_actions=True))
    env = environment_of("watchdog", may_act)
    assert (env["RECOVERY_WATCHDOG__MODE"], env["RECOVERY_WATCHDOG__ACKNOWLEDGE"]) == ("act", "true")


@pytest.mark.parametrize(
    "settings",
    [
        Settings(),
        Settings(sac=SacSettings(acknowledge_scheduler_actions=True), watchdog=WatchdogSettings(mode="observe")),
    ],
)
def test_a_watchdog_is_left_as_set_and_observes_beside_a_controller_that_may_not_act(settings: Settings) -> None:
    assert "RECOVERY_WATCHDOG__MODE" not in environment_of("watchdog", settings)


def test_a_server_that_does_not_answer_is_something_that_runs(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    folder.create()
    broker = Daemon("kafka", folder)
    broker.start((sys.executable, "-c", "import time; time.sleep(600)"))
    try:
        [row] = [row for row in look(tmp_path).parts if row.running]
        assert (row.part.name, row.part.healthy, row.health) == ("kafka", False, "does not answer")
        assert not look(tmp_path).nothing_runs
    finally:
        broker.stop(seconds=5.0)
    assert look(tmp_path).nothing_runs


def test_down_waits_for_another_up_or_down_of_the_same_folder(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    said: list[str] = []
    with ThreadPoolExecutor(1) as pool:
        with (tmp_path / "run" / "up.lock").open("w") as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            down = pool.submit(bring_down, tmp_path, said.append)
            within_deadline(lambda: True if said else None)
            assert said == ["waiting for another `recovery up` or `recovery down` to end"]
            assert not down.done()
        down.result(timeout=WAIT_S)
    assert said[1:] == ["ending the processes", "ending the stack"]
