"""docker-compose.yml starts what `recovery up` starts, with settings that exist. No engine is needed to see that."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
import yaml
from typer.testing import CliRunner

from infra.local.kafka import SETTINGS as KAFKA_SETTINGS
from recovery.cli import app
from recovery.health import Health, serve_health
from recovery.launch import children
from recovery.settings import load_settings

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = ROOT / "infra" / "images" / "Dockerfile"
OF_THE_IMAGE = ("pyproject.toml", "README.md")
PACKAGES = ("recovery", "schemas", "streams", "projections", "gateway", "sac", "infra")
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if service["image"] == "recovery" and name != "prepare"}
VARIABLE = re.compile(r"\$\{(\w+):-([^}]*)\}")


def plain(value: Any) -> str:
    """A value as a container gets it where nothing is set outside."""
    return VARIABLE.sub(r"\2", str(value))


def test_every_process_that_recovery_up_starts_is_a_service_with_the_same_command(tmp_path: Path) -> None:
    started = children(load_settings(None, {"RECOVERY_DATA": str(tmp_path)}), None)
    assert {child.name: list(child.argv[3:]) for child in started} == {
        name: service["command"] for name, service in OURS.items()
    }


@pytest.mark.parametrize("name", sorted(OURS))
def test_the_settings_of_a_service_are_ones_that_processes_take(name: str, tmp_path: Path) -> None:
    given = {key: plain(value) for key, value in OURS[name]["environment"].items()}
    settings = load_settings(None, given | {"RECOVERY_DATA": str(tmp_path)})
    assert settings.kafka.bootstrap == "kafka:9092"
    assert settings.registry.url == "http://registry:8080/apis/ccompat/v7"
    assert "@postgres:5432/recovery" in settings.postgres.url


@pytest.mark.parametrize("name", sorted(OURS))
def test_no_service_acts_unless_told_to(name: str, tmp_path: Path) -> None:
    given = {key: plain(value) for key, value in OURS[name]["environment"].items()}
    settings = load_settings(None, given | {"RECOVERY_DATA": str(tmp_path)})
    assert not settings.sac.acknowledge_scheduler_actions
    assert not settings.watchdog.acknowledge
    assert not settings.sac.partitions


@pytest.mark.parametrize("name", ["sac", "watchdog"])
def test_what_is_set_outside_to_act_reaches_the_service(name: str, tmp_path: Path) -> None:
    outside = {
        "RECOVERY_SAC__ACKNOWLEDGE_SCHEDULER_ACTIONS": "true",
        "RECOVERY_WATCHDOG__MODE": "act",
        "RECOVERY_WATCHDOG__ACKNOWLEDGE": "true",
    }
    given = {
        key: VARIABLE.sub(lambda found: outside.get(found[1], found[2]), str(value))
        for key, value in OURS[name]["environment"].items()
    }
    settings = load_settings(None, given | {"RECOVERY_DATA": str(tmp_path)})
    assert settings.sac.acknowledge_scheduler_actions
    assert settings.watchdog.mode == "act"
    assert settings.watchdog.acknowledge


def test_health_is_asked_where_the_image_has_processes_answer(tmp_path: Path) -> None:
    [given] = re.findall(r"^ENV (.*)$", DOCKERFILE.read_text(), re.MULTILINE)
    known = dict(word.split("=", 1) for word in given.split() if word.startswith("RECOVERY_"))
    port = load_settings(None, known | {"RECOVERY_DATA": str(tmp_path)}).metrics.port
    for service in OURS.values():
        *python, code = service["healthcheck"]["test"]
        assert python == ["CMD", "python", "-c"]
        assert f"'127.0.0.1', {port}, " in code


@pytest.mark.parametrize(("said", "code"), [(None, 0), ("no Kafka", 1)])
def test_the_health_check_says_whether_a_process_is_ready(said: str | None, code: int) -> None:
    health = Health()
    health.ready() if said is None else health.not_ready(said)
    check = OURS["watch"]["healthcheck"]["test"][-1]
    with serve_health(health, "127.0.0.1", 0) as port:
        done = subprocess.run([sys.executable, "-c", check.replace("9100", str(port))], timeout=30, check=False)
    assert done.returncode == code


def test_what_a_service_waits_for_is_there_and_can_be_waited_for() -> None:
    for name, service in SERVICES.items():
        for needed, how in dict(service.get("depends_on") or {}).items():
            assert needed in SERVICES, f"{name} waits for {needed}, which is no service"
            if how["condition"] == "service_healthy":
                assert "test" in SERVICES[needed]["healthcheck"], f"{name} waits for {needed} to be healthy"


def test_the_watchdog_waits_for_nobody() -> None:
    assert not SERVICES["watchdog"]["depends_on"]


def test_every_volume_that_is_used_by_name_is_declared_and_every_mounted_file_of_ours_is_there() -> None:
    for service in SERVICES.values():
        for volume in service.get("volumes", ()):
            source = plain(volume).split(":")[0]
            if source.startswith("./"):
                assert (ROOT / source).is_file()
            elif not source.startswith("/"):
                assert source in COMPOSE["volumes"]


def test_what_must_survive_a_restart_is_in_a_volume() -> None:
    assert [plain(volume) for volume in SERVICES["kafka"]["volumes"]] == ["kafka:/var/lib/kafka/data"]
    assert SERVICES["kafka"]["environment"]["KAFKA_LOG_DIRS"] == "/var/lib/kafka/data"
    assert SERVICES["registry"]["environment"]["APICURIO_STORAGE_KIND"] == "sql"
    assert any(volume.startswith("postgres:") for volume in SERVICES["postgres"]["volumes"])


def test_the_broker_has_the_settings_that_exactly_once_deciders_rely_on() -> None:
    environment = SERVICES["kafka"]["environment"]
    for key in ("transaction.abort.timed.out.transaction.cleanup.interval.ms", "auto.create.topics.enable"):
        [value] = re.findall(rf"^{re.escape(key)}=(.*)$", KAFKA_SETTINGS, re.MULTILINE)
        assert str(environment[f"KAFKA_{key.upper().replace('.', '_')}"]) == value


def test_what_prepares_the_stack_are_commands_that_exist() -> None:
    [script] = SERVICES["prepare"]["command"]
    for command in script.split(" && "):
        program, *words = command.split()
        assert program == "recovery"
        assert CliRunner().invoke(app, [*words, "--help"]).exit_code == 0


def test_the_image_is_built_from_files_that_are_there() -> None:
    build = OURS["watch"]["build"]
    dockerfile = (ROOT / build["context"] / build["dockerfile"]).read_text()
    for names in re.findall(r"^COPY (?!\. )(.+) \S+$", dockerfile, re.MULTILINE):
        for name in names.split():
            assert (ROOT / name).is_file()
    assert 'ENTRYPOINT ["recovery"]' in dockerfile


@pytest.mark.stack  # a real build, not pure
def test_the_package_in_the_image_has_every_file_of_ours(tmp_path: Path) -> None:
    source = tmp_path / "source"
    ignored = shutil.ignore_patterns("__pycache__")
    for name in PACKAGES:
        shutil.copytree(ROOT / name, source / name, ignore=ignored)
    for name in OF_THE_IMAGE:
        shutil.copy(ROOT / name, source / name)
    ours = {str(path.relative_to(source)) for name in PACKAGES for path in (source / name).rglob("*") if path.is_file()}
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", str(tmp_path)]
    subprocess.run([*build, str(source)], check=True, timeout=120)
    [wheel] = tmp_path.glob("*.whl")
    left_out = ours - set(ZipFile(wheel).namelist())
    assert left_out == {"infra/images/Dockerfile", "infra/images/postgres-init.sql"}
