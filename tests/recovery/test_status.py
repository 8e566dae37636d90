"""What `recovery status` learns from a process, by asking real ones."""

from pathlib import Path

import pytest

from recovery.figures import Lag
from recovery.run_files import read_run_files
from recovery.status import ask, ask_all
from tests.recovery.probes import UNTIL_STOPPED, record_of, started, within_deadline

pytestmark = pytest.mark.stack  # not pure: starts real processes

LAGGING = """
    from recovery.metrics import LAG
    LAG.labels("recovery.journal", "decide").set(12)
    LAG.labels("recovery.jobs", "decide").set(0)
    context.announce("http", "http://127.0.0.1:1")
"""


def test_a_ready_process_shows_its_addresses_and_its_lag(tmp_path: Path) -> None:
    with started(tmp_path, LAGGING + UNTIL_STOPPED, slot=0) as process:
        within_deadline(lambda: True if ask(record_of(tmp_path, process)).ready else None)
        status = ask(record_of(tmp_path, process))
    assert (status.name, status.pid, status.running, status.health) == ("probe-0", process.pid, True, "ready")
    assert status.lag == (Lag("recovery.journal", "decide", 12), Lag("recovery.jobs", "decide", 0))
    assert status.addresses == {"http": "http://127.0.0.1:1"}


def test_a_process_that_is_not_ready_says_why(tmp_path: Path) -> None:
    with started(tmp_path, "    context.health.not_ready('no Kafka')\n    context.stop.wait(60)") as process:
        status = within_deadline(
            lambda: seen if (seen := ask(record_of(tmp_path, process))).health == "no Kafka" else None
        )
    assert (status.running, status.ready) == (True, False)


def test_a_killed_process_is_not_running(tmp_path: Path) -> None:
    with started(tmp_path, UNTIL_STOPPED) as process:
        record_of(tmp_path, process)
    [status] = ask_all(read_run_files(tmp_path))
    assert (status.running, status.ready, status.health) == (False, False, "not running")


def test_a_stopped_process_does_not_answer_and_is_not_taken_for_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recovery.status.ASK_TIMEOUT_S", 0.5)
    body = "    import os, signal\n    os.kill(os.getpid(), signal.SIGSTOP)"
    with started(tmp_path, body) as process:
        status = ask(record_of(tmp_path, process))
    assert (status.running, status.ready) == (True, False)
    assert status.health.startswith("does not answer on http://127.0.0.1:")
