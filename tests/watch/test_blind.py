"""Being blind is an alarm: told once when it begins and lasts, and once when it ends."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest

from schemas.bookkeeping import SourceRead
from schemas.decisions import JobView
from schemas.facts import BlindReported
from schemas.vocabulary import AttemptState, BlindKind, Mode
from streams.sources.files import FileState
from streams.sources.lines import Batch, Labels, SourceState
from streams.watch.blind import MOST_EPISODES, SILENT_MS, BlindWatch
from streams.watch.labelled import Directory
from streams.watch.sight import FileSight, StoreSight, findings
from streams.watch.source import Source
from streams.watch.store import StoreReader
from tests.watch.parts import T0, attempt, attempt_view, claim_on, everything, facts_of, job_view, reading
from tests.watch.test_store import STEP, Given

SECOND = 1_000


class Watched:
    """One running attempt, its file and a source; looked at every second."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.view = job_view(attempt_view(0, path), interval_s=2)
        self.positions: dict[str, SourceRead] = {}
        self.given = Given()
        self.stores: list[StoreReader] = []
        self.now_ms = T0 + SECOND
        self.start()

    def start(self) -> None:
        """Another process goes on from what was remembered."""
        self.blind = BlindWatch(missing_after_s=60, unknown_after_s=600, positions=self.positions)
        self.source = Source(str(self.path), reading())

    def add_store(self) -> None:
        self.stores = [StoreReader(self.given, "local", reading())]

    def look(self, seconds: int = 1) -> list[BlindReported]:
        reports: list[BlindReported] = []
        for _ in range(seconds):
            self.now_ms += SECOND
            for fact in facts_of(everything(self.source, self.now_ms, claim_on(self.path, self.view))):
                self.blind.heard(fact, self.now_ms)
            for reader in self.stores:
                list(reader.turn(lambda: self.now_ms, Directory.of("local", self.views()), lambda _: False))
            reports += self.blind.look(self.now_ms, self.views(), {str(self.path): self.source}, self.stores)
            self.positions |= {one.source: one for one in self.blind.moved()}
        return reports

    def views(self) -> Collection[JobView]:
        return [self.view]

    def append(self, text: str) -> None:
        with self.path.open("a") as file:
            file.write(text + "\n")


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path / "slurm-7.out")


def kinds(reports: list[BlindReported]) -> list[tuple[BlindKind, bool]]:
    return [(report.kind, report.ended) for report in reports]


def test_a_file_that_never_appears_is_told_once_and_its_appearance_too(watched: Watched) -> None:
    assert watched.look(60) == []
    [report] = watched.look(300)
    assert (report.kind, report.ended, report.kinds) == (BlindKind.ABSENT, False, (BlindKind.ABSENT,))
    assert str(watched.path) in report.detail
    assert "recovery doctor logs --job 7" in report.advice
    assert report.attempt == attempt(0)
    watched.append("hello")
    [end] = watched.look(30)
    assert (end.kind, end.ended, end.kinds) == (BlindKind.ABSENT, True, ())
    assert end.event_id != report.event_id
    assert end.position > report.position


def test_a_file_that_appears_in_time_is_no_alarm(watched: Watched) -> None:
    watched.look(30)
    watched.append("hello")
    assert watched.look(300) == []


def test_what_was_told_is_neither_repeated_nor_forgotten_by_a_restart(watched: Watched) -> None:
    [begun] = watched.look(100)
    watched.start()
    assert watched.look(300) == []
    watched.append("hello")
    [end] = watched.look(30)
    assert (end.kind, end.ended) == (begun.kind, True)


def test_output_of_no_known_format_is_told_and_a_known_line_ends_it(watched: Watched) -> None:
    reports = []
    for n in range(70):
        watched.append(f"epoch {n} is going on just fine, thank you")
        reports += watched.look(10)
    assert kinds(reports) == [(BlindKind.UNKNOWN_FORMAT, False)]
    assert "formats detect" in reports[0].advice
    watched.append(STEP.format(n=5))
    assert kinds(watched.look(5)) == [(BlindKind.UNKNOWN_FORMAT, True)]


def test_steps_that_stop_being_known_while_output_grows_are_told(watched: Watched) -> None:
    watched.append(STEP.format(n=1))
    assert watched.look(10) == []
    reports = []
    for n in range(70):
        watched.append(f"step {n} in a format of tomorrow")
        reports += watched.look(10)
    assert kinds(reports) == [(BlindKind.UNKNOWN_FORMAT, False)]


def test_silence_is_not_blindness(watched: Watched) -> None:
    watched.append("hello")
    assert watched.look(2_000) == []


def test_steps_that_come_are_no_alarm(watched: Watched) -> None:
    for n in range(100):
        watched.append(STEP.format(n=n) + "\nand something else")
        assert watched.look(10) == []


