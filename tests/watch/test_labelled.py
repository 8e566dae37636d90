"""Whose a labelled record is: by slurm_job_attempt, by file and time, by raw ids; and never a guess."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from schemas.decisions import JobView
from schemas.vocabulary import AttemptState, Mode
from streams.sources.lines import Labels
from streams.watch.whose.claims import Writer
from streams.watch.whose.labelled import Directory, Mislabelled, Nobody, Stranger, Whose
from streams.watch.whose.ownership import Wait, written_at
from tests.watch.parts import T0, attempt_view, job_view

PATH = "/logs/slurm-7.out"
MINUTE = 60_000
SKEW = 2_000
ENDED = attempt_view(0, PATH, end_ms=T0 + 10 * MINUTE, state=AttemptState.REQUEUED)
RUNNING = attempt_view(1, PATH, start_ms=T0 + 20 * MINUTE)


def whose(labels: Labels, at_ms: int, *views: JobView) -> Whose:
    known = views or (job_view(ENDED, RUNNING),)
    return Directory.of("local", known).whose(labels, written_at(at_ms, T0 + 60 * MINUTE), SKEW)


def index(verdict: Whose) -> int:
    assert isinstance(verdict, Writer), verdict
    return verdict.attempt.index


def test_the_attempt_label_decides_whatever_the_file() -> None:
    assert index(whose(Labels("7", "/elsewhere/rank3.log", attempt=0), T0)) == 0
    assert index(whose(Labels("7", attempt=1), T0 + 30 * MINUTE)) == 1


def test_without_it_the_file_and_the_time_decide() -> None:
    assert index(whose(Labels("7", PATH), T0 + MINUTE)) == 0
    assert index(whose(Labels("7", PATH), T0 + 30 * MINUTE)) == 1


def test_a_time_in_no_attempt_waits() -> None:
    assert isinstance(whose(Labels("7", PATH), T0 + 15 * MINUTE), Wait)


def test_a_file_alone_is_enough() -> None:
    assert index(whose(Labels(filename=PATH), T0 + MINUTE)) == 0


def test_an_attempt_label_that_the_time_contradicts_is_not_believed() -> None:
    verdict = whose(Labels("7", PATH, attempt=0), T0 + 30 * MINUTE)
    assert isinstance(verdict, Mislabelled)
    assert "attempt 1" in verdict.reason


def test_an_attempt_label_is_believed_where_only_the_line_says_another_time() -> None:
    known = Directory.of("local", [job_view(ENDED, RUNNING)])
    named = Labels("7", PATH, attempt=1)
    assert index(known.whose(named, written_at(T0 + 30 * MINUTE, T0 + 60 * MINUTE, T0 + MINUTE), SKEW)) == 1


def test_last_words_after_the_end_are_the_attempts_own() -> None:
    assert index(whose(Labels("7", PATH, attempt=0), T0 + 12 * MINUTE)) == 0


def test_an_attempt_that_is_not_known_yet_is_waited_for() -> None:
    verdict = whose(Labels("7", PATH, attempt=2), T0 + 30 * MINUTE)
    assert isinstance(verdict, Wait)
    assert not isinstance(verdict, Mislabelled)


def test_a_raw_id_leads_to_the_array_task() -> None:
    task = replace(job_view(attempt_view(0, PATH, job_id="70_4"), job_id="7"), job_id="70_4", raw_job_id=74)
    for name in ("74", "70_4"):
        verdict = whose(Labels(name, PATH), T0 + MINUTE, task)
        assert isinstance(verdict, Writer)
        assert verdict.attempt.job_id == "70_4"


def test_a_path_that_the_job_does_not_report_is_the_collectors_fault() -> None:
    verdict = whose(Labels("7", "/mnt/logs/slurm-7.out"), T0 + MINUTE)
    assert isinstance(verdict, Mislabelled)
    assert "/mnt/logs/slurm-7.out" in verdict.reason
    assert PATH in verdict.reason
    assert {writer.attempt.index for writer in verdict.writers} == {0, 1}


def test_neither_attempt_nor_file_is_the_collectors_fault() -> None:
    assert isinstance(whose(Labels("7"), T0 + MINUTE), Mislabelled)


def test_a_job_that_nobody_knows_may_still_come() -> None:
    for stranger in (Labels("8", "/logs/slurm-8.out"), Labels(filename="/other")):
        verdict = whose(stranger, T0)
        assert isinstance(verdict, Stranger)
        assert verdict.writers == ()


def test_a_job_that_nobody_knows_with_a_file_that_another_reports_may_be_that_one() -> None:
    verdict = whose(Labels("job-7", PATH), T0)
    assert isinstance(verdict, Stranger)
    assert {writer.attempt.index for writer in verdict.writers} == {0, 1}
    assert "job-7" in verdict.reason
    assert f"{PATH}, which job 7 reports" in verdict.reason


def test_a_job_of_another_cluster_is_a_stranger() -> None:
    assert isinstance(whose(Labels("7", PATH), T0, replace(job_view(ENDED, RUNNING), cluster="other")), Stranger)


def test_a_job_that_is_left_alone_has_no_lines() -> None:
    assert isinstance(whose(Labels("7", PATH), T0, job_view(ENDED, RUNNING, mode=Mode.DISABLED)), Nobody)
    assert isinstance(whose(Labels(), T0), Nobody)


def test_all_ids_of_a_job_are_found_by_any() -> None:
    task = replace(job_view(attempt_view(0, PATH, job_id="70_4"), job_id="7"), job_id="70_4", raw_job_id=74)
    directory = Directory.of("local", [task])
    assert directory.ids("74") == directory.ids("70_4") == ("70_4", "74")
    assert directory.ids("9") == ("9",)


@given(
    job_id=st.sampled_from([None, "7", "8"]),
    filename=st.sampled_from([None, PATH, "/other"]),
    index=st.sampled_from([None, 0, 1, 2]),
    at_ms=st.integers(T0 - 30 * MINUTE, T0 + 60 * MINUTE),
)
def test_no_labels_and_no_time_ever_give_a_line_to_an_attempt_that_they_contradict(
    job_id: str | None, filename: str | None, index: int | None, at_ms: int
) -> None:
    verdict = whose(Labels(job_id, filename, index), at_ms)
    if not isinstance(verdict, Writer):
        return
    assert job_id == "7" or (job_id is None and filename == PATH)
    if job_id is not None and index is not None:
        assert verdict.attempt.index == index
    else:
        low, high = verdict.window.start_ms, verdict.window.end_ms
        assert low is not None
        assert low - SKEW <= at_ms
        assert high is None or at_ms <= high + SKEW
