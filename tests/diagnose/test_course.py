"""Whether a run became slow for good, and whether anything was still learned in its steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import pytest

from schemas.vocabulary import FaultClass, Remedy, Scope
from streams.diagnose.account import Account
from streams.diagnose.matching import general_matcher
from streams.diagnose.reading import Piece
from streams.diagnose.report import diagnosis_json, diagnosis_text
from streams.diagnose.verdict import Diagnosis, conclude

NOW_MS = 1_785_578_400_000


@cache
def general() -> Any:
    return general_matcher()


def said(*lines: str) -> Diagnosis:
    account = Account("job.log", NOW_MS)
    account.take(Piece("".join(f"{line}\n" for line in lines).encode(), 0, 1), general())
    account.end()
    return conclude([account])


def nano(step: int, seconds: float) -> str:
    return f"iter {step}: loss 2.4000, time {seconds * 1000:.2f}ms, mfu 41.00%"


def megatron(step: int, seconds: float, *, batch: int = 64) -> str:
    stamp = datetime(2026, 8, 1, 10, tzinfo=UTC) + timedelta(seconds=step)
    return (
        f" [{stamp:%Y-%m-%d %H:%M:%S}] iteration {step:8d}/  500000 | elapsed time per iteration (ms): "
        f"{seconds * 1000:.1f} | global batch size: {batch:5d} | lm loss: 2.4 |"
    )


def deepspeed(step: int, seconds: float) -> str:
    """This framework's lines say nothing of a step's time: their own times do."""
    stamp = datetime(2026, 8, 1, 10, tzinfo=UTC) + timedelta(seconds=10 * step if seconds < 1 else 30 * step - 1200)
    return (
        f"[{stamp:%Y-%m-%d %H:%M:%S},101] [INFO] [logging.py:96:log_dist] [Rank 0] step={step}, skipped=0, lr=[1e-05]"
    )


def bar(step: int, seconds: float) -> str:
    passed = int(step if seconds < 1 else 60 + 4 * (step - 60))
    return f" 12%|#2   | {step}/6607 [{passed // 60:02d}:{passed % 60:02d}<18:47,  9.99s/it]"


def run(line: Callable[[int, float], str], times: Iterable[float]) -> list[str]:
    return [line(step, seconds) for step, seconds in enumerate(times)]


@pytest.mark.parametrize("line", [nano, megatron, deepspeed, bar])
def test_steps_that_became_slow_for_good_are_a_straggler_that_names_no_node(
    line: Callable[[int, float], str],
) -> None:
    found = said(*run(line, [0.9] * 60 + [2.7] * 40))
    assert (found.fault_class, found.scope, found.remedy) == (FaultClass.STRAGGLER, Scope.UNKNOWN, Remedy.WAIT)
    assert (found.nodes, diagnosis_json(found)["ranks"]) == ((), [])
    assert found.root is not None
    assert 61 <= found.root.evidence.line_no <= 64
    assert found.root.evidence.file == "job.log"
    assert "times the" in found.explanation
    assert any("let it run, and look at" in text for text in diagnosis_text(found))


STEADY = [1.0] * 60
PAUSES = [5.0 if step % 10 == 9 else 1.0 for step in range(100)]


@pytest.mark.parametrize(
    "lines",
    [
        run(megatron, PAUSES),
        run(megatron, [90.0, 30.0, *STEADY]),
        run(megatron, [1.0 + 0.01 * step for step in range(200)]),
        [*run(megatron, [*STEADY, *[3.0] * 12]), *[megatron(step, 1.0) for step in range(72, 90)]],
        [*run(megatron, STEADY), *[megatron(step, 3.0, batch=256) for step in range(60, 100)]],
        [f"[rank{rank}]: {line}" for line in run(megatron, [*STEADY, 40.0]) for rank in range(8)],
        run(megatron, [3.0 if step // 20 % 2 else 1.0 for step in range(160)]),
        [*run(nano, [0.25] * 60), *[nano(step, 0.9) for step in range(60, 70)]],
    ],
    ids=[
        "pauses",
        "warm-up",
        "drift",
        "healed",
        "larger batch",
        "one pause of all ranks",
        "again and again",
        "only for a moment",
    ],
)
def test_what_is_not_slow_for_good_is_healthy(lines: list[str]) -> None:
    found = said(*lines)
    assert (found.fault_class, found.remedy, found.root) == (FaultClass.BENIGN_NOISE, Remedy.IGNORE, None)


def test_steps_that_include_a_save_or_an_evaluation_do_not_make_a_run_slow() -> None:
    def between(words: str) -> list[str]:
        return [text for step in range(60, 90) for text in (words, megatron(step, 6.0))]

    steady = run(megatron, STEADY)
    for words in ("saving checkpoint at iteration 60 to /ck in torch_dist format", "Running evaluation for 'v3'..."):
        assert said(*steady, *between(words)).remedy is Remedy.IGNORE
    assert said(*steady, *between("nothing of interest")).fault_class is FaultClass.STRAGGLER


def test_an_evaluation_with_its_own_bar_is_compared_with_itself() -> None:
    def evaluated(step: int) -> str:
        passed = f"{9 * step // 60:02d}:{9 * step % 60:02d}"
        return f"Validation DataLoader 0:  12%|#2   | {step}/80 [{passed}<18:47,  9.00s/it]"

    found = said(*run(bar, [0.9] * 60), *[evaluated(step) for step in range(40)])
    assert found.remedy is Remedy.IGNORE
    assert (found.steps.first_step, found.steps.last_step) == (0, 59), "the steps of training, not of its evaluation"


def test_a_fault_and_a_normal_end_explain_more_than_slow_steps() -> None:
    slow = run(megatron, [*STEADY, *[3.0] * 40])
    oom = "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.20 GiB."
    assert said(*slow, oom).fault_class is FaultClass.CUDA_OOM
    assert said(*slow, "Training completed.").remedy is Remedy.IGNORE
    resumed = "  successfully loaded checkpoint from /ck [ t 1/8, p 1/4 ] at iteration 60"
    again = [megatron(step, 3.0) for step in range(60, 100)]
    assert said(*run(megatron, STEADY), resumed, *again).remedy is Remedy.IGNORE, "another attempt has its own pace"


def skipped(step: int) -> str:
    return (
        f" iteration {step:8d}/    8000 | elapsed time per iteration (ms): 6956.6 | loss scale: 1.0 |"
        " number of skipped iterations:   1 | number of nan iterations:   0 |"
    )


def of_deepspeed(step: int, in_all: int) -> str:
    return f"[INFO] [logging.py:96:log_dist] [Rank 0] step={step}, skipped={in_all}, lr=[1e-05], mom=[[0.9, 0.95]]"


OVERFLOW = "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768"
NO_NUMBER = "(trainer:663) WARNING: The grad norm is nan. Skipping updating the model."
GOOD = [megatron(step, 1.0) for step in range(20)]


@pytest.mark.parametrize(
    "lines",
    [
        [*GOOD, *[skipped(step) for step in range(20, 80)]],
        [of_deepspeed(step, max(0, step - 40)) for step in range(10, 200, 10)],
        [text for step in range(60) for text in (OVERFLOW, nano(step, 1.0))],
        [*GOOD, *[OVERFLOW] * 60],
        [NO_NUMBER] * 10,
        [*[megatron(step, 1.0) for step in range(4000)], *[skipped(step) for step in range(4000, 4300)]],
    ],
    ids=["Megatron", "DeepSpeed", "each step", "without a step", "never a number", "at the end of a long log"],
)
def test_a_run_that_skips_every_step_has_lost_its_numbers_and_is_not_healthy(lines: list[str]) -> None:
    found = said(*lines)
    assert (found.fault_class, found.scope) == (FaultClass.NUMERIC_NAN, Scope.JOB)
    assert found.remedy is Remedy.TERMINATE_NO_RETRY
    assert found.root is not None
    assert found.root.signature == "skipped-steps"
    limit = "slurmstepd: error: *** JOB 42 ON node1 CANCELLED AT 2026-08-01T10:09:00 DUE TO TIME LIMIT ***"
    assert said(*lines, limit).fault_class is FaultClass.NUMERIC_NAN


@pytest.mark.parametrize(
    "lines",
    [
        [skipped(step) for step in range(34)],
        [*[skipped(step) for step in range(60)], *[megatron(step, 1.0) for step in range(60, 80)]],
        [of_deepspeed(step, min(step, 30)) for step in range(10, 200, 10)],
        [text for step in range(200) for text in ([OVERFLOW] * (step % 10 == 0) + [nano(step, 1.0)])],
        [OVERFLOW] * 20,
        [NO_NUMBER] * 5,
    ],
    ids=["looking for a scale", "found again", "found soon", "now and then", "a few", "no number, a few times"],
)
def test_steps_that_are_skipped_while_a_scale_is_looked_for_are_normal(lines: list[str]) -> None:
    assert said(*lines).remedy is Remedy.IGNORE
