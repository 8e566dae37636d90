"""docker-compose.yml starts what `recovery up` starts, with settings that exist. No engine is needed to see that."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from infra.local.kafka import SETTINGS as KAFKA_SETTINGS
from recovery.cli import app
from recovery.launch import children
from recovery.settings import load_settings

ROOT = Path(__file__).resolve().parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if service["image"] == "recovery" and name != "prepare"}
VARIABLE = re.compile(r"\$\{\w+:-([^}]*)\}")


def plain(value: Any) -> str:
    """A value as a container gets it where nothing is set outside."""
    return VARIABLE.sub(r"\1", str(value))


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
