"""How every long-running process starts, answers and ends. Each test runs a real process."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from recovery.process import EXIT_CLEAN, EXIT_FENCED, EXIT_INTERNAL, EXIT_SETTINGS
from recovery.run_files import RunRecord, read_run_files
from tests.recovery.probes import DEADLINE_S, UNTIL_STOPPED, record_of, started, within_deadline

pytestmark = pytest.mark.stack  # not pure: starts real processes


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def answer(record: RunRecord, path: str) -> tuple[int, str]:
    response = httpx.get(record.url + path, timeout=5)
    return response.status_code, response.text


def ended(process: subprocess.Popen[str]) -> tuple[int, list[dict[str, object]]]:
    """Wait for the end; return the exit code and the log, a JSON object a line."""
    _, errors = process.communicate(timeout=DEADLINE_S)
    return process.returncode, [json.loads(line) for line in errors.splitlines()]


@pytest.mark.parametrize("wish", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_cleanly_and_takes_its_run_file_away(data: Path, wish: signal.Signals) -> None:
    with started(data, UNTIL_STOPPED) as process:
        record_of(data, process)
        process.send_signal(wish)
        code, log = ended(process)
    assert code == EXIT_CLEAN
    assert [line["event"] for line in log] == ["started", "stopping", "stopped"]
    assert read_run_files(data) == []


def test_a_library_that_takes_the_signals_over_does_not_hide_the_wish_to_stop(data: Path) -> None:
    body = """
    import signal
    signal.signal(signal.SIGTERM, lambda *_: None)
    context.announce("handlers", "replaced")
    assert context.stop.wait(10)
    """
    with started(data, body) as process:
        within_deadline(lambda: True if record_of(data, process).addresses else None)
        process.terminate()
        code, log = ended(process)
    assert code == EXIT_CLEAN
    assert [line["event"] for line in log] == ["started", "stopping", "stopped"]


def test_what_asked_to_be_called_is_called_when_it_should_stop(data: Path) -> None:
    body = """
    import threading
    called = threading.Event()
    context.stop.on_request(called.set)
    context.announce("callback", "set")
    assert called.wait(10)
    assert context.stop.requested
    late = threading.Event()
    context.stop.on_request(late.set)
    assert late.is_set()
    """
    with started(data, body) as process:
        within_deadline(lambda: True if record_of(data, process).addresses else None)
        process.terminate()
        assert ended(process)[0] == EXIT_CLEAN


def test_a_second_signal_ends_a_process_that_does_not_stop(data: Path) -> None:
    with started(data, "    while True: time.sleep(0.05)") as process:
        record_of(data, process)
        process.terminate()
        errors = process.stderr
        assert errors is not None
        within_deadline(lambda: True if "stopping" in errors.readline() else None)
        process.terminate()
        assert process.wait(DEADLINE_S) == -signal.SIGTERM


def test_readiness_flips_and_says_why(data: Path, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    body = f"""
    from pathlib import Path
    flag = Path({str(flag)!r})
    while not context.stop.wait(0.02):
        if not flag.exists():
            continue
        if flag.read_text() == "ready":
            context.health.ready()
        else:
            context.health.not_ready("Kafka does not answer")
    """
    with started(data, body) as process:
        record = record_of(data, process)
        assert answer(record, "/readyz") == (503, "starting\n")
        flag.write_text("ready")
        within_deadline(lambda: True if answer(record, "/readyz") == (200, "ready\n") else None)
        flag.write_text("lost")
        within_deadline(lambda: True if answer(record, "/readyz") == (503, "Kafka does not answer\n") else None)
        assert answer(record, "/healthz") == (200, "alive\n")


def test_it_is_not_alive_when_its_main_loop_stopped_turning(data: Path) -> None:
    with started(data, "    context.health.beat(0.2)\n    context.stop.wait(60)") as process:
        record = record_of(data, process)
        status, text = within_deadline(lambda: seen if (seen := answer(record, "/healthz"))[0] == 503 else None)
        assert (status, text) == (503, "the main loop has not turned for 0 s; its limit is 0.2 s\n")


def test_metrics_are_served(data: Path) -> None:
    body = "    from recovery.metrics import FACTS_WRITTEN\n    FACTS_WRITTEN.labels('ProgressSeen').inc(3)\n"
    with started(data, body + UNTIL_STOPPED) as process:
        record = record_of(data, process)
        within_deadline(lambda: True if answer(record, "/readyz")[0] == 200 else None)
        _, text = answer(record, "/metrics")
        assert 'recovery_facts_written_total{type="ProgressSeen"} 3.0' in text.splitlines()
        assert answer(record, "/elsewhere")[0] == 404


def test_a_crash_is_logged_with_its_stack_and_has_its_own_code(data: Path) -> None:
    with started(data, "    raise RuntimeError('the disk is gone')", slot=3) as process:
        code, log = ended(process)
    assert code == EXIT_INTERNAL
    assert (log[-1]["event"], log[-1]["process"], log[-1]["slot"]) == ("failed", "probe", 3)
    assert "RuntimeError: the disk is gone" in str(log[-1]["exception"])
    assert read_run_files(data) == []


def test_a_fenced_process_has_its_own_code(data: Path) -> None:
    with started(data, "    raise FencedError('another one has slot 0')") as process:
        code, log = ended(process)
    assert code == EXIT_FENCED
    assert (log[-1]["event"], log[-1]["error"]) == ("fenced", "another one has slot 0")
    assert "exception" not in log[-1]


def test_a_wrong_setting_found_while_running_has_its_own_code(data: Path) -> None:
    with started(data, "    raise SettingsError('slurm.cluster is x; the cluster says y')") as process:
        code, log = ended(process)
    assert code == EXIT_SETTINGS
    assert log[-1]["error"] == "slurm.cluster is x; the cluster says y"


def test_a_port_that_is_taken_is_a_wrong_setting(data: Path) -> None:
    with started(data, UNTIL_STOPPED) as first:
        port = record_of(data, first).port
        with started(data, UNTIL_STOPPED, RECOVERY_METRICS__PORT=str(port)) as second:
            code, log = ended(second)
    assert code == EXIT_SETTINGS
    assert f"metrics.port {port}" in str(log[-1]["error"])


def test_a_data_folder_that_cannot_be_made_is_a_wrong_setting(data: Path) -> None:
    data.write_text("a file")
    with started(data, UNTIL_STOPPED) as process:
        code, log = ended(process)
    assert code == EXIT_SETTINGS
    assert str(log[-1]["error"]).startswith(f"data is {str(data)!r}, where nothing can be written")


def test_the_run_file_names_the_slot_and_every_address(data: Path) -> None:
    body = "    context.announce('http', 'http://127.0.0.1:1')\n    context.announce('grpc', '127.0.0.1:2')\n"
    with started(data, body + UNTIL_STOPPED, slot=0) as process:
        record = record_of(data, process)
        within_deadline(lambda: True if answer(record, "/readyz")[0] == 200 else None)
        record = record_of(data, process)
        assert (record.name, record.alive()) == ("probe-0", True)
        assert record.addresses == {"http": "http://127.0.0.1:1", "grpc": "127.0.0.1:2"}
        assert (data / "run" / "probe-0.json").is_file()


def test_two_of_one_kind_have_a_run_file_each(data: Path) -> None:
    with started(data, UNTIL_STOPPED) as first:
        record_of(data, first)
        with started(data, UNTIL_STOPPED) as second:
            record_of(data, second)
            assert {one.pid for one in read_run_files(data)} == {first.pid, second.pid}
            second.terminate()
            assert ended(second)[0] == EXIT_CLEAN
        assert [one.pid for one in read_run_files(data)] == [first.pid]


def test_a_killed_process_leaves_a_file_that_nobody_takes_for_alive_and_its_successor_takes_it_over(
    data: Path,
) -> None:
    with started(data, UNTIL_STOPPED) as first:
        record_of(data, first)
        first.kill()
    [left] = read_run_files(data)
    assert not left.alive()
    with started(data, UNTIL_STOPPED) as second:
        record_of(data, second)
        assert [one.pid for one in read_run_files(data)] == [second.pid]


FULL = """
import errno, sys
from recovery import process
from recovery.settings import load_settings

def full(*_):
    raise OSError(errno.ENOSPC, "No space left on device")

process.RunFile = full
sys.exit(process.run_process("probe", load_settings(), lambda context: None))
"""


def test_a_full_disk_is_no_wrong_setting_so_it_is_started_again(data: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL],
        env=os.environ | {"RECOVERY_DATA": str(data)},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == EXIT_INTERNAL
    assert "No space left on device" in done.stderr
