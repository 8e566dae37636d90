"""What a run survived again and again explains its end only where nothing else does."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from schemas.vocabulary import FaultClass, Remedy
from streams.diagnose.account import Account
from streams.diagnose.habits import Habits
from streams.diagnose.matching import general_matcher
from streams.diagnose.reading import Piece
from streams.diagnose.verdict import Diagnosis, conclude

NOW_MS = 1_785_578_400_000
LIMIT = "slurmstepd: error: *** JOB 99 ON node1 CANCELLED AT 2026-08-01T10:05:00 DUE TO TIME LIMIT ***"
LOST = "srun: error: Node failure on node2"
OOM = "RuntimeError: CUDA out of memory. Tried to allocate {0}.71 GiB (GPU 0; 31.72 GiB total capacity)"
PORT = "node2:412:{0} [0] transport/net_ib.cc:94 NCCL WARN NET/IB : mlx5_0:1 Got async event : port error"
ASSERTED = "Traceback (most recent call last):\n  File '/tmp/answer_{0}.py', line 9, in <module>\nAssertionError"
KILLED = "srun: error: node2: task 3: Killed"
EXITED = "srun: error: node2: task 3: Exited with exit code 1"
FAILED = "E0801 torch/distributed/elastic/api.py:869] failed (exitcode: 1) local_rank: 5 (pid: 23105) of binary: python"
NCCL = (
    "[rank0]:[E801 10:10:03.114 ProcessGroupNCCL.cpp:607] [Rank 0] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=80, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600060 milliseconds before timing out."
)


@cache
def general() -> Any:
    return general_matcher()


def said(*lines: str) -> Diagnosis:
    account = Account("job.log", NOW_MS)
    account.take(Piece("".join(f"{line}\n" for line in lines).encode(), 0, 1), general())
    account.end()
    return conclude([account])


def step(number: int) -> str:
    stamp = f"[2026-08-01 10:00:{number:02d}.000000]"
    return f" {stamp} iteration {number:8d}/  500000 | elapsed time per iteration (ms): 1000.0 | lm loss: 2.4 |"


def survived(fault: str, times: int) -> list[str]:
    """Steps, and so often a fault between two of them; the last one is after the last step."""
    return [line for number in range(times + 1) for line in (step(number), fault.format(number))]


@pytest.mark.parametrize("fault", [OOM, PORT, ASSERTED])
def test_alone_at_the_end_of_a_log_it_is_noise(fault: str) -> None:
    found = said(*survived(fault, 3))
    assert (found.fault_class, found.remedy, found.nodes) == (FaultClass.BENIGN_NOISE, Remedy.IGNORE, ())
    assert "went on after 3 lines that can mean a fault. Nothing came of 1 after the last step" in found.explanation
    assert said(*survived(fault, 1)).remedy is not Remedy.IGNORE, "once may have been luck"


@pytest.mark.parametrize(
    ("end", "fault_class"),
    [
        (LIMIT, FaultClass.SCHEDULER_TIMEOUT),
        (LOST, FaultClass.NODE_LOST),
        (NCCL, FaultClass.NCCL_TIMEOUT),
        ("KeyError: 'labels'", FaultClass.USER_CODE),
    ],
)
@pytest.mark.parametrize("fault", [OOM, PORT, ASSERTED])
def test_whatever_else_is_told_explains_the_end(fault: str, end: str, fault_class: FaultClass) -> None:
    assert said(*survived(fault, 3), end).fault_class is fault_class


@pytest.mark.parametrize("end", [(EXITED,), (FAILED, EXITED), (FAILED,)])
def test_it_is_a_fault_where_the_program_is_said_to_have_failed_and_nothing_says_of_what_else(
    end: tuple[str, ...],
) -> None:
    found = said(*survived(OOM, 3), *end)
    assert (found.fault_class, found.remedy) == (FaultClass.CUDA_OOM, Remedy.TERMINATE_NO_RETRY)


def test_a_program_that_was_killed_did_not_end_of_it() -> None:
    assert said(*survived(OOM, 3), KILLED).remedy is Remedy.RESTART


def test_other_words_and_more_lines_at_once_were_not_survived() -> None:
    assert said(*survived(ASSERTED, 3), "KeyError: 'labels'").fault_class is FaultClass.USER_CODE
    assert said(*survived(OOM, 3), *(OOM.format(9) for _ in range(3))).fault_class is FaultClass.CUDA_OOM


def test_broken_hardware_stays_broken_however_often_training_went_on() -> None:
    gone = "Aug  1 10:00:{0:02d} node2 kernel: NVRM: Xid (PCI:0000:06:00): 79, GPU has fallen off the bus."
    found = said(*survived(gone, 4))
    assert (found.fault_class, found.nodes) == (FaultClass.GPU_HARDWARE, ("node2",))


def test_numbers_that_are_none_at_the_end_are_no_habit() -> None:
    nan = "loss became nan at iteration {0}"
    assert said(*survived(nan, 4)).fault_class is FaultClass.NUMERIC_NAN


def test_why_an_attempt_failed_is_not_what_it_survived() -> None:
    loaded = "  successfully loaded checkpoint from /ck [ t 1/8, p 1/4 ] at iteration 1"
    found = said(*survived(OOM, 3), LIMIT, loaded, *(step(number) for number in range(2, 20)))
    assert "Before, the run had failed and started over: the job's time limit was reached" in found.explanation


IMPORT = "ModuleNotFoundError: No module named 'numpy'"
SAVED = "  successfully saved checkpoint from iteration       8 to /ck [ t 1/2, p 1/1 ]"
VALIDATED = " validation loss at iteration 8 | lm loss value: 2.724416E+00 | lm loss PPL: 1.524753E+01 | "
NORMAL_ENDS = [
    "[after training is done] datetime: 2026-08-01 10:00:10 ",
    "{'train_runtime': 3000.9, 'train_samples_per_second': 5.8, 'train_loss': 0.31, 'epoch': 3.0}",
    "`Trainer.fit` stopped: `max_epochs=5` reached.",
    "[rank0]:[titan] 2026-08-01 10:00:10,000 - root - INFO - Training completed",
]


@pytest.mark.parametrize("after", [SAVED, VALIDATED, "{'eval_loss': 0.0932, 'epoch': 1.0}", *NORMAL_ENDS])
@pytest.mark.parametrize("fault", [OOM, PORT, IMPORT])
def test_what_a_program_does_only_where_nothing_failed_shows_that_nothing_did(fault: str, after: str) -> None:
    found = said(step(7), step(8), fault.format(1), after)
    assert (found.fault_class, found.remedy, found.nodes) == (FaultClass.BENIGN_NOISE, Remedy.IGNORE, ())


@pytest.mark.parametrize("after", [SAVED, VALIDATED, *NORMAL_ENDS])
def test_what_ends_a_run_is_not_undone_by_what_other_processes_print(after: str) -> None:
    for fault, fault_class in [
        (NCCL, FaultClass.NCCL_TIMEOUT),
        (LOST, FaultClass.NODE_LOST),
        (LIMIT, FaultClass.SCHEDULER_TIMEOUT),
    ]:
        assert said(step(7), step(8), fault, after).fault_class is fault_class
    assert said(step(7), step(8), IMPORT, EXITED, after).fault_class is FaultClass.USER_CODE


@pytest.mark.parametrize("after", [SAVED, VALIDATED])
def test_who_waits_may_wait_for_what_failed_before_another_rank_saved(after: str) -> None:
    assert said(step(7), step(8), IMPORT, after, NCCL).fault_class is FaultClass.USER_CODE
    assert said(step(7), step(8), IMPORT, after, LIMIT).fault_class is FaultClass.SCHEDULER_TIMEOUT


def test_a_save_proves_little_where_the_program_then_fails_or_saves_because_it_does() -> None:
    assert said(step(7), step(8), IMPORT, SAVED, FAILED).fault_class is FaultClass.USER_CODE
    emergency = SAVED.replace("/ck", "/ck/emergency")
    assert said(step(7), step(8), IMPORT, emergency).fault_class is FaultClass.USER_CODE
    assert said(step(7), step(8), step(9), IMPORT, SAVED).fault_class is FaultClass.USER_CODE, "a save of long before"


def test_of_a_flood_of_kinds_only_a_bounded_part_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.diagnose.habits.MOST_KINDS", 1)
    habits = Habits()
    lines = [found for letter in "ab" if (found := said(f"KeyError: '{letter}'").root) is not None]
    for _ in range(2):
        habits.outlived(lines)
    assert habits.survived(lines) == [True, False]
