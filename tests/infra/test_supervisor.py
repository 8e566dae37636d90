"""The supervisor keeps our processes running, backs off, and leaves nothing behind."""

import itertools
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.local.folder import DataFolder
from infra.local.keeper import Child, ChildStatus, Keeper
from infra.local.process import Process, spawn
from infra.local.supervisor import Supervisor, SupervisorStatus
from tests.infra.cluster import wait_for

pytestmark = pytest.mark.stack  # real processes, not pure

SLEEPER = (sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)")
DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    supervisor = Supervisor(tmp_path)
    yield supervisor
    supervisor.stop()


def child(supervisor: Supervisor, name: str) -> ChildStatus:
    return next(status for status in supervisor.status().children if status.name == name)


def running(supervisor: Supervisor, name: str) -> Process:
    """Waits until the child runs."""
    wait_for(lambda: any(status.name == name and status.running for status in supervisor.status().children))
    process = child(supervisor, name).process
    assert process is not None
    return process


def command_line(pid: Path) -> str:
    try:
        return (pid / "cmdline").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""  # gone meanwhile


def own_process(supervisor: Supervisor, tmp_path: Path) -> Process:
    assert supervisor.status().running
    process = Process.load(tmp_path / "run" / "supervisor-process.json")
    assert process is not None
    return process


def test_a_program_whose_launcher_gives_way_to_it_is_alive_all_the_while(tmp_path: Path) -> None:
    script = "import os, sys; os.execv(sys.argv[1], sys.argv[1:])"
    launcher = (sys.executable, "-c", script, *(sys.executable, "-c", script) * 20)
    process = spawn(SLEEPER, env={}, log=tmp_path / "log", launcher=launcher, record=tmp_path / "record")
    try:
        looks = 0
        while not (tmp_path / "log").read_text():
            assert process.alive()
            looks += 1
        assert looks > 100
    finally:
        process.kill()


def test_a_killed_child_is_started_again_and_the_others_left_alone(supervisor: Supervisor, tmp_path: Path) -> None:
    supervisor.start([Child("one", SLEEPER), Child("two", SLEEPER)], print)
    one, two = running(supervisor, "one"), running(supervisor, "two")
    wait_for(lambda: (tmp_path / "log" / "one.log").read_text() == "up\n")
    one.send(signal.SIGKILL)
    wait_for(lambda: child(supervisor, "one").restarts == 1 and child(supervisor, "one").running)

    assert child(supervisor, "one").last_exit == -signal.SIGKILL
    assert running(supervisor, "one") != one
    assert running(supervisor, "two") == two
    wait_for(lambda: (tmp_path / "log" / "one.log").read_text() == "up\nup\n")


def test_a_child_that_fails_at_once_is_tried_more_and_more_rarely(supervisor: Supervisor, tmp_path: Path) -> None:
    failing = (sys.executable, "-c", "import time; print(time.time()); raise SystemExit(3)")
    supervisor.start([Child("failing", failing)], print)
    wait_for(lambda: child(supervisor, "failing").restarts >= 4)

    assert child(supervisor, "failing").last_exit == 3
    starts = [float(line) for line in (tmp_path / "log" / "failing.log").read_text().split()][:4]
    gaps = [later - earlier for earlier, later in itertools.pairwise(starts)]
    assert gaps[0] >= 0.2
    assert gaps[1] >= 0.4
    assert gaps[2] >= 0.8


