"""What a person publishes or asks for at the command line, on a real Kafka."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from infra.local.endpoints import Endpoints
from recovery.topics import create_topics
from schemas.codec import Codec
from schemas.decisions import AttemptView, JobView
from schemas.facts import CommandGiven
from schemas.identity import AttemptId
from schemas.policy import DEFAULT_POLICY, LOGIC, Policy
from schemas.registry import RegistryIds
from schemas.topics import JOBS, JOURNAL, POLICIES
from schemas.vocabulary import AttemptState, CommandKind, Mode
from streams.kafka import TopicView, decode, producer, reader, send

pytestmark = pytest.mark.stack


class Line:
    """The command line against the shared stack, with a cluster of this test's own."""

    def __init__(self, endpoints: Endpoints, folder: Path) -> None:
        self.cluster = f"cluster-{uuid4().hex[:8]}"
        self.bootstrap = endpoints.kafka
        self.codec = Codec(RegistryIds(endpoints.registry))
        self._env = os.environ | {
            "RECOVERY_DATA": str(folder),
            "RECOVERY_KAFKA__BOOTSTRAP": endpoints.kafka,
            "RECOVERY_REGISTRY__URL": endpoints.registry,
            "RECOVERY_SLURM__CLUSTER": self.cluster,
        }

    def __call__(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "recovery", *words]
        return subprocess.run(command, env=self._env, capture_output=True, text=True, timeout=60, check=False)

    def write(self, key: str, view: JobView) -> None:
        to = producer(self.bootstrap, "test")
        send(to, JOBS, key, self.codec.encode(view, source="test", time_ms=1, subject=key))
        assert to.flush(10) == 0

    def events(self, topic: Any, part: str) -> list[tuple[str, Any]]:
        """(key, event) of the topic, where the key contains `part`."""
        found: list[tuple[str, Any]] = []
        consumer = reader(self.bootstrap, "test")
        seen: list[Any] = []
        TopicView(consumer, (topic,), seen.append).read_to_stable_end()
        consumer.close()
        for message in seen:
            key = (message.key() or b"").decode("utf-8", "replace")
            if part in key:
                found.append((key, decode(self.codec, message)))
        return found


@pytest.fixture
def line(stack: Endpoints, tmp_path: Path) -> Line:
    create_topics(stack.kafka)
    return Line(stack, tmp_path)


def attempt(cluster: str, index: int) -> AttemptView:
    of = AttemptId(cluster, "17", 1_700_000_000, index)
    return AttemptView(of, 1_700_000_000, None, None, AttemptState.RUNNING, ("n1",), ())


def test_the_shipped_policy_is_in_force_until_another_is_published(line: Line, tmp_path: Path) -> None:
    shown = line("policy", "show")
    assert Policy.parse(shown.stdout.encode()) == DEFAULT_POLICY
    assert "none was published" in shown.stderr
    file = tmp_path / "policy.json"
    file.write_text(json.dumps({"max_requeue_times": 7}))
    published = line("policy", "publish", str(file))
    wanted = Policy(max_requeue_times=7)
    assert published.stdout == f"{wanted.digest()} logic {LOGIC} is in force for {line.cluster}\n"
    assert Policy.parse(line("policy", "show").stdout.encode()) == wanted
    [(_, pointer)] = line.events(POLICIES, f"current/{line.cluster}")
    [(_, document), *_] = line.events(POLICIES, wanted.digest())
    assert (pointer.digest, pointer.logic, pointer.document) == (wanted.digest(), LOGIC, b"")
    assert document.document == wanted.document()


def test_a_policy_that_can_not_be_put_in_force_is_refused_and_nothing_is_written(line: Line, tmp_path: Path) -> None:
    file = tmp_path / "policy.json"
    file.write_text(json.dumps({"incident_max_s": 5000}))
    refused = line("policy", "publish", str(file))
    assert refused.returncode == 2
    assert "the watchdog releases it" in refused.stderr
    assert line.events(POLICIES, line.cluster) == []


def test_a_command_is_a_fact_for_an_exact_attempt(line: Line) -> None:
    key = f"{line.cluster}/17"
    attempts = (attempt(line.cluster, 0), attempt(line.cluster, 1))
    line.write(key, JobView("v", "c", line.cluster, "17", 17, "w", None, Mode.ACT, attempts, False, False, 1))
    latest = line("job", "restart", "17", "--reason", "stuck", "--by", "ada")
    assert latest.returncode == 0, latest.stderr
    assert f"ada asked to restart attempt 1 of job {key}" in latest.stdout
    assert line("job", "terminate", "17/0", "--reason", "broken", "--by", "ada").returncode == 0
    given = [event for _, event in line.events(JOURNAL, key) if isinstance(event, CommandGiven)]
    assert [(one.kind, one.attempt, one.by, one.reason) for one in given] == [
        (CommandKind.RESTART, attempts[1].attempt, "ada", "stuck"),
        (CommandKind.TERMINATE, attempts[0].attempt, "ada", "broken"),
    ]
    wrong = line("job", "release", "17/5", "--reason", "x")
    assert (wrong.returncode, "has no attempt 5; the recent ones are 0, 1" in wrong.stderr) == (2, True)


@pytest.mark.parametrize(
    ("target", "problem"), [("99", "is not known"), ("x", "is no Slurm job id"), ("17/x", "names no attempt")]
)
def test_a_command_for_what_is_not_there_says_so(line: Line, target: str, problem: str) -> None:
    refused = line("job", "restart", target, "--reason", "x")
    assert (refused.returncode, problem in refused.stderr) == (2, True), refused.stderr
    assert line.events(JOURNAL, line.cluster) == []
