"""A real cluster, real Kafka and real processes of ours, as the tests of the controller need them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx
from confluent_kafka import Message

from infra.local.endpoints import Endpoints
from recovery.run_files import read_run_files
from sac.slurm.answers import Known
from sac.slurm.commands import SlurmCommands
from sac.slurm.squeue import SlurmJob, look
from sac.writers import ActionWriter
from schemas.codec import Codec
from schemas.decisions import Advice, AttemptView, JobView
from schemas.facts import ActionEnded, ActionIntended, ActionRefused, JobObserved
from schemas.identity import AttemptId, derived_id
from schemas.policy import DEFAULT_POLICY
from schemas.topics import ACTIONS, JOURNAL, Topic, emitted_route
from schemas.vocabulary import AttemptState, DesiredState, Disposition, Mode, Resolution
from streams.kafka import TopicView, decode, producer, reader, send

CLUSTER = "local"
ENVIRONMENT = "test-site"
APS = {"environment": ENVIRONMENT, "mode": "act", "auto_resume_mode": "requeue", "workflow_id": "w1"}
DEADLINE_S = 30.0

T = TypeVar("T")


def until(what: str, ask: Callable[[], T | None], seconds: float = DEADLINE_S) -> T:
    """The first answer that is neither None, False nor empty."""
    deadline = time.monotonic() + seconds
    while True:
        answer = ask()
        if answer:
            return answer
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.05)


def comment(**aps: object) -> str:
    return json.dumps({"APS": APS | aps})


@dataclass(frozen=True)
class Cluster:
    """The shared cluster, seen as a user sees it."""

    conf: Path
    folder: Path

    @property
    def commands(self) -> SlurmCommands:
        return SlurmCommands(self.conf, 10)

    def run(self, *command: str) -> str:
        environment = {**os.environ, "SLURM_CONF": str(self.conf)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30, check=True)
        return done.stdout.strip()

    def submit(self, *options: str, script: str = "sleep 300") -> str:
        """Submit a job of one CPU with output in this test's folder; returns its id."""
        return self.run("sbatch", "--parsable", "-n1", "-D", str(self.folder), *options, "--wrap", script).split(";")[0]

    def find(self, job_id: str) -> SlurmJob | None:
        """The job as slurmctld shows it; None where it does not (a task may not have come out of its array yet)."""
        seen = look(self.commands, CLUSTER, {})
        assert isinstance(seen, Known), seen
        return seen.value.jobs.get(job_id)

    def job(self, job_id: str) -> SlurmJob:
        job = self.find(job_id)
        assert job is not None, f"slurmctld does not show {job_id}"
        return job

    def wait(self, job_id: str, state: AttemptState, restarts: int = 0, seconds: float = DEADLINE_S) -> SlurmJob:
        def there() -> SlurmJob | None:
            job = self.find(job_id)
            return job if job is not None and (job.state, job.restart_count) == (state, restarts) else None

        return until(f"job {job_id} is {state} after {restarts} restarts", there, seconds)

    def restarts_accounted(self, job_id: str) -> int:
        """How often Slurm's accounting says that the job was requeued."""
        rows = self.run("sacct", "-D", "-X", "-n", "-P", "-j", job_id, "-o", "Submit").splitlines()
        return len(rows) - 1


