"""Installing Slurm's packages: done where we may, and where we may not it is said what to do."""

import os
from pathlib import Path

import pytest

from infra.local import apt
from infra.local.apt import SlurmUnavailable, ensure_slurm, missing_programs

FAKE_APT = """\
#!/bin/sh
echo "$1 policy=$([ -e {policy} ] && {policy}; echo $?)" >> {calls}
case $1 in
install) [ -e {lists} ] || {{ echo "E: Unable to locate package slurmctld"; exit 100; }}
  for program in {programs}; do printf '#!/bin/sh\\n' > {folder}/$program; chmod +x {folder}/$program; done
  echo "Setting up slurmctld (22.05.8-4) ..." ;;
update) touch {lists} ;;
esac
"""


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with a shell and nothing of Slurm; returns the folder that is its whole PATH."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for needed in ("sh", "touch", "chmod", "printf"):
        (programs / needed).symlink_to(f"/bin/{needed}")
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setattr(apt, "SYSTEM_PROGRAMS", str(tmp_path / "sbin"))
    monkeypatch.setattr(apt, "POLICY", tmp_path / "policy-rc.d")
    return programs


def give_apt(bare: Path) -> Path:
    """Puts an apt-get there which knows no packages until it was told to update; returns the file of its calls."""
    calls = bare.parent / "calls"
    script = FAKE_APT.format(
        policy=apt.POLICY, calls=calls, lists=bare.parent / "lists", programs=" ".join(apt.PROGRAMS), folder=bare
    )
    (bare / "apt-get").write_text(script)
    (bare / "apt-get").chmod(0o755)
    return calls


def test_packages_are_installed_with_fresh_lists_if_need_be_and_no_service_starts(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = give_apt(bare)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    said: list[str] = []
    ensure_slurm(said.append)

    assert calls.read_text().splitlines() == ["install policy=101", "update policy=101", "install policy=101"]
    assert not apt.POLICY.exists()
    assert missing_programs() == []
    assert "E: Unable to locate package slurmctld" in said
    assert "Setting up slurmctld (22.05.8-4)" in said


def test_nothing_is_asked_of_apt_when_slurm_is_there(bare: Path) -> None:
    calls = give_apt(bare)
    for program in apt.PROGRAMS:
        (bare / program).symlink_to("/bin/true")
    ensure_slurm(print)

    assert not calls.exists()


def test_the_machines_own_policy_on_services_stays(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    give_apt(bare)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    apt.POLICY.write_text("#!/bin/sh\nexit 104\n")
    ensure_slurm(print)

    assert apt.POLICY.read_text() == "#!/bin/sh\nexit 104\n"


def test_an_ordinary_user_is_told_the_command(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    give_apt(bare)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(SlurmUnavailable, match=r"slurmctld, .* missing, and only root .*: apt-get install -y .*munge"):
        ensure_slurm(print)


@pytest.mark.usefixtures("bare")
def test_another_system_is_told_what_would_do() -> None:
    with pytest.raises(SlurmUnavailable, match="not Debian or Ubuntu; run it on Debian 12"):
        ensure_slurm(print)


def test_a_failing_apt_is_named(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    (bare / "apt-get").write_text("#!/bin/sh\nexit 100\n")
    (bare / "apt-get").chmod(0o755)
    with pytest.raises(SlurmUnavailable, match="apt-get failed"):
        ensure_slurm(print)
