"""The path of a job's output, gone through step by step: what is found at each, and what to do."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from schemas.decisions import JobView
from streams.sources.configured import Configured
from streams.sources.lines import Labels
from streams.watch.checkup import BAD, NOTE, OK, Check, checkup
from tests.sources.benches import LokiBench, Written
from tests.watch.parts import T0, attempt_view, job_view, matcher
from tests.watch.test_store import STEP

NOW_MS = T0 + 600_000


@pytest.fixture
def loki() -> Iterator[LokiBench]:
    with closing(LokiBench()) as bench:
        yield bench


def check(view: JobView, *stores: LokiBench) -> list[Check]:
    sources = [Configured(store.source(), "local", 60_000) for store in stores]
    try:
        return checkup(view, view.attempts[-1], sources, matcher(), 2_000, NOW_MS)
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
