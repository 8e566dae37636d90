"""The path of a job's output, gone through step by step: what is found at each, and what to do."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from schemas.decisions import JobView
from streams.sources.configured import Configured
from streams.sources.lines import Labels
from streams.watch.checkup import BAD, NOTE, OK, Check, checkup
from streams.watch.own import OwnFormats
from tests.sources.benches import LokiBench, Written
from tests.watch.parts import T0, attempt_view, job_view, matcher
from tests.watch.test_store import STEP

NOW_MS = T0 + 600_000


@pytest.fixture
def loki() -> Iterator[LokiBench]:
    with closing(LokiBench()) as bench:
        yield bench


def check(view: JobView, *stores: LokiBench, formats: OwnFormats | None = None) -> list[Check]:
    sources = [Configured(store.source(), "local", 60_000) for store in stores]
    try:
        return checkup(view, view.attempts[-1], sources, matcher(), formats or OwnFormats(), 2_000, NOW_MS)
    finally:
        for one in sources:
            one.source.close()


def states(checks: list[Check]) -> dict[str, str]:
    return {one.step: one.state for one in checks}


def test_a_file_that_is_read_and_known_is_well(tmp_path: Path) -> None:
    path = tmp_path / "slurm-7.out"
    path.write_text(STEP.format(n=41) + "\n" + STEP.format(n=42) + "\n")
    checks = check(job_view(attempt_view(0, path)))
    assert {one.state for one in checks} <= {OK, NOTE}
    assert any("step 42 of" in one.found for one in checks)


def counting(path: Path, progress: str | None = None) -> JobView:
    path.write_text("".join(f"it {n} loss {9 / n:.3f}\n" for n in range(1, 9)))
    view = job_view(attempt_view(0, path))
    assert view.aps is not None
    return replace(view, aps=replace(view.aps, log_based_progress_pattern=progress))


def known_line(checks: list[Check]) -> Check:
    return next(one for one in checks if one.step == "a known line comes back")


def test_lines_of_no_known_format_are_shown_with_what_goes_into_the_comment(tmp_path: Path) -> None:
    found = known_line(check(counting(tmp_path / "slurm-7.out")))
    assert found.state == BAD
    assert "lines like `it 1 loss 9.000` seem to count steps" in found.found
    assert '"anomaly_detection_config":{"log_based_progress_pattern":"^' in found.advice
    assert "watch.arm_on_proposed" in found.advice


def test_a_file_in_which_nothing_counts_is_answered_with_the_keys_that_help(tmp_path: Path) -> None:
    path = tmp_path / "slurm-7.out"
    path.write_text("hello\n" * 9)
    advice = known_line(check(job_view(attempt_view(0, path)))).advice
    assert "log_based_progress_pattern" in advice
    assert "watch.packs" in advice


def test_the_jobs_own_pattern_and_what_watch_uses_of_its_own_are_known(tmp_path: Path) -> None:
    path, pattern = tmp_path / "slurm-7.out", r"^it (?P<step>\d+) "
    given = known_line(check(counting(path, pattern)))
    assert (given.state, given.found) == (OK, f"{path}: step 8 of custom")
    view, formats = counting(path), OwnFormats()
    formats.use(view.attempts[0].attempt, pattern, NOW_MS)
    assert known_line(check(view, formats=formats)) == given


def test_a_pattern_that_watch_refuses_is_a_step_that_fails(tmp_path: Path) -> None:
    first, *_ = check(counting(tmp_path / "slurm-7.out", r"it (?P<step>\d+"))
    assert (first.step, first.state) == ("the patterns of its APS comment can be used", BAD)
    assert "log_based_progress_pattern is refused: RE2 can't read it: missing )" in first.found


def test_a_file_that_is_not_there_is_found_with_what_to_do(tmp_path: Path) -> None:
    [first, _sources] = check(job_view(attempt_view(0, tmp_path / "nowhere.out")))
    assert first.state == BAD
    assert "nowhere.out" in first.found
    assert "mount" in first.advice


@contextmanager
def kept_out(folder: Path) -> Iterator[None]:
    """The folder may not be entered: by its owner, or by nobody where the owner is root, who may enter all."""
    folder.chmod(0)
    root = os.geteuid() == 0
    if root:
        os.seteuid(65_534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)
        folder.chmod(stat.S_IRWXU)


def test_a_folder_that_may_not_be_entered_is_named(tmp_path: Path) -> None:
    shut = tmp_path / "shut"
    shut.mkdir()
    (shut / "slurm-7.out").write_text("x\n")
    matcher()  # its packs are read by the user that runs the tests
    with kept_out(shut):
        [first, *_] = check(job_view(attempt_view(0, shut / "slurm-7.out")))
    assert (first.step, first.state) == ("watch may read it", BAD)
    assert "let the user of watch enter /" in first.advice


def test_output_of_an_unknown_format_is_found(tmp_path: Path) -> None:
    path = tmp_path / "slurm-7.out"
    path.write_text("all is well\n" * 100)
    assert states(check(job_view(attempt_view(0, path))))["a known line comes back"] == BAD


def test_a_store_that_has_the_lines_makes_the_missing_file_a_note(loki: LokiBench) -> None:
    labels = Labels("7", "/logs/slurm-7.out")
    loki.write([Written(STEP.format(n=3), NOW_MS - 5_000, labels)])
    checks = check(job_view(attempt_view(0, "/logs/slurm-7.out")), loki)
    assert BAD not in {one.state for one in checks}
    assert states(checks)["loki:main: lines come back in time"] == OK


def test_each_fault_of_a_collector_is_found_at_its_step(loki: LokiBench) -> None:
    view = job_view(attempt_view(0, "/logs/slurm-7.out"))
    assert states(check(view, loki))["loki:main: the filter fits lines"] == BAD

    loki.write([Written("x", NOW_MS - 9_000, Labels(filename="/logs/other.out"))])
    checks = check(view, loki)
    assert states(checks)["loki:main: job_id can be queried"] == BAD
    assert any("1 without job_id" in one.found for one in checks)

    loki.write([Written("x", NOW_MS - 9_000, Labels("7", "/mnt/slurm-7.out"))])
    found = next(one for one in check(view, loki) if one.state == BAD)
    assert found.step == "loki:main: filename and slurm_job_attempt name the attempt"
    assert "/mnt/slurm-7.out" in found.found

    loki.server.token = "secret"
    found = next(one for one in check(view, loki) if one.state == BAD)
    assert (found.step, "401" in found.found) == ("loki:main answers, and lets us in", True)