class Bus:
    """Writes what deciders would write, and reads what the controller wrote."""

    def __init__(self, bootstrap: str, codec: Codec) -> None:
        self._codec = codec
        self._bootstrap = bootstrap
        self._producer = producer(bootstrap, "test-bus")

    def emit(self, event: Advice | JobView) -> None:
        topic, key = emitted_route(event)
        send(self._producer, topic, key, self._codec.encode(event, source="test", time_ms=now_ms(), subject=key))
        assert self._producer.flush(10) == 0

    def take_the_place_of(self, cluster: str) -> None:
        """Start writing as the controller of that cluster."""
        ActionWriter(self._bootstrap, self._codec, cluster, lambda _record: None)

    def events(self, topic: Topic) -> list[Any]:
        found: list[Any] = []

        def take(message: Message) -> None:
            if message.value() is not None:
                found.append(decode(self._codec, message))

        consumer = reader(self._bootstrap, "test-bus")
        TopicView(consumer, (topic,), take).read_to_stable_end(timeout_s=20)
        consumer.close()
        return found

    def observed(self, job_id: str) -> list[JobObserved]:
        return [e for e in self.events(JOURNAL) if isinstance(e, JobObserved) and e.job_id == job_id]

    def intents(self, job_id: str) -> list[ActionIntended]:
        return [e for e in self.events(ACTIONS) if isinstance(e, ActionIntended) and e.attempt.job_id == job_id]

    def outcomes(self, job_id: str) -> list[ActionEnded]:
        return [e for e in self.events(ACTIONS) if isinstance(e, ActionEnded) and e.attempt.job_id == job_id]

    def refusals(self, job_id: str) -> list[ActionRefused]:
        return [e for e in self.events(ACTIONS) if isinstance(e, ActionRefused) and e.attempt.job_id == job_id]


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def advice(
    job: SlurmJob,
    desired: DesiredState,
    *,
    index: int = 0,
    submit_time: int | None = None,
    exclude: tuple[str, ...] = (),
    generation: int = 1,
) -> Advice:
    """Advice as the decider would issue it for an attempt of a job."""
    submitted = job.submit_time if submit_time is None else submit_time
    attempt = AttemptId(CLUSTER, job.job_id, submitted, index)
    return Advice(
        event_id=derived_id("test-advice", attempt.key, generation, desired),
        attempt=attempt,
        submit_time=submitted,
        generation=generation,
        desired_state=desired,
        exclude_nodes=exclude,
        disposition=Disposition.PENDING,
        resolution=Resolution.UNSPECIFIED,
        reason="test",
        explanation="written by a test",
        incident_id="",
        workflow_id="w1",
        issued_ms=now_ms(),
        resolved_ms=None,
        valid_until_ms=None,
        policy=DEFAULT_POLICY.digest(),
        logic=1,
    )


def view_of(job: SlurmJob) -> JobView:
    """The decider's view of a job in its first attempt."""
    attempt = AttemptId(CLUSTER, job.job_id, job.submit_time, job.restart_count)
    seen = AttemptView(attempt, job.submit_time, None, None, AttemptState.RUNNING, job.nodes, ())
    event_id = derived_id("test-view", attempt.key)
    return JobView(
        event_id, "", CLUSTER, job.job_id, job.raw_job_id, "w1", None, Mode.ACT, (seen,), False, False, now_ms()
    )


class Room:
    """Starts processes of ours against the shared stack, each with its own data folder."""

    def __init__(self, endpoints: Endpoints, cluster: Cluster, folder: Path) -> None:
        self._endpoints = endpoints
        self._cluster = cluster
        self._folder = folder
        self._count = 0

    @contextmanager
    def process(self, name: str, *settings: Mapping[str, str], ready: bool = True) -> Iterator[subprocess.Popen[str]]:
        """A process by its command; ended by SIGTERM and checked to exit cleanly, unless the test ended it."""
        self._count += 1
        data = self._folder / f"data-{self._count}"
        log = self._folder / f"{name}-{self._count}.log"
        environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("RECOVERY_")},
            "RECOVERY_DATA": str(data),
            "RECOVERY_KAFKA__BOOTSTRAP": self._endpoints.kafka,
            "RECOVERY_REGISTRY__URL": self._endpoints.registry,
            "RECOVERY_SLURM__CONF_PATH": str(self._cluster.conf),
            "RECOVERY_SLURM__TICK_S": "0.2",
            "RECOVERY_SAC__ENVIRONMENT": ENVIRONMENT,
            "RECOVERY_SAC__PARTITIONS": "main",
        }
        for more in settings:
            environment |= more
        with log.open("w") as out:
            process = subprocess.Popen([sys.executable, "-m", "recovery", name], env=environment, stderr=out, text=True)
            try:
                if ready:
                    until(f"{name} is ready", lambda: self._is_ready(data, process, log))
                yield process
                if process.poll() is None:
                    process.send_signal(signal.SIGTERM)
                    assert process.wait(timeout=20) == 0, log.read_text()
            finally:
                process.kill()
                process.wait(timeout=10)

    @staticmethod
    def _is_ready(data: Path, process: subprocess.Popen[str], log: Path) -> bool:
        assert process.poll() is None, log.read_text()
        for record in read_run_files(data):
            try:
                return httpx.get(f"{record.url}/readyz", timeout=2).status_code == 200
            except httpx.HTTPError:
                return False
        return False


ACT = {"RECOVERY_SAC__ACKNOWLEDGE_SCHEDULER_ACTIONS": "true"}
