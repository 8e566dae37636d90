"""The command line, as a newcomer meets it. Each test runs the real command."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from recovery.cli import app
from recovery.settings import load_settings
from schemas.codec import FixedIds
from streams.kafka import KafkaUnavailable

COMMANDS = ("watch", "decide", "nodes", "ask", "relay", "project", "gateway", "sac", "watchdog", "up", "down", "status")
ROOMS = ("streams", "projections", "gateway", "sac", "schemas", "infra", "pydantic", "confluent_kafka", "rich")


def recovery(*words: str, cwd: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    here = Path(__file__).parents[2]
    return subprocess.run(
        [sys.executable, "-m", "recovery", *words],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(here), **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_help_says_what_it_is_for_and_names_every_command(tmp_path: Path) -> None:
    done = recovery("--help", cwd=tmp_path)
    assert done.returncode == 0
    assert "Keep AI training jobs alive on Slurm" in done.stdout
    first_words = {line.split()[0] for line in done.stdout.splitlines() if line.startswith("  ") and line.strip()}
    assert set(COMMANDS) <= first_words


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str) -> None:
    done = CliRunner().invoke(app, [command, "--help"], prog_name="recovery")
    assert done.exit_code == 0
    assert f"Usage: recovery {command}" in done.stdout
    assert len(done.stdout.split("\n\n")[1].strip()) > 20, "a sentence says what it does"


def test_help_loads_no_room() -> None:
    code = "import sys, recovery.cli; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert loaded & set(ROOMS) == set()


def test_help_comes_at_once(tmp_path: Path) -> None:
    def seconds() -> float:
        """Processor time, not the clock's: other tests may run beside."""
        before = os.times()
        recovery("--help", cwd=tmp_path)
        after = os.times()
        return after.children_user + after.children_system - before.children_user - before.children_system

    assert min(seconds() for _ in range(3)) < 0.3


def test_a_wrong_setting_is_one_line_on_stderr_and_code_2(tmp_path: Path) -> None:
    done = recovery("watch", cwd=tmp_path, RECOVERY_WATCH__POLL_S="fast")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "error: RECOVERY_WATCH__POLL_S: watch.poll_s is 'fast'; "
        "it should be a valid number, unable to parse string as a number\n"
    )


def test_a_settings_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    done = recovery("--config", "mine.toml", "sac", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == "error: --config names mine.toml, which is not a file; create it or leave --config out\n"


def test_a_kafka_that_does_not_answer_is_one_line_and_not_a_stack_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recovery.topics.TIMEOUT_S", 1.0)
    done = CliRunner().invoke(app, ["topics", "check"], env={"RECOVERY_KAFKA__BOOTSTRAP": "127.0.0.1:1"})
    assert done.exit_code == 2
    assert done.stderr.startswith("error: Kafka at 127.0.0.1:1 does not answer")
    assert done.stderr.count("\n") == 1


def test_verifying_without_kafka_says_what_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object) -> None:
        raise KafkaUnavailable("recovery.policies/0: Failed to get watermark offsets")

    monkeypatch.setattr("schemas.registry.RegistryIds", lambda _url: FixedIds())
    monkeypatch.setattr("streams.run.policies.PolicyDocuments", away)
    done = CliRunner().invoke(app, ["replay", "verify"])
    assert done.exit_code == 2
    assert done.stderr.startswith("error: Kafka does not answer (recovery.policies/0: ")


def test_a_command_without_a_reason_is_refused_before_anything_is_written() -> None:
    done = CliRunner().invoke(app, ["job", "release", "42", "--reason", " "])
    assert done.exit_code == 2
    assert "--reason is empty" in done.stderr


def test_a_misspelt_command_gets_a_suggestion(tmp_path: Path) -> None:
    done = recovery("wath", cwd=tmp_path)
    assert done.returncode == 2
    assert "Did you mean 'watch'" in done.stderr


def test_the_printed_settings_are_a_settings_file_that_means_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RECOVERY_SAC__PARTITIONS", 'gpu,"odd"')
    monkeypatch.setenv("RECOVERY_SLURM__TICK_S", "0.25")
    done = CliRunner().invoke(app, ["settings"])
    assert done.exit_code == 0
    printed = tmp_path / "printed.toml"
    printed.write_text(done.stdout, encoding="utf-8")
    assert load_settings(printed, environment={}) == load_settings()
    assert load_settings(printed, environment={}).sac.partitions == ("gpu", '"odd"')


def test_the_printed_settings_explain_every_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = CliRunner().invoke(app, ["settings"]).stdout.splitlines()
    keys = [number for number, line in enumerate(lines) if " =" in line]
    assert len(keys) > 20
    assert [lines[number] for number in keys if not lines[number - 1].startswith("# ")] == []
