"""What a job's owner says of his lines in the APS comment counts in them, and in no others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from schemas.decisions import JobView
from schemas.facts import CheckpointSaved, ProgressObserved, SignatureMatched
from schemas.patterns import BadPattern
from streams.sources.files import BLOCK_BYTES
from streams.sources.lines import Labels
from streams.watch.events import LineFact
from streams.watch.matching.candidates import MOST_SAVES
from streams.watch.own import OwnFormats, own_format
from streams.watch.source import Source
from streams.watch.store import StoreReader
from streams.watch.telling import Reading
from streams.watch.whose.labelled import Directory
from tests.watch.parts import T0, XID, attempt_view, claim_on, everything, facts_of, job_view, reading
from tests.watch.test_store import STEP, Given

IT = r"^it (?P<step>\d+)(?:/(?P<total>\d+))? "
SAVED = r"wrote state (?P<step>\d+) to (?P<path>\S+)$"


def asking(view: JobView, progress: str | None = IT, checkpoint: str | None = None) -> JobView:
    assert view.aps is not None
    aps = replace(view.aps, log_based_progress_pattern=progress, log_based_checkpoint_pattern=checkpoint)
    return replace(view, aps=aps)


def reading_of(*views: JobView) -> Reading:
    own = OwnFormats()
    own.learn(views)
    return replace(reading(), own=own)


def read(path: Path, *views: JobView) -> list[LineFact]:
    source = Source(str(path), reading_of(*views))
    return list(facts_of(everything(source, T0 + 5_000, claim_on(path, *views))))


def steps(facts: list[LineFact]) -> list[tuple[str, int, int | None]]:
    return [(fact.framework, fact.step, fact.total_steps) for fact in facts if isinstance(fact, ProgressObserved)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "slurm-7.out"


def at(second: int, text: str) -> str:
    return f"[2026-08-01 10:00:{second:02}] {text}\n"


def test_steps_of_a_job_are_read_by_its_own_pattern(path: Path) -> None:
    path.write_text("starting\nit 3/90 loss 4.1\nwaiting for it 4 \n")
    view = job_view(attempt_view(0, path))
    [fact] = read(path, asking(view))
    assert isinstance(fact, ProgressObserved)
    assert (fact.framework, fact.step, fact.total_steps, fact.attempt) == ("custom", 3, 90, view.attempts[0].attempt)
    assert read(path, view) == []


def test_they_are_throttled_to_the_jobs_interval(path: Path) -> None:
    path.write_text("".join(at(second, f"it {second} loss 3") for second in range(60)))
    view = asking(job_view(attempt_view(0, path), interval_s=20), r"it (?P<step>\d+) ")
    assert [step for _, step, _ in steps(read(path, view))] == [0, 20, 40]


def test_a_save_counts_that_the_owner_says_is_complete(path: Path) -> None:
    path.write_text("it 7 loss 3\nwrote state 7 to /ckpt/7\nwriting state 8 to /ckpt/8\n")
    view = asking(job_view(attempt_view(0, path)), IT, SAVED)
    _, saved = read(path, view)
    assert isinstance(saved, CheckpointSaved)
    assert (saved.framework, saved.step, saved.path) == ("custom", 7, "/ckpt/7")
    [alone] = read(path, asking(view, None, SAVED))
    assert isinstance(alone, CheckpointSaved)


def test_a_save_is_none_that_is_denied_rehearsed_or_in_memory() -> None:
    own = own_format(IT, r"(?P<path>/\S+)? ?saved state (?P<step>\d+)")
    lines = ("disk full, could not have saved state 7", "dry run: saved state 7", "/dev/shm/x saved state 7")
    assert [own.checkpoint(line.encode()) for line in lines] == [None] * 3
    assert own.checkpoint(b"/scratch/dry-run saved state 7") is not None


def test_known_formats_and_faults_are_read_as_before_and_of_one_line_the_owner_is_believed(path: Path) -> None:
    lines = STEP.format(n=5) + "\n" + XID.format(time="10:00:03") + "\n"
    path.write_text(lines)
    view = job_view(attempt_view(0, path))
    plain = read(path, view)
    assert [type(fact) for fact in plain] == [ProgressObserved, SignatureMatched]
    assert read(path, asking(view)) == plain
    [step, fault] = read(path, asking(view, r"(?P<step>\d+)/ +\d+ "))
    assert isinstance(step, ProgressObserved)
    assert (step.framework, step.step, step.event_id) == ("custom", 5, plain[0].event_id)
    assert fault == plain[1]


def test_matches_stay_within_one_line_whatever_surrounds_it(path: Path) -> None:
    path.write_bytes(b"it\n4 \nloss\x1b[1mit 5\x1b[0m now\rit 6 now\x00\xff\nit 7")
    own = own_format(r"it\s+(?P<step>\d+)")
    found = reading().matcher.scan(path.read_bytes(), own=own.searches)
    read_steps = [step.step for one in found if (step := own.step(one.line)) is not None]
    assert read_steps == [5, 6, 7]
    assert [path.read_bytes()[one.start :].split(b"\n")[0][:4] for one in found][1:] == [b"it 6", b"it 7"]


def test_jobs_that_write_into_one_file_each_have_their_own(path: Path) -> None:
    path.write_text(at(5, "it 3 loss") + at(6, "round 8 loss"))
    mine = asking(job_view(attempt_view(0, path), shared=True), r"it (?P<step>\d+) ")
    other = job_view(
        attempt_view(0, path, job_id="8", start_ms=T0 + 3_600_000, submit_time=T0 // 1000), job_id="8", shared=True
    )
    assert [step for _, step, _ in steps(read(path, mine, asking(other, r"round (?P<step>\d+) ")))] == [3]


def test_lines_of_a_store_are_read_alike() -> None:
    path = "/logs/slurm-7.out"
    view = asking(job_view(attempt_view(0, path), interval_s=1), IT, SAVED)
    other = job_view(attempt_view(0, "/logs/slurm-8.out", job_id="8"), job_id="8")
    given = Given()
    reader = StoreReader(given, "local", reading_of(view, other))
    lines = ["it 1 loss", "nothing", "it 2 loss", "wrote state 2 to /ckpt/2"]
    for second, text in enumerate(lines):
        given.add((text, Labels("7", path)), (text, Labels("8", "/logs/slurm-8.out")), at_ms=T0 + 2_000 * second)
    told = reader.turn(lambda: T0 + 9_000, Directory.of("local", [view, other]), lambda _: False)
    facts = list(facts_of(list(told)))
    assert {fact.attempt for fact in facts} == {view.attempts[0].attempt}
    assert steps(facts) == [("custom", 1, None), ("custom", 2, None)]
    assert [fact.step for fact in facts if isinstance(fact, CheckpointSaved)] == [2]


def test_without_such_a_job_nobody_asks(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What others do not pay for must not even be called."""

    def called(*_: Any) -> Any:
        raise AssertionError

    for name in ("of", "searches"):
        monkeypatch.setattr(OwnFormats, name, called)
    path.write_text(STEP.format(n=5) + "\n")
    assert len(read(path, job_view(attempt_view(0, path)))) == 1


