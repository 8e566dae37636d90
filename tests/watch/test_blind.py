"""Being blind is an alarm: told once when it begins and lasts, and once when it ends."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest

from schemas.aps_comment import parse_aps
from schemas.bookkeeping import RecordParked, SourceRead
from schemas.decisions import JobView
from schemas.facts import BlindReported, ProgressObserved
from schemas.vocabulary import AttemptState, BlindKind, Mode
from streams.sources.files import FileState
from streams.sources.lines import Batch, Labels, SourceState
from streams.watch.blind import MOST_EPISODES, SILENT_MS, BlindWatch
from streams.watch.events import LineFact, source_of
from streams.watch.own import OwnFormats
from streams.watch.sight import FileSight, StoreSight, findings
from streams.watch.source import Source
from streams.watch.store import StoreReader
from streams.watch.whose.labelled import Directory
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

    def start(self, *, arms: bool = False) -> None:
        """Another process goes on from what was remembered. `arms`: the site lets found shapes be used."""
        self.reading = replace(reading(), own=OwnFormats(self.positions if arms else None))
        self.blind = BlindWatch(60, 600, self.positions, self.reading.own, arm_on_proposed=arms)
        self.source = Source(str(self.path), self.reading, self.positions.get(source_of(str(self.path))))
        self.facts: list[LineFact | RecordParked] = []

    def add_store(self) -> None:
        self.stores = [StoreReader(self.given, "local", self.reading)]

    def look(self, seconds: int = 1) -> list[BlindReported]:
        reports: list[BlindReported] = []
        for _ in range(seconds):
            self.now_ms += SECOND
            self.reading.own.learn(self.views())
            told = everything(self.source, self.now_ms, claim_on(self.path, self.view))
            for reader in self.stores:
                told += reader.turn(lambda: self.now_ms, Directory.of("local", self.views()), lambda _: False)
            for fact in facts_of(told):
                self.blind.heard(fact, self.now_ms)
            self.facts += told
            reports += self.blind.look(self.now_ms, self.views(), {str(self.path): self.source}, self.stores)
            position = self.source.position(self.now_ms)
            self.positions |= {one.source: one for one in (position, *self.blind.moved())}
        return reports

    def views(self) -> Collection[JobView]:
        return [self.view]

    @property
    def steps(self) -> list[tuple[str, int]]:
        """The framework and the step of each progress that was told."""
        return [(fact.framework, fact.step) for fact in self.facts if isinstance(fact, ProgressObserved)]

    def asks(self, **config: str) -> None:
        """The job's APS comment has these keys under anomaly_detection_config."""
        comment = json.dumps({"APS": {"progress_interval": 2, "anomaly_detection_config": config}})
        self.view = replace(self.view, aps=parse_aps(comment))

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
    for _ in range(70):
        watched.append("it is going on just fine, thank you")
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


LOST = "lr 3.0e-04 gnorm 1.31 tok/s 81234"
UNKNOWN, PATTERN = BlindKind.UNKNOWN_FORMAT, "log_based_progress_pattern"


