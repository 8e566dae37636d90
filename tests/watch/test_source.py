"""A source gives the facts of each line once, to the right attempt, and goes on after a kill with the same ids."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from schemas.aps import Aps
from schemas.bookkeeping import RecordParked
from schemas.facts import CheckpointLoaded, CheckpointSaved, PhaseEntered, ProgressObserved, SignatureMatched
from schemas.vocabulary import AttemptState, FaultClass, LineRole, Phase, Remedy, Scope
from streams.sources.files import FileFollower
from streams.watch.source import IDLE_LOOK_MS, IDLE_MS, QUIET_MS, SETTLE_MS, Source
from streams.watch.whose.claims import Claim
from tests.watch.parts import (
    NODES,
    T0,
    XID,
    attempt,
    attempt_view,
    claim_on,
    everything,
    facts_of,
    job_view,
    reading,
    restarted,
    running,
)

NOW = T0 + 600_000
STEP = (
    " [2026-08-01 {time}] iteration {step:8d}/  500000 | elapsed time per iteration (ms): 500.0 | lm loss: 2.4E+00 |\n"
)
SKIPPED = (
    " [2026-08-01 {time}] iteration {step:8d}/  500000 | elapsed time per iteration (ms): 500.0 | loss scale: 1.0 |"
    " number of skipped iterations:   1 | number of nan iterations:   0 |\n"
)
SAVED = "  successfully saved checkpoint from iteration    {step} to /ck\n"


def xid(time: str = "10:05:00.000") -> str:
    return XID.format(time=time) + "\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "slurm-7.out"


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def faults(source: Source, path: Path) -> list[SignatureMatched]:
    claim = claim_on(path, job_view(attempt_view(0, path), interval_s=2))
    return [fact for fact in facts_of(everything(source, NOW, claim)) if isinstance(fact, SignatureMatched)]


def test_a_fault_line_becomes_a_fact_with_its_evidence(path: Path) -> None:
    path.write_text("hello\n" + xid())
    [fact] = facts_of(everything(Source(str(path), reading()), NOW, running(path)))
    assert isinstance(fact, SignatureMatched)
    assert (fact.attempt, fact.signature) == (attempt(0), "xid-off-the-bus")
    assert (fact.fault_class, fact.scope) == (FaultClass.GPU_HARDWARE, Scope.NODE)
    assert (fact.remedy, fact.role) == (Remedy.RESTART_EXCLUDING_NODE, LineRole.CAUSE)
    assert (fact.position.source, fact.position.epoch, fact.position.offset) == (f"file:{path}", 0, 6)
    seen = fact.evidence
    assert (seen.node, seen.rank, seen.line_no, seen.offset) == ("node2", 3, 2, 6)
    assert (seen.line_ms, seen.read_ms) == (T0 + 300_000, NOW)
    assert seen.text == xid().strip()


def test_a_line_that_names_the_failed_node_is_evidence_against_that_node(path: Path) -> None:
    path.write_text("srun: error: Node failure on node1\nsrun: error: Node failure on stranger9\n")
    facts = list(facts_of(everything(Source(str(path), reading()), NOW, running(path))))
    assert [fact.evidence.node for fact in facts if isinstance(fact, SignatureMatched)] == ["node1", None]
    assert "stranger9" not in NODES


def test_secrets_do_not_reach_the_evidence(path: Path) -> None:
    path.write_text(
        "RuntimeError: CUDA error: unknown error at https://me:hunter2@host/x HF_TOKEN=hf_abcdefghijklmnopqrst\n"
    )
    [fact] = facts_of(everything(Source(str(path), reading()), NOW, running(path)))
    assert isinstance(fact, SignatureMatched)
    assert "hunter2" not in fact.evidence.text
    assert "hf_abc" not in fact.evidence.text


def test_progress_is_throttled_but_the_first_and_every_checkpoint_are_kept(path: Path) -> None:
    lines = [STEP.format(time=f"10:{n // 60:02}:{n % 60:02}.0", step=n) for n in range(1, 200)]
    path.write_text("".join(lines) + SAVED.format(step=199) + SAVED.format(step=200))
    facts = list(facts_of(everything(Source(str(path), reading()), NOW, running(path))))
    # of a backlog, steps are read each half minute
    assert [fact.step for fact in facts if isinstance(fact, ProgressObserved)] == [1, 90, 150]
    assert [fact.step for fact in facts if isinstance(fact, CheckpointSaved)] == [199, 200]


def test_the_steps_after_a_phase_are_kept_at_once_for_they_take_it_back(path: Path) -> None:
    steps = [STEP.format(time=f"10:00:{number:02}.0", step=number) for number in range(9)]
    source, told = Source(str(path), reading()), []
    for line in [*steps[:4], "Done.\n", *steps[4:]]:
        append(path, line)
        for fact in facts_of(everything(source, NOW, running(path))):
            assert isinstance(fact, ProgressObserved | PhaseEntered)
            told.append(fact.step if isinstance(fact, ProgressObserved) else fact.phase)
    assert told == [0, Phase.FINISHING, 4, 5]


def test_that_a_long_evaluation_goes_on_is_told_again_and_again(path: Path) -> None:
    line = "[2026-08-01 10:{0:02}:{1:02}] Test:  [{0}/63]  eta: 0:00:31  loss: 1.2101\n"
    path.write_text("".join(line.format(minute, second) for minute in range(30) for second in range(0, 60, 20)))
    facts = list(facts_of(everything(Source(str(path), reading()), NOW + 3_600_000, running(path))))
    told = [fact.line_ms or 0 for fact in facts if isinstance(fact, PhaseEntered)]
    assert len(told) < 80  # of 90, and of any number that comes faster
    assert max(told) >= T0 + 28 * 60_000


def test_a_row_of_skipped_steps_is_told_once_as_soon_as_it_is_too_long_to_be_a_search_for_a_scale(path: Path) -> None:
    times = [f"10:{second // 60:02}:{second % 60:02}.0" for second in range(0, 3000, 10)]
    skipped = [SKIPPED.format(time=time, step=step) for step, time in enumerate(times)]
    path.write_text("".join(skipped[:40]))
    source = Source(str(path), reading())
    assert faults(source, path) == []
    append(path, "".join(skipped[40:80]))
    [told] = faults(source, path)
    assert (told.signature, told.remedy) == ("skipped-steps", Remedy.TERMINATE_NO_RETRY)
    assert "number of skipped iterations:   1" in told.evidence.text
    append(path, "".join(skipped[80:150]))
    assert faults(source, path) == []
    append(path, STEP.format(time=times[150], step=150) + "".join(skipped[151:240]))
    [again] = faults(source, path)
    assert again.event_id != told.event_id


@pytest.mark.parametrize(
    "line",
    [
        SKIPPED.replace("loss scale: 1.0", "loss scale: 65536.0 | grad norm: 1.234"),
        SKIPPED.replace("loss scale: 1.0", "lm loss: 2.4E+00"),
        "step: {step}  loss:  2.99100  grad_norm:  1.2  memory: 41.2GiB(52.1%)  tps: 4,100  skipped=37{step}\n",
        "[2026-08-01 {time}] [INFO] [logging.py:96:log_dist] [Rank 0] step={step}, skipped={step}, lr=[1e-05]\n",
    ],
    ids=["a loss below nought", "some of its steps", "another counter", "no loss by which it could be taken back"],
)
def test_a_run_of_which_nobody_can_say_that_it_learns_nothing_is_left_alone(path: Path, line: str) -> None:
    steps = (line.format(time=f"10:{step // 60:02}:{step % 60:02}", step=step) for step in range(1, 300))
    path.write_text("".join(steps))
    assert faults(Source(str(path), reading()), path) == []


def test_steps_of_an_epoch_are_told_as_steps_of_the_run(path: Path) -> None:
    line = (
        "08/01 10:0{minute}:00 - mmengine - INFO - Epoch(train)  [{epoch}][50/60]  lr: 1.0e-03  time: 1.0  loss: 2.1\n"
    )
    path.write_text("".join(line.format(minute=minute, epoch=minute + 1) for minute in range(3)))
    facts = facts_of(everything(Source(str(path), reading()), NOW, running(path)))
    steps = [(fact.step, fact.total_steps) for fact in facts if isinstance(fact, ProgressObserved)]
    assert steps == [(50, None), (110, None), (170, None)]


def test_a_job_may_ask_for_a_shorter_progress_interval(path: Path) -> None:
    path.write_text("".join(STEP.format(time=f"10:00:{n:02}.0", step=n) for n in range(10)))
    claim = claim_on(path, job_view(attempt_view(0, path), interval_s=2))
    facts = facts_of(everything(Source(str(path), reading()), NOW, claim))
    assert [fact.step for fact in facts if isinstance(fact, ProgressObserved)] == [0, 2, 4, 6, 8]


@pytest.mark.parametrize(("enabled", "kept"), [(True, [0, 6, 12, 18]), (False, [0])])
def test_progress_is_kept_often_enough_for_the_threshold_of_a_hang(
    path: Path, kept: list[int], *, enabled: bool
) -> None:
    path.write_text("".join(STEP.format(time=f"10:00:{n:02}.0", step=n) for n in range(20)))
    aps = Aps(log_based_timeout_threshold_trainingloop=20, log_based_timeout_enabled=enabled)
    claim = claim_on(path, replace(job_view(attempt_view(0, path)), aps=aps))
    facts = facts_of(everything(Source(str(path), reading()), NOW, claim))
    assert [fact.step for fact in facts if isinstance(fact, ProgressObserved)] == kept


def test_a_save_that_names_no_step_is_of_the_last_one_printed(path: Path) -> None:
    path.write_text(
        "2026-08-01 10:00:00,101 - root - INFO - step: 41  loss:  3.10412  grad_norm:  0.6120\n"
        "2026-08-01 10:00:01,101 - root - INFO - step: 42  loss:  3.10412  grad_norm:  0.6120\n"
        "2026-08-01 10:00:04,000 - root - INFO - Finished saving the checkpoint in 4.02 seconds.\n"
    )
    facts = facts_of(everything(Source(str(path), reading()), NOW, running(path)))
    assert [fact.step for fact in facts if isinstance(fact, CheckpointSaved)] == [42]


def test_a_line_may_give_two_facts_at_two_positions(path: Path) -> None:
    path.write_text("iteration 7/ 10 | RuntimeError: CUDA error: unknown error\n")
    facts = list(facts_of(everything(Source(str(path), reading()), NOW, running(path))))
    assert [type(fact) for fact in facts] == [SignatureMatched, ProgressObserved]
    assert len({fact.event_id for fact in facts}) == 2
    assert facts[0].position < facts[1].position


def test_a_storm_of_one_fault_is_kept_in_its_first_lines_of_each_rank(path: Path) -> None:
    storm = "[rank{rank}]: RuntimeError: CUDA error: unknown error\n"
    path.write_text("".join(storm.format(rank=n % 4) for n in range(1200)))
    facts = list(facts_of(everything(Source(str(path), reading()), NOW, running(path))))
    assert len(facts) == 4 * 8
    assert {fact.evidence.rank for fact in facts if isinstance(fact, SignatureMatched)} == {0, 1, 2, 3}


def test_whatever_the_moment_of_the_kill_the_facts_are_the_same_ones_and_none_is_missing(path: Path) -> None:
    whole = "".join(f"noise {n}\n" + (xid(f"10:05:{n:02}.000") if n % 3 == 0 else "") for n in range(24))
    path.write_text(whole)
    expected = [fact.event_id for fact in facts_of(everything(Source(str(path), reading()), NOW, running(path)))]
    assert len(expected) == 8
    for cut in range(0, len(whole), 17):
        path.write_text(whole[:cut])
        source = Source(str(path), reading())
        seen = [fact.event_id for fact in facts_of(everything(source, NOW, running(path)))]
        append(path, whole[cut:])
        source = restarted(source, NOW)
        seen += [fact.event_id for fact in facts_of(everything(source, NOW, running(path)))]
        assert seen == expected


def test_what_was_given_and_not_written_down_comes_again_with_the_same_ids(path: Path) -> None:
    path.write_text(xid())
    first, second = (
        list(facts_of(everything(Source(str(path), reading()), now, running(path)))) for now in (NOW, NOW + 5)
    )
    assert [(fact.event_id, fact.position) for fact in first] == [(fact.event_id, fact.position) for fact in second]


def two_attempts(path: Path, *, shared: bool = True) -> Claim:
    return claim_on(
        path,
        job_view(
            attempt_view(0, path, end_ms=T0 + 300_000, state=AttemptState.REQUEUED),
            attempt_view(1, path, start_ms=T0 + 420_000, submit_time=T0 // 1000 + 301),
            shared=shared,
        ),
    )


def owners(events: Sequence[object]) -> Iterator[int]:
    for event in events:
        assert isinstance(event, SignatureMatched | ProgressObserved | CheckpointSaved | CheckpointLoaded), event
        yield event.attempt.index


def test_lines_of_several_attempts_appended_to_one_file_go_to_those_who_wrote_them(path: Path) -> None:
    path.write_text(xid("10:04:00.000") + SAVED.format(step=5) + xid("10:04:59.000") + xid("10:07:30.000"))
    events = everything(Source(str(path), reading()), NOW, two_attempts(path))
    assert list(owners(events)) == [0, 0, 0, 1]


def test_an_unstamped_line_between_two_attempts_is_parked_after_its_time_and_holds_nothing_else_back(
    path: Path,
) -> None:
    path.write_text(xid("10:04:00.000") + SAVED.format(step=5) + xid("10:07:30.000"))
    source = Source(str(path), reading(hold_ms=60_000))
    claim = two_attempts(path)
    assert list(owners(everything(source, NOW, claim))) == [0]
    assert source.read_to == (0, 0), "the position must not pass a line that waits"
    assert "2 attempts" in source.waiting
    assert everything(source, NOW + 59_000, claim) == []
    parked, fact = everything(source, NOW + 60_000, claim)
    assert isinstance(parked, RecordParked)
    assert b"successfully saved" in parked.value
    assert "2 attempts could have written it" in parked.reason
    assert list(owners([fact])) == [1]
    assert source.read_to == (0, path.stat().st_size)


def test_a_line_of_an_attempt_that_is_not_known_yet_waits_for_it(path: Path) -> None:
    path.write_text(xid("10:04:00.000") + xid("10:07:30.000"))
    source = Source(str(path), reading())
    only = claim_on(path, job_view(attempt_view(0, path, end_ms=T0 + 300_000, state=AttemptState.FAILED), shared=True))
    assert list(owners(everything(source, NOW, only))) == [0]
    assert list(owners(everything(source, NOW + 1000, two_attempts(path)))) == [1]


def test_the_file_that_slurm_truncates_at_requeue_begins_anew_for_the_next_attempt(path: Path) -> None:
    """The same path for each attempt, no append, no timestamps: the scheduler's windows and our looks decide."""
    fault = "RuntimeError: CUDA error: uncorrectable ECC error encountered\n"
    source = Source(str(path), reading())
    path.write_text("attempt 0\n" + fault)
    before = everything(source, T0 + 60_000, running(path))
    assert everything(source, T0 + 410_000, running(path)) == []
    path.write_text("attempt 1\n" + fault)
    held = everything(source, T0 + 440_000, running(path))
    assert held == [], "the scheduler's news of attempt 1 may be late"
    after = everything(source, T0 + 440_500, two_attempts(path, shared=False))
    [first], [second] = list(facts_of(before)), list(facts_of(after))
    assert (first.attempt.index, second.attempt.index) == (0, 1)
    assert (first.position.epoch, second.position.epoch) == (0, 1)
    assert first.position.offset == second.position.offset
    assert first.event_id != second.event_id
    assert first.position < second.position


