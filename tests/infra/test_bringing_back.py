"""A part that dies is brought back by the supervisor that tends it, and stays down when it was told to end."""

import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.local.daemon import Daemon
from infra.local.folder import DataFolder
from infra.local.ports import Ports
from infra.local.process import Process
from infra.local.stack import Stack
from infra.local.supervisor import Supervisor
from infra.local.tender import Tended
from recovery.overview import PartRow, look
from tests.infra.cluster import wait_for

pytestmark = pytest.mark.stack

BACK_WITHIN_S = 15.0
PARTS = ("kafka", "postgres")


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A broker and a PostgreSQL with a supervisor that tends them and has nothing else to do."""
    stack = Stack(tmp_path_factory.mktemp("own"))
    supervisor = Supervisor(stack.data_folder)
    try:
        stack.start(print, only=PARTS)
        supervisor.start([], print, [Tended(name, stack.parts[name].daemons) for name in PARTS])
        yield stack
    finally:
        supervisor.stop()
        stack.stop()


def server(stack: Stack, name: str) -> Process | None:
    return Daemon(name, DataFolder(stack.data_folder)).process()


def kill(stack: Stack, name: str) -> Process:
    process = server(stack, name)
    assert process is not None
    process.send(signal.SIGKILL)
    assert process.wait(5.0)
    return process


def shown(stack: Stack, name: str) -> PartRow:
    return next(row for row in look(stack.data_folder).parts if row.part.name == name)


def test_a_killed_broker_and_a_killed_database_are_back_within_15_s_and_status_counts_it(own: Stack) -> None:
    addresses = {name: dict(own.parts[name].endpoints) for name in PARTS}
    began = time.monotonic()
    before = {name: kill(own, name) for name in PARTS}
    wait_for(lambda: any("it is being started again" in shown(own, name).health for name in PARTS))
    wait_for(lambda: all(own.parts[name].healthy() for name in PARTS))
    took = time.monotonic() - began

    print(f"both answer after {took:.1f} s")
    assert took <= BACK_WITHIN_S
    for name in PARTS:
        assert server(own, name) != before[name]
        assert own.parts[name].endpoints == addresses[name]
        wait_for(lambda name=name: shown(own, name).restarts == 1)  # type: ignore[misc]
        assert shown(own, name).health == "answers"


def test_what_keeps_a_part_from_coming_back_is_said_and_it_comes_back_when_that_is_over(own: Stack) -> None:
    port = Ports(own.data_folder / "ports.json").known("postgres")
    assert port is not None
    kill(own, "postgres")
    with socket.create_server(("127.0.0.1", port)):
        wait_for(lambda: "starts have failed" in shown(own, "postgres").health)
        assert f"port {port} of postgres is taken" in shown(own, "postgres").health
    wait_for(lambda: shown(own, "postgres").restarts == 2)
    assert shown(own, "postgres").health == "answers"


def test_a_part_that_was_told_to_end_stays_down(own: Stack) -> None:
    restarts = shown(own, "postgres").restarts
    own.parts["postgres"].stop()
    kill(own, "kafka")
    own.stop()
    time.sleep(3.0)  # a start that was under way would be seen by now

    assert server(own, "kafka") is None
    assert server(own, "postgres") is None
    assert shown(own, "postgres").restarts == restarts
    assert list(Path(own.data_folder).glob("endpoints.json")) == []