def test_a_pattern_that_can_not_be_used_is_kept_with_the_reason_and_the_job_is_read_without_it(path: Path) -> None:
    path.write_text(STEP.format(n=5) + "\n")
    view = asking(job_view(attempt_view(0, path)), r"it (?P<step>\d+")
    assert [step for _, step, _ in steps(read(path, view))] == [5]
    assert "log_based_progress_pattern is refused" in reading_of(view).own.refused[view.attempts[0].attempt]
    with pytest.raises(BadPattern, match="log_based_checkpoint_pattern is refused: it needs a group"):
        own_format(IT, "saved")


def test_an_owner_who_tells_only_his_saves_may_have_his_steps_found(path: Path) -> None:
    path.write_text("it 7 loss 3\nwrote state 7 to /ckpt/7\n")
    view = asking(job_view(attempt_view(0, path)), None, SAVED)
    own = reading_of(view)
    own.own.use(view.attempts[0].attempt, IT, T0)
    facts = everything(Source(str(path), own), T0 + 5_000, claim_on(path, view))
    assert [type(fact) for fact in facts] == [ProgressObserved, CheckpointSaved]


def test_what_was_found_is_forgotten_with_its_attempt() -> None:
    view = job_view(attempt_view(0, "/logs/slurm-7.out"))
    own = OwnFormats()
    own.use(view.attempts[0].attempt, IT, T0)
    own.learn([view])
    assert own
    own.learn([])
    assert not own


