"""Every part of a stack keeps its data through stop, start and kill -9, starts once, and meets no other stack."""

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import psycopg
import pytest
from confluent_kafka import Consumer, IsolationLevel, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from infra.local.endpoints import Endpoints, StackNotUp
from infra.local.parts import PartFailed
from infra.local.process import Process
from infra.local.stack import Stack
from infra.local.supervisor import Supervisor
from infra.local.tender import Tended
from tests.infra.cluster import FINAL, accounted, ask, field, wait_for, wait_for_state


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack beside the session's, which these tests may kill. Its parts are started by the tests."""
    stack = Stack(tmp_path_factory.mktemp("own"))
    yield stack
    stack.stop()
    assert _processes_of(stack) == []


def _processes_of(stack: Stack) -> list[str]:
    """Command lines of all processes that name the stack's folder."""
    shown = subprocess.run(["ps", "-eww", "-o", "args="], capture_output=True, text=True, check=True).stdout
    return [line for line in shown.splitlines() if str(stack.data_folder) in line]


def _processes(stack: Stack) -> dict[str, Process]:
    """The recorded processes by name of daemon."""
    names = [name for part in stack.parts.values() for name in part.daemons]
    records = {name: Process.load(stack.data_folder / "run" / f"{name}.json") for name in names}
    return {name: record for name, record in records.items() if record is not None}


def _kill(stack: Stack, *daemons: str) -> None:
    for name in daemons:
        process = _processes(stack)[name]
        process.send(signal.SIGKILL)
        assert process.wait(5.0)


def _start(stack: Stack, part: str) -> str:
    """Starts one part and returns its endpoint."""
    stack.start(print, only=(part,))
    assert stack.parts[part].healthy()
    return next(iter(stack.parts[part].endpoints.values()))