def test_a_job_that_truncates_its_own_file_keeps_it_after_a_moment(path: Path) -> None:
    source = Source(str(path), reading())
    path.write_text("a first line\n")
    everything(source, NOW, running(path))
    path.write_text(xid())
    assert everything(source, NOW + 100, running(path)) == []
    [fact] = facts_of(everything(source, NOW + 100 + SETTLE_MS, running(path)))
    assert (fact.attempt.index, fact.position.epoch) == (0, 1)


def test_the_last_words_without_an_end_are_taken_once_the_attempt_is_over_and_quiet(path: Path) -> None:
    path.write_text("hello\n" + xid().rstrip("\n"))
    over = claim_on(path, job_view(attempt_view(0, path, end_ms=NOW, state=AttemptState.FAILED)))
    source = Source(str(path), reading())
    assert everything(source, NOW, running(path)) == []
    assert everything(source, NOW + QUIET_MS - 1, over) == []
    [fact] = facts_of(everything(source, NOW + QUIET_MS, over))
    assert fact.attempt == attempt(0)
    assert source.finished(NOW + 2 * QUIET_MS)


def test_a_large_backlog_is_read_in_turns(path: Path) -> None:
    path.write_text(("x" * 99 + "\n") * 200_000 + xid())
    source = Source(str(path), reading())
    assert list(source.turn(NOW, running(path))) == []
    assert source.more
    assert len(everything(source, NOW, running(path))) == 1
    assert source.read_to == (0, path.stat().st_size)


