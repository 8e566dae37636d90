"""Which value a setting has, and what an operator reads when one is wrong."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from recovery.settings import Settings, SettingsError, load_settings


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def refusal(config: Path | None, environment: Mapping[str, str]) -> str:
    with pytest.raises(SettingsError) as caught:
        load_settings(config, environment)
    return str(caught.value)


def test_with_nothing_given_nothing_may_act_and_no_job_is_admitted() -> None:
    settings = load_settings(environment={})
    assert (settings.sac.mode, settings.sac.acknowledge_scheduler_actions) == ("observe", False)
    assert (settings.sac.environment, settings.sac.partitions) == ("", ())
    assert (settings.watchdog.mode, settings.watchdog.acknowledge) == ("observe", False)
    assert settings.ask.attribution_url is None


def test_the_environment_wins_over_the_file_over_the_local_stack_over_the_defaults(tmp_path: Path) -> None:
    data = tmp_path / "data"
    stack = {"kafka": "stack:1", "registry": "http://stack:2", "postgres": "postgresql+psycopg://stack/x"}
    write(data / "endpoints.json", json.dumps(stack))
    config = write(tmp_path / "mine.toml", '[kafka]\nbootstrap = "file:1"\n[registry]\nurl = "http://file:2"\n')
    environment = {"RECOVERY_DATA": str(data), "RECOVERY_KAFKA__BOOTSTRAP": "environment:1"}

    settings = load_settings(config, environment)

    assert settings.kafka.bootstrap == "environment:1"
    assert settings.registry.url == "http://file:2"
    assert settings.postgres.url == "postgresql+psycopg://stack/x"
    assert settings.slurm.conf_path is None
    assert settings.slurm.tick_s == 0.5


def test_the_data_folder_named_in_the_file_is_where_the_local_stack_is_looked_for(tmp_path: Path) -> None:
    write(tmp_path / "data" / "endpoints.json", json.dumps({"kafka": "stack:1", "slurm_conf": "/x/slurm.conf"}))
    write(tmp_path / "recovery.toml", 'data = "data"\n')

    settings = load_settings(environment={})

    assert settings.data == tmp_path / "data"
    assert settings.kafka.bootstrap == "stack:1"
    assert settings.slurm.conf_path == Path("/x/slurm.conf")


def test_a_file_named_on_the_command_line_wins_over_one_named_by_the_environment(tmp_path: Path) -> None:
    named = write(tmp_path / "a.toml", '[slurm]\ncluster = "a"\n')
    other = write(tmp_path / "b.toml", '[slurm]\ncluster = "b"\n')
    environment = {"RECOVERY_CONFIG": str(other)}
    assert load_settings(named, environment).slurm.cluster == "a"
    assert load_settings(None, environment).slurm.cluster == "b"


def test_the_names_that_the_original_uses_are_honoured() -> None:
    environment = {"SLURM_ADVISOR_ACKNOWLEDGE_SCHEDULER_ACTIONS": "true", "HEIMDALL_ENVIRONMENT": "customer-slurm"}
    settings = load_settings(environment=environment)
    assert settings.sac.acknowledge_scheduler_actions
    assert settings.sac.environment == "customer-slurm"
    assert not settings.watchdog.acknowledge, "the watchdog has an acknowledgement of its own"


def test_the_ceiling_in_the_environment_lowers_what_the_file_allows(tmp_path: Path) -> None:
    config = write(tmp_path / "mine.toml", "[sac]\nacknowledge_scheduler_actions = true\n")
    environment = {"SLURM_ADVISOR_ACKNOWLEDGE_SCHEDULER_ACTIONS": "false"}
    assert load_settings(config, {}).sac.acknowledge_scheduler_actions
    assert not load_settings(config, environment).sac.acknowledge_scheduler_actions


def test_two_names_of_one_setting_that_disagree_are_refused() -> None:
    text = refusal(None, {"RECOVERY_SAC__ENVIRONMENT": "a", "HEIMDALL_ENVIRONMENT": "b"})
    assert text == (
        "RECOVERY_SAC__ENVIRONMENT is 'a' but HEIMDALL_ENVIRONMENT is 'b'; both set sac.environment: unset one"
    )


def test_lists_are_given_with_commas_in_the_environment_and_as_lists_in_the_file(tmp_path: Path) -> None:
    config = write(tmp_path / "mine.toml", '[sac]\npartitions = ["gpu", "canary"]\n')
    assert load_settings(config, {}).sac.partitions == ("gpu", "canary")
    assert load_settings(config, {"RECOVERY_SAC__PARTITIONS": "one, two"}).sac.partitions == ("one", "two")
    assert load_settings(config, {"RECOVERY_SAC__PARTITIONS": ""}).sac.partitions == ()


@pytest.mark.parametrize(
    ("environment", "text"),
    [
        (
            {"RECOVERY_SAC__MODE": "actt"},
            "RECOVERY_SAC__MODE: sac.mode is 'actt'; it should be 'disabled', 'observe' or 'act'",
        ),
        (
            {"RECOVERY_KAFKA__BOOTSTARP": "x:1"},
            "RECOVERY_KAFKA__BOOTSTARP: there is no key 'bootstarp' in [kafka]; allowed: bootstrap",
        ),
        (
            {"RECOVERY_SLURM__TICK_S": "0"},
            "RECOVERY_SLURM__TICK_S: slurm.tick_s is '0'; it should be greater than 0",
        ),
        (
            {"SLURM_ADVISOR_ACKNOWLEDGE_SCHEDULER_ACTIONS": "maybe"},
            "SLURM_ADVISOR_ACKNOWLEDGE_SCHEDULER_ACTIONS: sac.acknowledge_scheduler_actions is 'maybe'; "
            "it should be true or false",
        ),
        (
            {"RECOVERY_CONFIG": "absent.toml"},
            "RECOVERY_CONFIG names absent.toml, which is not a file; create it or leave RECOVERY_CONFIG out",
        ),
    ],
)
def test_an_error_names_the_variable_the_key_the_value_and_what_is_allowed(
    environment: Mapping[str, str], text: str
) -> None:
    assert refusal(None, environment) == text


def test_every_error_of_a_file_is_told_at_once_and_names_the_file(tmp_path: Path) -> None:
    config = write(tmp_path / "mine.toml", 'kafka = "x"\nspeed = 1\n[watch]\npoll_s = -1\n')
    assert refusal(config, {}).splitlines() == [
        f"{config}: kafka is 'x'; it should be a table",
        f"{config}: watch.poll_s is -1; it should be greater than 0",
        f"{config}: there is no key 'speed' in the settings; allowed: {', '.join(Settings.model_fields)}",
    ]


def test_a_section_of_the_environment_does_not_hide_that_the_file_has_a_bare_value_there(tmp_path: Path) -> None:
    config = write(tmp_path / "mine.toml", 'kafka = "x"\n')
    text = refusal(config, {"RECOVERY_KAFKA__BOOTSTRAP": "y:1"})
    assert text == f"{config}: kafka must be a table, [kafka], not 'x'"


def test_a_file_that_is_not_toml_is_refused_with_the_place(tmp_path: Path) -> None:
    config = write(tmp_path / "mine.toml", "[kafka\n")
    text = refusal(config, {})
    assert str(config) in text
    assert "line 1" in text


def test_a_broken_endpoints_file_says_how_to_make_it_anew(tmp_path: Path) -> None:
    write(tmp_path / ".local" / "endpoints.json", "{")
    assert refusal(None, {}).endswith("run `recovery down` and `recovery up`")


def test_a_password_is_never_shown() -> None:
    text = refusal(None, {"RECOVERY_POSTGRES__URL": "postgresql://me:se@cret@db/recovery"})
    assert "cret" not in text
    assert text == (
        "RECOVERY_POSTGRES__URL: postgres.url is 'postgresql://me:***@db/recovery'; "
        "it must start with postgresql+psycopg://"
    )


def test_variables_that_kubernetes_makes_for_a_service_called_recovery_are_left_alone() -> None:
    environment = {"RECOVERY_PORT": "tcp://10.0.0.1:80", "RECOVERY_SERVICE_HOST": "10.0.0.1"}
    assert load_settings(environment=environment) == load_settings(environment={})