def test_what_is_remembered_is_found_again_at_the_start_and_forgotten_once_the_job_is_closed() -> None:
    view = job_view(attempt_view(0, "/logs/slurm-7.out"))
    memory = OwnFormats().use(view.attempts[0].attempt, IT, T0)
    own = OwnFormats({memory.source: memory})
    own.learn([view])
    assert own
    own.learn([])
    own.learn([view])
    assert not own


def test_a_caret_is_behind_what_launchers_put_before_a_line(path: Path) -> None:
    lines = ["3: it 5/9 loss", "[rank0]: it 6/9 loss", "node2: wrote state 6 to /ckpt/6", "no it 7/9 loss"]
    path.write_text("".join(f"{line}\n" for line in lines))
    step, saved = read(path, asking(job_view(attempt_view(0, path), interval_s=1), IT, f"^{SAVED}"))
    assert isinstance(step, ProgressObserved)
    assert (step.step, step.total_steps) == (5, 9)
    assert isinstance(saved, CheckpointSaved)
    assert (saved.step, saved.path) == (6, "/ckpt/6")
    own = own_format(IT)
    assert [own.step(line.encode()) is not None for line in lines] == [True, True, False, False]


def test_an_owner_may_name_any_process_of_his() -> None:
    line = b"(eval_loop pid=7) it 5/9 loss"
    patterns = (IT, IT.removeprefix("^"), rf"^\(eval_loop pid=\d+\) {IT.removeprefix('^')}")
    assert [own_format(pattern).step(line) is not None for pattern in patterns] == [False, True, True]


def test_a_job_that_brings_a_pattern_has_one_block_read_a_turn(path: Path) -> None:
    """Whatever it costs to search for it, the others' lines are read in between."""
    path.write_bytes(b"nothing\n" * (BLOCK_BYTES // 4))
    view = job_view(attempt_view(0, path))
    for shown, blocks in ((view, 2), (asking(view), 1)):
        source = Source(str(path), reading_of(shown))
        assert list(source.turn(T0 + 5_000, claim_on(path, shown))) == []
        assert -(-source.bytes_read // BLOCK_BYTES) == blocks
        assert source.more == (blocks == 1)


def test_a_save_between_steps_is_never_left_out_with_them(path: Path) -> None:
    view = asking(job_view(attempt_view(0, path), interval_s=60), IT, SAVED)
    lines = [f"it {n} loss 3" if n % 10 else f"wrote state {n} to /ckpt/{n}" for n in range(1, 100)]
    path.write_text("".join(f"{line}\n" for line in lines))
    assert [fact.step for fact in read(path, view) if isinstance(fact, CheckpointSaved)] == [*range(10, 100, 10)]


def test_what_the_owner_calls_a_save_in_every_line_holds_nobody_up() -> None:
    own = own_format(None, r"(?P<step>\d)")
    assert len(reading().matcher.scan(b"5\n" * (MOST_SAVES + 9), own=own.searches)) == MOST_SAVES


def test_of_many_steps_in_a_row_few_are_read() -> None:
    block = b"".join(b"it %d loss 3.2 lr 1e-4\n" % n for n in range(200_000))
    assert len(reading().matcher.scan(block, step_interval_ms=60_000, own=own_format(IT).searches)) == 2