def test_a_child_that_says_it_can_t_succeed_is_given_up_after_a_few_ever_later_starts(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    folder.create()
    keeper = Keeper(Child("wrong", (sys.executable, "-c", "raise SystemExit(2)"), hopeless=2), folder)
    now, starts = 0.0, []
    while not keeper.status().given_up:
        if keeper.look(now) and keeper.process is not None:
            starts.append(now)
            process = keeper.process
            assert process.wait(10.0)
            assert keeper.look(now)
        now += 0.5
        assert now < 100.0

    assert starts == [0.0, 1.0, 4.0, 13.0]
    assert keeper.status() == ChildStatus("wrong", None, restarts=3, last_exit=2, given_up=True)
    assert not keeper.look(now + 1000.0)


def test_a_program_that_is_not_there_is_said_in_its_log_and_tried_again(supervisor: Supervisor, tmp_path: Path) -> None:
    supervisor.start([Child("absent", ("/no/such/program",))], print)
    wait_for(lambda: child(supervisor, "absent").restarts >= 1)

    assert child(supervisor, "absent").last_exit == 127
    assert "/no/such/program is not installed" in (tmp_path / "log" / "absent.log").read_text()


def test_sigterm_ends_every_child_and_the_supervisor(supervisor: Supervisor, tmp_path: Path) -> None:
    supervisor.start([Child("one", SLEEPER), Child("two", SLEEPER)], print)
    one, two = running(supervisor, "one"), running(supervisor, "two")
    me = own_process(supervisor, tmp_path)
    me.send(signal.SIGTERM)

    assert me.wait(15.0)
    assert not one.alive()
    assert not two.alive()
    assert not supervisor.status().running


def test_a_child_deaf_to_sigterm_is_killed_once_its_time_is_over(tmp_path: Path) -> None:
    supervisor = Supervisor(tmp_path, grace_seconds=1.0)
    supervisor.start([Child("deaf", (sys.executable, "-c", DEAF))], print)
    deaf = running(supervisor, "deaf")
    wait_for(lambda: (tmp_path / "log" / "deaf.log").read_text() == "up\n")
    began = time.monotonic()
    supervisor.stop()

    assert not deaf.alive()
    assert 1.0 <= time.monotonic() - began < 9.0


def test_stop_finds_the_children_of_a_killed_supervisor(supervisor: Supervisor, tmp_path: Path) -> None:
    supervisor.start([Child("one", SLEEPER)], print)
    one = running(supervisor, "one")
    own_process(supervisor, tmp_path).send(signal.SIGKILL)
    assert one.alive()
    supervisor.stop()

    assert not one.alive()
    assert supervisor.status().children == ()


def test_a_new_supervisor_ends_leftovers_also_those_that_were_not_on_record(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    supervisor.start([Child("one", SLEEPER)], print)
    one = running(supervisor, "one")
    own_process(supervisor, tmp_path).send(signal.SIGKILL)
    (tmp_path / "run" / "supervisor.json").unlink()
    supervisor.start([Child("two", SLEEPER)], print)

    assert not one.alive()
    assert [status.name for status in supervisor.status().children] == ["two"]


def test_a_record_that_can_t_be_written_ends_nobody_and_is_written_later(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    supervisor.start([Child("one", SLEEPER)], print)
    one = running(supervisor, "one")
    wait_for(lambda: (tmp_path / "log" / "one.log").read_text() == "up\n")
    (tmp_path / "run" / "supervisor.tmp").mkdir()  # in the way of every write, as a full disk would be
    one.send(signal.SIGKILL)
    wait_for(lambda: (tmp_path / "log" / "one.log").read_text() == "up\nup\n")
    assert child(supervisor, "one").restarts == 0
    assert supervisor.status().running
    (tmp_path / "run" / "supervisor.tmp").rmdir()
    wait_for(lambda: child(supervisor, "one").restarts == 1 and child(supervisor, "one").running)


def test_a_process_that_can_t_be_put_on_record_is_ended(tmp_path: Path) -> None:
    mark = f"a name of its own: {tmp_path}"
    argv = (sys.executable, "-c", f"import time; time.sleep(600)  # {mark}")
    with pytest.raises(FileNotFoundError):
        spawn(argv, env={}, log=tmp_path / "log", record=tmp_path / "no such folder" / "record.json")
    assert not [pid for pid in Path("/proc").glob("[0-9]*") if mark in command_line(pid)]


def test_records_that_a_loss_of_power_tore_stop_nobody(supervisor: Supervisor, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    for name in ("supervisor.json", "supervisor-process.json"):
        (tmp_path / "run" / name).touch()
    assert supervisor.status() == SupervisorStatus(running=False, children=(), parts=())
    supervisor.start([Child("one", SLEEPER)], print)
    running(supervisor, "one")


def test_a_child_gets_its_environment(supervisor: Supervisor, tmp_path: Path) -> None:
    speaker = (sys.executable, "-c", "import os, time; print(os.environ['WORD'], flush=True); time.sleep(600)")
    supervisor.start([Child("speaker", speaker, {"WORD": "given"})], print)
    running(supervisor, "speaker")
    wait_for(lambda: (tmp_path / "log" / "speaker.log").read_text() == "given\n")
