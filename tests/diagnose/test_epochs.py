"""Training that counts no steps is seen to go on by what it says of its loss at an epoch."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from schemas.vocabulary import FaultClass
from tests.diagnose.test_course import said

ALARM = "srun: error: node07: task 8: Bus error"
LIMIT = "slurmstepd: error: *** JOB 42 ON node1 CANCELLED AT 2026-08-01T{at}:00 DUE TO TIME LIMIT ***"

TWO_RUNS = ["01:00", "01:01", "01:02", "07:00", "07:01"]


def logged(epoch: float, loss: str = "1.4021") -> str:
    return f"{{'loss': {loss}, 'grad_norm': 0.8127, 'learning_rate': 1.7e-05, 'epoch': {epoch}}}"


def hourly(hour: int, epoch: int) -> str:
    return f"2026-08-01 {hour:02}:00:00,190 [INFO] Epoch {epoch}, Time 187401.1s, Loss 0.4371, LR 0.2000"


@pytest.mark.parametrize(
    "after",
    [
        [logged(0.31)],
        ["Epoch 4: train loss 1.31, val loss 1.52"],
        ["Epoch 3 [ 420/1875] loss 0.4127 lr 1.0e-04 0.38 s/it"],
    ],
)
def test_an_alarm_after_which_training_went_on_was_none(after: list[str]) -> None:
    assert said(ALARM, *after).fault_class is FaultClass.BENIGN_NOISE
    assert said(*after, ALARM).fault_class is FaultClass.HOST_OOM


@pytest.mark.parametrize("after", [logged(0.30), logged(0.31), logged(0.32, "nan"), logged(0.32, "0.0")])
def test_training_went_on_only_where_it_is_further_and_has_a_loss(after: str) -> None:
    assert said(logged(0.31), ALARM, after).fault_class is not FaultClass.BENIGN_NOISE


@pytest.mark.parametrize(
    "prose",
    [
        "=> resuming from 'best.pt' (epoch 12, loss 0.43)",
        "Best model: epoch 12, val loss 0.43",
        "Error: run aborted at epoch 12, loss 2.31",
        "Epoch 12 failed (last loss: 2.31)",
    ],
)
def test_prose_about_an_epoch_takes_nothing_back(prose: str) -> None:
    assert said(logged(0.31), ALARM, prose).fault_class is FaultClass.HOST_OOM


def test_what_a_program_raised_itself_stays_though_lines_of_before_are_printed_late() -> None:
    raised = ["Traceback (most recent call last):", '  File "t.py", line 3, in main', "    go()"]
    raised += ["torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"]
    assert said(*raised, "Epoch 0: train loss 2.31", "Epoch 1: train loss 2.01").fault_class is FaultClass.CUDA_OOM


def test_what_is_said_after_the_end_is_still_no_fault() -> None:
    assert said("epoch 10/10 loss 0.0931", "Training finished.", ALARM).fault_class is FaultClass.BENIGN_NOISE
    assert said("Training finished.", "epoch 10/10 loss 0.0931", ALARM).fault_class is FaultClass.HOST_OOM


@pytest.mark.parametrize("before", ["", "0: ", "[rank0]:[rank0]: ", "node07: "])
def test_an_exception_counts_whatever_a_launcher_puts_before_it(before: str) -> None:
    raised = f"{before}torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"
    assert said(raised, "1: Epoch 0: train loss 2.31", "1: Epoch 1: train loss 2.01").fault_class is FaultClass.CUDA_OOM


def test_a_crash_behind_the_loss_in_one_line_is_one() -> None:
    crash = "Epoch 4: loss 0.40 Segmentation fault (core dumped)"
    assert said("Epoch 3: loss 0.41", crash).fault_class is FaultClass.USER_CODE


@pytest.mark.parametrize("done", ["DONE", "Done.", "All done!"])
def test_who_is_done_has_trained_before(done: str) -> None:
    assert said("step 10/10 loss 1.2", done, ALARM).fault_class is FaultClass.BENIGN_NOISE
    assert said("epoch 10/10 loss 1.2", done, ALARM).fault_class is FaultClass.BENIGN_NOISE
    assert said("Preparing dataset...", done, ALARM).fault_class is FaultClass.HOST_OOM


def test_an_alarm_after_many_that_meant_nothing_still_counts_where_the_program_failed() -> None:
    often = [line for epoch in range(9) for line in (ALARM, logged(epoch / 10))]
    assert said(*often).fault_class is FaultClass.BENIGN_NOISE
    assert said(*often, ALARM).fault_class is FaultClass.BENIGN_NOISE
    failed = "srun: error: node2: task 3: Exited with exit code 1"
    assert said(*often, ALARM, failed).fault_class is FaultClass.HOST_OOM
    assert said(*[ALARM] * 8, logged(0.1), ALARM).fault_class is FaultClass.HOST_OOM


def test_the_time_between_two_runs_in_one_log_is_no_measure_of_a_step() -> None:
    steps = [f"2026-08-01 {at}:00 step {number}/4000 loss 2.1 lr 1e-4" for number, at in enumerate(TWO_RUNS)]
    assert said(*steps, "2026-08-01 12:00:00 heartbeat").fault_class is FaultClass.HANG_NO_LOG
    assert said(*steps, LIMIT.format(at="12:00")).fault_class is FaultClass.HANG_NO_LOG


def test_a_run_whose_epochs_take_hours_did_not_hang_for_one() -> None:
    epochs = [hourly(8, 190), hourly(10, 200)]
    assert said(*epochs, LIMIT.format(at="11:30")).fault_class is FaultClass.SCHEDULER_TIMEOUT
    assert said(*epochs, LIMIT.format(at="12:30")).fault_class is FaultClass.HANG_NO_LOG


def test_two_lines_of_one_epoch_are_no_two_epochs() -> None:
    twice = [text for line in (hourly(8, 190), hourly(10, 200)) for text in (line, line.replace(":00:00", ":01:00"))]
    assert said(*twice, LIMIT.format(at="11:30")).fault_class is FaultClass.SCHEDULER_TIMEOUT


def test_of_a_long_log_the_time_of_a_step_is_that_of_one_step() -> None:
    begin = datetime(2026, 7, 20, tzinfo=UTC)
    steps = [f"{begin + timedelta(minutes=step):%F %T} step {step}/400000 loss 2.1 lr 1e-4" for step in range(8020)]
    after = [f"{begin + timedelta(minutes=8020 + minute):%F %T} heartbeat" for minute in range(0, 56, 5)]
    assert said(*steps, *after).fault_class is FaultClass.HANG_NO_LOG


def test_one_pause_alone_says_nothing_of_a_step() -> None:
    steps = [f"2026-08-01 {at}:00 step {step}/4000 loss 2.1 lr 1e-4" for step, at in ((1, "01:00"), (2, "07:00"))]
    assert said(*steps, "2026-08-01 12:00:00 heartbeat").fault_class is FaultClass.HANG_NO_LOG


def test_a_log_goes_on_after_a_step_no_longer_than_steps_took_before() -> None:
    steps = [f"2026-08-01 {2 * step:02}:00:00 step {step}/4000 loss 2.1 lr 1e-4" for step in (3, 4, 5)]
    assert said(*steps, "2026-08-01 11:30:00 heartbeat").fault_class is FaultClass.BENIGN_NOISE
    assert said(*steps, "2026-08-01 12:30:00 heartbeat").fault_class is FaultClass.HANG_NO_LOG