def _create_topic(bootstrap: str, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(10)


@pytest.mark.stack
def test_topics_and_records_survive_kill_and_restart_of_kafka(own: Stack) -> None:
    bootstrap = _start(own, "kafka")
    _create_topic(bootstrap, "kept")
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    producer.produce("kept", key="job", value="before the kill")
    assert producer.flush(10) == 0
    del producer

    _kill(own, "kafka")
    assert not own.parts["kafka"].healthy()
    bootstrap = _start(own, "kafka")
    own.parts["kafka"].stop()
    bootstrap = _start(own, "kafka")

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", "auto.offset.reset": "earliest"})
    consumer.subscribe(["kept"])
    message = consumer.poll(20)
    consumer.close()
    assert message is not None
    assert message.value() == b"before the kill"


@pytest.mark.stack
def test_a_transaction_that_a_killed_kafka_had_open_ends_in_its_next_life(own: Stack) -> None:
    bootstrap = _start(own, "kafka")
    _create_topic(bootstrap, "open")
    writers = [
        Producer({"bootstrap.servers": bootstrap, "transactional.id": f"writer-{n}", "transaction.timeout.ms": 3_000})
        for n in range(3)
    ]
    for writer in writers:
        writer.init_transactions(30)
        writer.begin_transaction()
        writer.produce("open", value="open")
        assert writer.flush(10) == 0

    _kill(own, "kafka")
    admin = AdminClient({"bootstrap.servers": _start(own, "kafka")})
    deadline = time.monotonic() + 30
    while _end(admin, IsolationLevel.READ_COMMITTED) < _end(admin, IsolationLevel.READ_UNCOMMITTED):
        assert time.monotonic() < deadline, "records stay hidden behind a transaction that nobody ends"
        time.sleep(0.2)
    assert _end(admin, IsolationLevel.READ_COMMITTED) >= len(writers)


def _end(admin: AdminClient, level: IsolationLevel) -> int:
    place = TopicPartition("open", 0)
    [end] = admin.list_offsets({place: OffsetSpec.latest()}, isolation_level=level, request_timeout=10).values()
    return int(end.result(10).offset)


@pytest.mark.stack
def test_a_folder_that_a_newer_kafka_made_is_refused_with_a_way_out(tmp_path: Path) -> None:
    stack = Stack(tmp_path)
    meta = tmp_path / "kafka" / "data" / "meta.properties"
    meta.parent.mkdir(parents=True)
    meta.touch()
    (tmp_path / "kafka" / "version").write_text("99.0.1")
    with pytest.raises(PartFailed, match=r"was made with Kafka 99.0.1, .* move the folder away"):
        stack.parts["kafka"].start(print)


@pytest.mark.stack
def test_schema_ids_survive_kill_and_restart_of_the_registry(own: Stack) -> None:
    url = _start(own, "registry")
    schema = '{"type": "record", "name": "Kept", "fields": [{"name": "job", "type": "string"}]}'
    given = httpx.post(f"{url}/subjects/kept/versions", json={"schema": schema}).raise_for_status().json()["id"]

    _kill(own, "registry")
    url = _start(own, "registry")
    own.parts["registry"].stop()
    url = _start(own, "registry")

    kept = httpx.get(f"{url}/schemas/ids/{given}").raise_for_status().json()["schema"]
    assert json.loads(kept) == json.loads(schema)


@pytest.mark.stack
def test_rows_survive_kill_and_restart_of_postgres(own: Stack) -> None:
    with psycopg.connect(_plain(_start(own, "postgres"))) as connection:
        connection.execute("create table kept (word text)")
        connection.execute("insert into kept values ('before the kill')")

    _kill(own, "postgres")
    _start(own, "postgres")
    own.parts["postgres"].stop()
    with psycopg.connect(_plain(_start(own, "postgres"))) as connection:
        assert connection.execute("select word from kept").fetchall() == [("before the kill",)]


def _plain(dsn: str) -> str:
    """psycopg's own form of an SQLAlchemy URL."""
    return dsn.replace("postgresql+psycopg://", "postgresql://")


@pytest.mark.slurm
def test_accounting_and_held_jobs_survive_kill_and_restart_of_slurm(own: Stack, tmp_path: Path) -> None:
    conf = Path(_start(own, "slurm"))
    script = f"--output={tmp_path / 'out'}"
    done = ask(conf, "sbatch", "--parsable", script, "--wrap=exit 3").strip()
    running = ask(conf, "sbatch", "--parsable", script, "--wrap=sleep 600").strip()
    assert wait_for_state(conf, done, FINAL) == "FAILED"
    wait_for_state(conf, running, ("RUNNING",))
    assert accounted(conf, done, ["FAILED"]) == ["FAILED"]

    _kill(own, *(name for name in _processes(own) if name.startswith(("slurm", "munge", "mariadb"))))
    _start(own, "slurm")
    # only now: slurmctld itself saves its queue seconds later, so a kill -9 may lose what was just submitted
    held = ask(conf, "sbatch", "--parsable", "--hold", script, "--wrap=true").strip()
    own.parts["slurm"].stop()
    assert not [line for line in _processes_of(own) if "slurm" in line]
    assert "sleep 600" not in subprocess.run(["ps", "-eww", "-o", "args="], capture_output=True, text=True).stdout
    _start(own, "slurm")

    assert accounted(conf, done, ["FAILED"]) == ["FAILED"]
    assert field(conf, held, "JobState") == "PENDING"


@pytest.mark.slurm
def test_a_second_start_changes_nothing(own: Stack) -> None:
    own.start(print)
    before = _processes(own)
    again = own.start(print)

    assert _processes(own) == before
    assert again == Endpoints.load(own.data_folder)
    assert [part.healthy for part in own.status()] == [True] * 4


@pytest.mark.slurm
def test_one_dead_daemon_is_started_again_and_the_others_left_alone(own: Stack) -> None:
    own.start(print)
    before = _processes(own)
    _kill(own, "slurmd-node3")
    own.start(print)
    after = _processes(own)

    assert after.pop("slurmd-node3") != before.pop("slurmd-node3")
    assert after == before


@pytest.mark.slurm
def test_a_supervisor_that_tends_slurm_brings_back_those_of_its_daemons_that_died(own: Stack) -> None:
    own.start(print)
    before = _processes(own)
    supervisor = Supervisor(own.data_folder)
    supervisor.start([], print, [Tended("slurm", own.parts["slurm"].daemons)])
    try:
        _kill(own, "slurmctld", "munged", "slurmd-node2")
        wait_for(lambda: [part.restarts for part in supervisor.status().parts] == [1], 60.0)
    finally:
        supervisor.stop()
    after = _processes(own)
    changed = {name for name in before if after[name] != before[name]}
    assert changed == {"slurmctld", "munged", "slurmd-node2"}
    assert own.parts["slurm"].healthy()


@pytest.mark.slurm
def test_two_stacks_do_not_meet(own: Stack, slurm: Endpoints) -> None:
    other = own.start(print)
    assert other is not None
    assert {other.kafka, other.registry, other.postgres} & {slurm.kafka, slurm.registry, slurm.postgres} == set()

    _create_topic(other.kafka, "apart")
    assert "apart" not in AdminClient({"bootstrap.servers": slurm.kafka}).list_topics(timeout=10).topics
    held = ask(other.slurm_conf, "sbatch", "--parsable", "--hold", "--job-name=apart", "--wrap=true").strip()
    assert "apart" in ask(other.slurm_conf, "squeue", "-h", "-o", "%j")
    assert "apart" not in ask(slurm.slurm_conf, "squeue", "-h", "-o", "%j")
    ask(other.slurm_conf, "scancel", held)

    own.stop()
    assert AdminClient({"bootstrap.servers": slurm.kafka}).list_topics(timeout=10).cluster_id
    assert "UP" in ask(slurm.slurm_conf, "scontrol", "ping")
    with pytest.raises(StackNotUp, match="recovery up"):
        Endpoints.load(own.data_folder)


@pytest.mark.stack
def test_a_port_that_was_taken_meanwhile_is_chosen_anew(own: Stack) -> None:
    first = _start(own, "postgres")
    own.parts["postgres"].stop()
    with socket.create_server(("127.0.0.1", int(first.rsplit(":", 1)[1].split("/")[0]))):
        second = _start(own, "postgres")
    assert second != first
    own.parts["postgres"].stop()


def test_a_pid_that_belongs_to_another_program_now_is_not_ours() -> None:
    me = Path("/proc/self/stat").read_text().rsplit(")", 1)[1].split()
    argv = tuple(Path("/proc/self/cmdline").read_text().rstrip("\0").split("\0"))
    assert Process(os.getpid(), int(me[19]), argv).alive()
    assert not Process(os.getpid(), int(me[19]) - 1, argv).alive()
    assert not Process(os.getpid(), int(me[19]), argv, boot="another").alive()
    assert not Process(os.getpid(), int(me[19]), ("postgres", "-D", "/somewhere")).alive()