def prints(
    watched: Watched, seconds: int, *, first: int = 0, line: str = "it {n} loss {loss:.3f} " + LOST
) -> list[BlindReported]:
    """The program prints such a line every ten seconds."""
    reports = []
    for n in range(first, first + seconds // 10):
        watched.append(line.format(n=n, loss=9 / (n + 1)))
        reports += watched.look(10)
    return reports


def proposed(report: BlindReported) -> str:
    """The pattern of a report, taken as the reader would: out of what can be copied into the comment."""
    copied = report.advice.partition('"anomaly_detection_config":')[2]
    found: str = json.JSONDecoder().raw_decode(copied)[0][PATTERN]
    return found


@pytest.mark.parametrize("by", ["file", "store"])
def test_what_seems_to_count_steps_is_proposed_so_that_it_can_be_copied_into_the_comment(
    watched: Watched, by: str
) -> None:
    if by == "store":
        watched.add_store()
        labels = Labels("7", str(watched.path))
        watched.append = lambda text: watched.given.add((text, labels), at_ms=watched.now_ms)  # type: ignore[method-assign]
    [report] = prints(watched, 700)
    assert (report.kind, report.ended) == (UNKNOWN, False)
    assert "lines like `it " in report.detail
    assert "watch.arm_on_proposed" in report.advice
    assert watched.steps == []
    watched.asks(**{PATTERN: proposed(report)})
    assert kinds(prints(watched, 60, first=70)) == [(UNKNOWN, True)]
    assert watched.steps == [("custom", n) for n in range(70, 76)]


def test_where_the_site_allows_it_what_was_found_is_used_also_after_a_restart(watched: Watched) -> None:
    watched.start(arms=True)
    begun, ended = prints(watched, 700)
    assert (begun.ended, ended.ended) == (False, True)
    assert "taken for steps from now on" in begun.advice
    assert watched.steps[0][0] == "custom"
    assert watched.steps[-1] == ("custom", 69)
    watched.start(arms=True)
    assert prints(watched, 100, first=70) == []
    assert watched.steps == [("custom", n) for n in range(70, 80)]
    watched.start()
    prints(watched, 100, first=80)
    assert watched.steps == []


def test_what_may_count_anything_is_told_and_never_used(watched: Watched) -> None:
    watched.start(arms=True)
    [report] = prints(watched, 900, line="loaded shard {n} of the corpus")
    assert "count something up, perhaps steps" in report.detail
    assert watched.steps == []


def test_a_program_that_counts_late_is_told_again(watched: Watched) -> None:
    reports = []
    for _ in range(70):
        watched.append("warming up the caches")
        reports += watched.look(10)
    assert "lines like" not in reports[0].detail
    reports += prints(watched, 900)
    assert kinds(reports) == [(UNKNOWN, False)] * 2
    assert "lines like `it " in reports[1].detail
    assert reports[0].event_id != reports[1].event_id


def test_a_proposal_is_not_told_again_by_a_restart(watched: Watched) -> None:
    assert len(prints(watched, 700)) == 1
    watched.start()
    assert prints(watched, 900, first=70) == []


def test_no_secret_comes_into_a_proposal(watched: Watched) -> None:
    [report] = prints(watched, 700, line="step {n} loss {loss:.3f} api_key=hunter2hunter2")
    assert "hunter2" not in report.detail + report.advice
    assert proposed(report) == r"^\s*step\s*(?P<step>\d+(?:,\d{3})*)\s*loss\s*"


def test_a_quote_in_a_line_does_not_end_that_of_the_shell(watched: Watched) -> None:
    [report] = prints(watched, 700, line="{{'step': {n}, 'loss': {loss:.3f}}}")
    assert "'" not in report.advice
    assert "'step':" in proposed(report)


def test_what_the_owner_says_of_his_steps_is_not_replaced_and_said_to_match_nothing(watched: Watched) -> None:
    watched.start(arms=True)
    watched.asks(**{PATTERN: r"^STEP (?P<step>\d+)$"})
    [report] = prints(watched, 900)
    assert "the log_based_progress_pattern of its APS comment matches none" in report.detail
    assert "taken for steps" not in report.advice
    assert watched.steps == []


def test_a_pattern_that_this_watch_refuses_is_told_with_the_reason(watched: Watched) -> None:
    assert watched.view.aps is not None
    watched.view = replace(watched.view, aps=replace(watched.view.aps, log_based_progress_pattern=r"it (?P<step>\d+"))
    [report] = prints(watched, 700)
    assert "log_based_progress_pattern is refused: RE2 can't read it: missing )" in report.detail
    assert proposed(report)


def test_a_shape_is_looked_for_in_few_attempts_at_a_time(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.watch.blind.MOST_GUESSED", 0)
    [report] = prints(watched, 700)
    assert "lines like" not in report.detail
    monkeypatch.setattr("streams.watch.blind.MOST_GUESSED", 1)
    [report] = prints(watched, 100, first=70)
    assert "lines like" in report.detail
