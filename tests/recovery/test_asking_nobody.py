"""What the command line tells where nothing runs: defaults, and refusals before anybody is asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from recovery.cli import app
from recovery.settings import SettingsError, load_settings
from schemas.policy import DEFAULT_POLICY, Policy

NOBODY = {"RECOVERY_REGISTRY__URL": "http://127.0.0.1:9", "RECOVERY_KAFKA__BOOTSTRAP": "127.0.0.1:9"}


def run(*words: str) -> Result:
    return CliRunner().invoke(app, list(words), env=NOBODY)


def test_the_shipped_policy_is_shown_without_asking_anybody() -> None:
    shown = run("policy", "show", "--defaults")
    assert shown.exit_code == 0
    assert Policy.parse(shown.stdout.encode()) == DEFAULT_POLICY


def test_a_registry_that_does_not_answer_leads_to_the_shipped_policy() -> None:
    shown = run("policy", "show")
    assert shown.exit_code == 2
    assert "does not answer" in shown.stderr
    assert "`recovery policy show --defaults`" in shown.stderr


def test_the_settings_tell_where_the_limits_of_hangs_stand() -> None:
    assert "limits of hangs, stragglers and incidents are policy: `recovery policy show`" in run("settings").stdout


@pytest.mark.parametrize("job", ["abc", "12;3", "", "1_", "-3"])
def test_what_is_no_job_id_is_refused_before_anybody_is_asked(job: str) -> None:
    refused = run("doctor", "logs", f"--job={job}")
    assert refused.exit_code == 2
    assert f"{job!r} is no Slurm job id: expected 123" in refused.stderr


@pytest.mark.parametrize("given", ["/a, /b", '["/a", "/b"]'])
def test_a_list_may_be_given_as_settings_print_it(given: str) -> None:
    assert load_settings(None, {"RECOVERY_WATCH__PACKS": given}).watch.packs == (Path("/a"), Path("/b"))


def test_a_list_that_is_none_is_refused_with_the_forms_that_are_accepted() -> None:
    with pytest.raises(SettingsError, match='must be a list: a,b or \\["a", "b"\\]'):
        load_settings(None, {"RECOVERY_WATCH__PACKS": '["/a"'})