@pytest.mark.parametrize("change", ["no aps", "disabled", "pending", "ended"])
def test_only_running_attempts_that_asked_to_be_watched_are_an_alarm(watched: Watched, change: str) -> None:
    [shown] = watched.view.attempts
    if change == "no aps":
        watched.view = replace(watched.view, aps=None)
    elif change == "disabled":
        watched.view = replace(watched.view, mode=Mode.DISABLED)
        assert watched.blind.look(T0 + 10**6, watched.views(), {}, []) is not None
        return
    else:
        state = AttemptState.PENDING if change == "pending" else AttemptState.FAILED
        watched.view = replace(watched.view, attempts=(replace(shown, state=state),))
    assert watched.look(300) == []


def test_flapping_is_told_a_bounded_number_of_times(watched: Watched) -> None:
    reports = []
    for _ in range(MOST_EPISODES + 20):
        reports += watched.look(65)
        watched.append("hello")
        reports += watched.look(2)
        watched.path.unlink()
    assert len([report for report in reports if report.kind is BlindKind.ABSENT]) <= 2 * (MOST_EPISODES + 1)
    assert len({report.event_id for report in reports}) == len(reports)


def test_lines_from_a_store_make_an_absent_file_no_alarm(watched: Watched) -> None:
    watched.add_store()
    watched.given.add(("hello", Labels("7", str(watched.path))))
    assert watched.look(300) == []


def test_a_store_that_is_down_is_told_where_it_is_needed(watched: Watched) -> None:
    watched.add_store()
    watched.given.batches.append(Batch((), (), SourceState.DOWN, "kafka:raw does not answer"))
    [report] = watched.look(100)
    assert (report.kind, report.detail) == (BlindKind.SOURCE_DOWN, "kafka:raw does not answer")


def test_a_store_that_is_down_is_no_alarm_where_the_file_is_read(watched: Watched) -> None:
    watched.append("hello")
    watched.add_store()
    watched.given.batches.append(Batch((), (), SourceState.DOWN, "kafka:raw does not answer"))
    assert watched.look(100) == []


def test_labels_that_fit_nothing_are_told_with_what_they_say(watched: Watched) -> None:
    watched.add_store()
    watched.given.add(("hello", Labels("7", "/mnt/elsewhere.out")))
    [report] = watched.look(100)
    assert report.kind is BlindKind.LABELS
    assert "/mnt/elsewhere.out" in report.detail
    assert str(watched.path) in report.detail


def other() -> JobView:
    return job_view(attempt_view(0, "/logs/slurm-8.out", job_id="8"), job_id="8", interval_s=2)


def test_a_source_in_which_all_attempts_fall_silent_together_is_told_until_a_line_comes(watched: Watched) -> None:
    watched.add_store()
    watched.views = lambda: [watched.view, other()]  # type: ignore[method-assign]
    watched.given.add(("hello", Labels("7", str(watched.path))), ("hello", Labels("8", "/logs/slurm-8.out")))
    assert watched.look(SILENT_MS // SECOND) == []
    reports = watched.look(120)
    assert {(str(report.attempt), report.kind) for report in reports} == {
        (str(attempt(0, job_id)), BlindKind.SOURCE_DOWN) for job_id in ("7", "8")
    }
    assert "its collector may have died" in reports[0].detail
    watched.given.add(("hello again", Labels("8", "/logs/slurm-8.out")))
    assert kinds(watched.look(5)) == [(BlindKind.SOURCE_DOWN, True)] * 2


def test_one_attempt_that_is_silent_alone_means_no_source(watched: Watched) -> None:
    watched.add_store()
    watched.views = lambda: [watched.view, other()]  # type: ignore[method-assign]
    watched.given.add(("hello", Labels("7", str(watched.path))), ("hello", Labels("8", "/logs/slurm-8.out")))
    reports = []
    for _ in range(60):
        watched.given.add(("hello", Labels("8", "/logs/slurm-8.out")))
        reports += watched.look(10)
    assert reports == []


def test_a_source_that_could_not_tell_a_hang_from_its_own_end_is_told(watched: Watched) -> None:
    watched.add_store()
    watched.given.add(("hello", Labels("7", str(watched.path))))
    watched.look(5)
    watched.stores[0].dead[attempt(0)] = "loki:main gave lines of it, and for 900 s none of any job"
    [report] = watched.look(100)
    assert (report.kind, report.detail) == (BlindKind.SOURCE_DOWN, watched.stores[0].dead[attempt(0)])
    watched.given.add(("hello again", Labels("7", str(watched.path))))
    assert kinds(watched.look(5)) == [(BlindKind.SOURCE_DOWN, True)]


def test_a_denied_file_is_told_even_where_another_is_read() -> None:
    files = [FileSight("/a.out", FileState.FOLLOWED, ""), FileSight("/a.err", FileState.DENIED, "denied: /a.err")]
    found = findings("7", files, [])
    assert list(found) == [BlindKind.DENIED]
    assert found[BlindKind.DENIED].detail == "denied: /a.err"


def test_an_attempt_without_files_and_stores_is_absent() -> None:
    assert list(findings("7", [], [])) == [BlindKind.ABSENT]
    labelless = StoreSight("loki:main", "", gives=False, mislabelled="", labelless=True)
    assert list(findings("7", [], [labelless])) == [BlindKind.LABELS]