def test_a_last_line_in_the_second_of_the_end_is_of_the_attempt_that_ended_though_the_next_began_soon(
    path: Path,
) -> None:
    """Slurm says that attempt 0 ended at 10:05:00; it did so at 10:05:00.8, and attempt 1 began at 10:05:02."""
    path.write_text(xid("10:05:00.700") + xid("10:05:02.100"))
    claim = claim_on(
        path,
        job_view(
            attempt_view(0, path, end_ms=T0 + 300_000, state=AttemptState.REQUEUED),
            attempt_view(1, path, start_ms=T0 + 302_000, submit_time=T0 // 1000 + 300),
            shared=True,
        ),
    )
    assert list(owners(everything(Source(str(path), reading()), NOW, claim))) == [0, 1]


def test_many_unstamped_lines_between_stamped_ones_are_settled_in_linear_time(path: Path) -> None:
    unstamped = "RuntimeError: CUDA error: unknown error\n"
    path.write_text(xid("10:04:00.000") + unstamped * 2_000 + xid("10:04:30.000") + xid("10:07:30.000"))
    started = time.process_time()
    events = everything(Source(str(path), reading()), NOW, two_attempts(path))
    assert time.process_time() - started < 3
    assert list(owners(events)) == [0] * (1 + 8 + 1) + [1]


def test_the_first_lines_of_a_long_run_that_belongs_to_nobody_are_parked_and_the_rest_is_counted(path: Path) -> None:
    path.write_text(
        "[2026-08-01 10:04:00.0] x\n" + "RuntimeError: CUDA error: unknown error\n" * 500 + xid("10:07:30.000")
    )
    source = Source(str(path), reading(hold_ms=0))
    events = everything(source, NOW, two_attempts(path))
    assert len([event for event in events if isinstance(event, RecordParked)]) == 100
    assert source.not_parked == 400
    assert list(owners(events[100:])) == [1]


def test_a_later_line_with_a_time_frees_one_that_waits(path: Path) -> None:
    path.write_text(xid("10:04:00.000") + SAVED.format(step=5))
    source = Source(str(path), reading())
    assert list(owners(everything(source, NOW, two_attempts(path)))) == [0]
    assert source.waiting
    append(path, "[2026-08-01 10:04:30.000] still attempt 0\n")
    assert list(owners(everything(source, NOW + 100, two_attempts(path)))) == [0]
    assert not source.waiting


def test_a_file_that_was_idle_for_long_is_looked_at_less_often_until_something_is_new(path: Path) -> None:
    path.write_text("hello\n")
    source, now_ms = Source(str(path), reading()), NOW
    everything(source, now_ms, running(path))
    now_ms += IDLE_MS
    everything(source, now_ms, running(path))
    path.write_text("hello\n" + xid() * 2)
    assert everything(source, now_ms + IDLE_LOOK_MS - 1, running(path)) == []
    assert everything(source, now_ms + IDLE_LOOK_MS, running(path)) != []
    path.write_text("hello\n" + xid() * 3)
    assert everything(source, now_ms + IDLE_LOOK_MS + 1, running(path)) != [], "it is no longer idle"


def test_an_idle_file_is_looked_at_at_once_when_another_attempt_may_write_to_it(path: Path) -> None:
    path.write_text("hello\n")
    source = Source(str(path), reading())
    for now_ms in (NOW, NOW + IDLE_MS):
        everything(source, now_ms, running(path))
    path.write_text("hello\n" + xid())
    now_ms = NOW + IDLE_MS + 1
    ended = attempt_view(0, path, end_ms=T0 + 1_000, state=AttemptState.FAILED)
    both = claim_on(path, job_view(ended, attempt_view(1, path, start_ms=T0 + 2_000)))
    everything(source, now_ms, both)
    assert source.read_to[1] == path.stat().st_size


def former(lines: int) -> str:
    """What a job of another day left in the file."""
    return "".join(
        xid(f"10:{n // 60 % 60:02}:{n % 60:02}.000").replace("2026-08-01", "2026-07-29") + ("x" * 99 + "\n") * 100
        for n in range(lines)
    )


def test_a_former_jobs_lines_in_the_file_are_not_the_attempts_and_cost_it_no_time(path: Path) -> None:
    path.write_text(former(600) + xid())
    source = Source(str(path), reading())
    *parked, fact = everything(source, NOW, running(path))
    assert len(parked) == 100
    assert source.not_parked == 500
    for one in parked:
        assert isinstance(one, RecordParked)
        assert "before any known attempt" in one.reason
    assert list(owners([fact])) == [0]
    assert source.read_to == (0, path.stat().st_size)


ECC = "RuntimeError: CUDA error: uncorrectable ECC error encountered\n"


def test_last_words_without_a_time_of_a_former_job_are_not_the_attempts(path: Path) -> None:
    path.write_text(former(1) + ECC)
    source = Source(str(path), reading())
    [parked] = everything(source, T0 + 1_000, running(path))
    assert isinstance(parked, RecordParked)
    assert source.waiting, "the next line with a time may tell"
    append(path, "[2026-08-01 10:00:02.000] the attempt begins\n" + ECC)
    parked, fact = everything(source, T0 + 2_000, running(path))
    assert isinstance(parked, RecordParked)
    assert list(owners([fact])) == [0]


def test_lines_without_a_time_that_watch_sees_appear_after_those_of_a_former_job_are_the_attempts(path: Path) -> None:
    path.write_text(former(1))
    source = Source(str(path), reading())
    assert len(everything(source, T0 + 1_000, running(path))) == 1
    append(path, ECC)
    assert list(owners(everything(source, T0 + 1_100, running(path)))) == [0]
    append(path, ECC)
    assert list(owners(everything(source, T0 + 1_200, running(path)))) == [0]
    append(path, ECC)
    assert list(owners(everything(restarted(source, T0 + 1_300), T0 + 1_400, running(path)))) == [0]


def test_a_stamp_of_a_wrong_zone_takes_no_line_from_the_attempt_that_was_seen_to_write_it(path: Path) -> None:
    path.write_text("hello\n")
    source = Source(str(path), reading())
    everything(source, NOW, running(path))
    append(path, xid("08:10:00.000"))
    assert list(owners(everything(source, NOW + 100, running(path)))) == [0]


@pytest.mark.parametrize("first", ["", "[2026-08-01 10:00:01.000] begins\n"], ids=["no stamp", "a stamp in time"])
def test_a_file_of_one_attempt_is_not_searched_for_times_line_by_line(
    path: Path, first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def peek(_self: FileFollower, count: int) -> bytes:
        pytest.fail(f"looks at the next {count} bytes")

    monkeypatch.setattr(FileFollower, "peek", peek)
    path.write_text(first + "successfully saved checkpoint from iteration 5 to /ck\n" * 500)
    assert len(everything(Source(str(path), reading()), NOW, running(path))) == 500


def test_a_copy_that_takes_the_files_place_tells_nothing_a_second_time(path: Path, tmp_path: Path) -> None:
    path.write_text("start of the job\n" * 5 + xid())
    source = Source(str(path), reading())
    assert len(everything(source, NOW, running(path))) == 1
    copy = tmp_path / "copy"
    copy.write_text(path.read_text() + xid("10:06:00.000"))
    copy.replace(path)
    [fact] = facts_of(everything(source, NOW + 1_000, running(path)))
    assert (fact.position.epoch, fact.position.offset) == (0, 85 + len(xid()))


NOTICE = "slurmstepd: error: *** JOB {job} ON node1 CANCELLED AT 2026-08-01T10:05:00 DUE TO {why} ***\n"
REQUEUED = NOTICE.format(job=7, why="JOB REQUEUE")


def noticed(path: Path, notice: str = REQUEUED) -> Source:
    """The scheduler's observer is down: attempt 0 seems to run on. Slurm says at 10:05 that it took the job away."""
    path.write_text("hello\n")
    source = Source(str(path), reading())
    for now_ms in (T0 + 60_000, T0 + 299_000):
        everything(source, now_ms, running(path))
    append(path, notice)
    everything(source, T0 + 300_100, running(path))
    assert source.read_to == (0, path.stat().st_size)
    return source


@pytest.mark.parametrize("line", [xid("10:09:59.000"), ECC], ids=["stamped", "seen to appear"])
@pytest.mark.parametrize("why", ["JOB REQUEUE", "PREEMPTION", "NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS"])
def test_lines_after_slurm_took_the_job_away_wait_for_the_attempt_that_wrote_them(
    path: Path, line: str, why: str
) -> None:
    source = noticed(path, NOTICE.format(job=7, why=why))
    everything(source, T0 + 599_000, running(path))
    append(path, line)
    assert everything(source, T0 + 600_000, running(path)) == []
    assert source.waiting
    assert list(owners(everything(source, T0 + 600_100, two_attempts(path)))) == [1]


def test_lines_after_slurm_took_the_job_away_are_parked_if_no_other_attempt_becomes_known(path: Path) -> None:
    source = noticed(path)
    append(path, xid("10:09:59.000"))
    assert everything(source, T0 + 600_000, running(path)) == []
    [parked] = everything(source, T0 + 660_000, running(path))
    assert isinstance(parked, RecordParked)


def test_last_words_of_the_attempt_that_slurm_took_away_are_its_own(path: Path) -> None:
    source = noticed(path)
    append(path, xid("10:05:29.000") + ECC)
    assert list(owners(everything(source, T0 + 330_000, running(path)))) == [0, 0]
    append(path, xid("10:09:59.000"))
    ended = claim_on(path, job_view(attempt_view(0, path, end_ms=T0 + 720_000, state=AttemptState.FAILED)))
    assert list(owners(everything(source, T0 + 730_000, ended))) == [0], "the scheduler knows better"


def test_what_slurm_says_of_another_job_or_of_a_step_holds_nothing_back(path: Path) -> None:
    source = noticed(path, NOTICE.format(job=8, why="JOB REQUEUE") + REQUEUED.replace("JOB 7", "STEP 7.0"))
    append(path, xid("10:09:59.000"))
    assert list(owners(everything(source, T0 + 600_000, running(path)))) == [0]


def test_that_slurm_took_the_job_away_is_known_after_a_restart(path: Path) -> None:
    source = restarted(noticed(path), T0 + 310_000)
    append(path, xid("10:09:59.000"))
    assert everything(source, T0 + 600_000, running(path)) == []
    assert source.waiting


def test_a_notice_of_a_wrong_zone_is_of_the_moment_at_which_it_appeared(path: Path) -> None:
    source = noticed(path, REQUEUED.replace("T10:05", "T12:05"))
    append(path, xid("10:09:59.000"))
    assert everything(source, T0 + 600_000, running(path)) == []
    assert source.waiting


def test_an_old_notice_is_not_of_the_attempt_that_runs_now(path: Path) -> None:
    """Its time may be of another zone; and of what it says the scheduler's views have long known."""
    path.write_text(REQUEUED + xid("10:30:00.000"))
    assert list(owners(everything(Source(str(path), reading()), T0 + 3_600_000, running(path)))) == [0, 0]


def utc_ms(hour: int, minute: int) -> int:
    """On the day on which summer time ends in Berlin, at 01:00 UTC."""
    return int(datetime(2026, 10, 25, hour, minute, tzinfo=UTC).timestamp() * 1000)


def night(path: Path) -> Claim:
    """Attempt 0 ended at ten to three of summer time; attempt 1 began twenty minutes later, ten past two of winter."""
    end_ms = utc_ms(0, 50)
    return claim_on(
        path,
        job_view(
            attempt_view(0, path, start_ms=utc_ms(0, 0) - 7_200_000, end_ms=end_ms, state=AttemptState.REQUEUED),
            attempt_view(1, path, start_ms=utc_ms(1, 10), submit_time=end_ms // 1000),
            shared=True,
        ),
    )


HALF_PAST_TWO = xid("02:30:00.000").replace("2026-08-01", "2026-10-25")
BERLIN = ZoneInfo("Europe/Berlin")


def test_a_time_that_clocks_showed_twice_is_the_one_at_which_the_line_appeared(path: Path) -> None:
    path.write_text("hello\n")
    source, claim = Source(str(path), reading(zone=BERLIN)), night(path)
    everything(source, utc_ms(1, 29), claim)
    append(path, HALF_PAST_TWO)
    assert list(owners(everything(source, utc_ms(1, 30) + 100, claim))) == [1]


def test_a_time_that_clocks_showed_twice_of_which_nobody_saw_the_line_appear_may_be_of_either_moment(
    path: Path,
) -> None:
    path.write_text(HALF_PAST_TWO)
    source, claim = Source(str(path), reading(zone=BERLIN)), night(path)
    assert everything(source, utc_ms(1, 31), claim) == []
    assert "twice" in source.waiting
    source = Source(str(path), reading(zone=BERLIN))
    assert list(owners(everything(source, utc_ms(1, 31), running(path)))) == [0], "both are of its time"
    source = Source(str(path), reading(zone=BERLIN))
    assert list(owners(everything(source, utc_ms(0, 59), claim))) == [0], "the second is yet to come"
    path.write_text(HALF_PAST_TWO.replace("02:30:00.000", "02:30:00+02:00"))
    source = Source(str(path), reading(zone=BERLIN))
    assert list(owners(everything(source, utc_ms(1, 31), claim))) == [0], "it names its zone"
