"""Training that counts no steps is seen to go on by what it says of its loss at an epoch."""

from __future__ import annotations

import pytest

from schemas.vocabulary import FaultClass
from tests.diagnose.test_course import said

ALARM = "srun: error: node07: task 8: Bus error"
LIMIT = "slurmstepd: error: *** JOB 42 ON node1 CANCELLED AT 2026-08-01T{at}:00 DUE TO TIME LIMIT ***"


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


def test_a_run_whose_epochs_take_hours_did_not_hang_for_one() -> None:
    epochs = [hourly(8, 190), hourly(10, 200)]
    assert said(*epochs, LIMIT.format(at="11:30")).fault_class is FaultClass.SCHEDULER_TIMEOUT
    assert said(*epochs, LIMIT.format(at="12:30")).fault_class is FaultClass.HANG_NO_LOG


def test_a_log_goes_on_after_a_step_no_longer_than_steps_took_before() -> None:
    steps = [f"2026-08-01 {hour:02}:00:00 step {hour}/4000 loss 2.1 lr 1e-4" for hour in (6, 8, 10)]
    assert said(*steps, "2026-08-01 11:30:00 heartbeat").fault_class is FaultClass.BENIGN_NOISE
    assert said(*steps, "2026-08-01 12:30:00 heartbeat").fault_class is FaultClass.HANG_NO_LOG
