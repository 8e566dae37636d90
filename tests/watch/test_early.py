"""A save that is told before it is written is one once the program went on."""

from __future__ import annotations

from pathlib import Path

import pytest

from schemas.facts import CheckpointSaved
from streams.diagnose.unknown_saves import saved_step
from streams.watch.source import Source
from tests.watch.parts import T0, everything, facts_of, matcher, reading, restarted, running
from tests.watch.test_source import two_attempts

BAR = "Epoch {epoch}:  22%|##2       | {step}/100 [00:17<01:02,  4.47s/it, loss=1.07, v_num=5]"
SAVE = "Epoch {epoch}, global step {step}: 'loss' reached 0.9 (best 0.9), saving model to '/ckpt/{step}.ckpt' as top 1"
LOADED = "Resuming training from checkpoint /ckpt/run1/checkpoint-50"
FULL = "OSError: [Errno 28] No space left on device: '/ckpt/99.ckpt'"


def bar(epoch: int, step: int) -> str:
    return BAR.format(epoch=epoch, step=step)


def save(epoch: int, step: int) -> str:
    return SAVE.format(epoch=epoch, step=step)


@pytest.mark.parametrize(
    ("lines", "saved"),
    [
        ([bar(0, 99), save(0, 99)], []),
        ([bar(0, 99), save(0, 99), FULL], []),
        ([bar(0, 99), save(0, 99), bar(0, 99)], []),
        ([bar(0, 99), save(0, 99), bar(1, 1)], [99]),
        ([bar(0, 99), save(0, 99), bar(1, 1), bar(1, 2)], [99]),
        ([bar(0, 99), save(0, 99), bar(0, 3), bar(1, 1)], []),
        ([bar(0, 99), save(0, 99), bar(0, 98), bar(1, 1)], [99]),
        ([bar(1, 99), save(1, 199), bar(1, 9), bar(1, 99), bar(2, 0)], [199]),
        ([bar(0, 99), save(0, 99), LOADED, bar(1, 1)], []),
        ([bar(0, 99), save(0, 298), bar(1, 1)], [298]),
        ([save(0, 99), bar(0, 99)], []),
        ([save(0, 99), bar(0, 99), bar(1, 1)], [99]),
        ([save(0, 99), save(1, 198)], [99]),
        ([save(0, 99), save(0, 99)], []),
        ([bar(0, 99), save(0, 99), "`Trainer.fit` stopped: `max_epochs=1` reached."], [99]),
    ],
)
def test_it_counts_once_the_program_went_on(lines: list[str], saved: list[int], tmp_path: Path) -> None:
    path = tmp_path / "slurm-7.out"
    path.write_text("".join(f"{line}\n" for line in lines))
    facts = facts_of(everything(Source(str(path), reading()), T0 + 600_000, running(path)))
    assert [fact.step for fact in facts if isinstance(fact, CheckpointSaved)] == saved


HF = " 41%|####      | {0}/{1} [5:15:39<6:53:09, 46.16s/it]"
HF_SAVE = "Saving model checkpoint to ./outputs/checkpoint-500"
HF_WEIGHTS = "Model weights saved in ./outputs/checkpoint-500/model.safetensors"
D2 = "[08/01 10:01:01 d2.utils.events]:  eta: 1 day, 2:03:04  iter: {0}  total_loss: 5.412  time: 0.4487  lr: 0.00039"
D2_SAVE = "[08/01 10:01:01 fvcore.common.checkpoint]: Saving checkpoint to ./output/model_0004999.pth"
MM = "08/01 10:01:01 - mmengine - INFO - Epoch(train)  [{0}][{1}/977]  lr: 1.0000e-03  time: 0.4123  loss: 45.1021"
MM_SAVE = "08/01 10:01:01 - mmengine - INFO - Saving checkpoint at 5 epochs"
MM_ITER = "08/01 10:01:01 - mmengine - INFO - Iter(train) [  {0}/160000]  base_lr: 9.9e-03  time: 0.4021  loss: 1.4121"
MM_ITER_SAVE = "08/01 10:01:01 - mmengine - INFO - Saving checkpoint at 16000 iterations"


@pytest.mark.parametrize(
    ("lines", "saved"),
    [
        ([HF.format(500, 900), HF_SAVE], []),
        ([HF.format(500, 900), HF_SAVE, HF.format(500, 900)], []),
        ([HF.format(500, 900), HF_SAVE, HF.format(505, 900)], [500]),
        ([HF.format(500, 900), HF.format(79, 80), HF_SAVE, HF.format(500, 900)], []),
        ([HF.format(500, 900), HF.format(79, 80), HF_SAVE, HF.format(505, 900)], [500]),
        ([HF.format(500, 900), HF_SAVE, HF_WEIGHTS], [500]),
        ([HF.format(500, 900), HF_SAVE, HF_WEIGHTS, HF.format(505, 900)], [500]),
        ([HF.format(500, 900), HF_WEIGHTS.replace("-500", "")], []),
        ([HF.format(900, 900), HF_SAVE.replace("500", "900"), "{'train_runtime': 3000.9, 'epoch': 3.0}"], [900]),
        ([D2.format(4999), D2_SAVE], []),
        ([D2.format(4999), D2_SAVE, D2.format(5019)], [4999]),
        ([D2.format(4999), "[x d2.engine.hooks]: Saved first model at 37.10450 @ 4999 steps"], [4999]),
        ([MM.format(5, 950), MM_SAVE], []),
        ([MM.format(5, 950), MM_SAVE, "OSError: [Errno 122] Disk quota exceeded"], []),
        ([MM.format(5, 950), MM_SAVE, MM.format(6, 50)], [4 * 977 + 950]),
        ([MM_ITER.format(16000), MM_ITER_SAVE], []),
        ([MM_ITER.format(16000), MM_ITER_SAVE, MM_ITER.format(16050)], [16000]),
    ],
)
def test_a_save_that_a_framework_announces_counts_once_it_is_done(
    lines: list[str], saved: list[int], tmp_path: Path
) -> None:
    path = tmp_path / "slurm-7.out"
    path.write_text("".join(f"{line}\n" for line in lines))
    facts = facts_of(everything(Source(str(path), reading()), T0 + 600_000, running(path)))
    assert [fact.step for fact in facts if isinstance(fact, CheckpointSaved)] == saved


@pytest.mark.parametrize("lines", [[bar(0, 98), bar(0, 99), save(0, 99)], [save(0, 99), bar(0, 99)], [save(0, 99)]])
def test_it_counts_also_if_watch_was_restarted_before_the_program_went_on(lines: list[str], tmp_path: Path) -> None:
    path = tmp_path / "slurm-7.out"
    path.write_text("".join(f"{line}\n" for line in lines))
    source, claim = Source(str(path), reading()), running(path)
    assert [fact for fact in everything(source, T0 + 600_000, claim) if isinstance(fact, CheckpointSaved)] == []
    source = restarted(source, T0 + 601_000)
    with path.open("a") as file:
        file.write(f"{bar(1, 1)}\n{bar(1, 2)}\n")
    facts = everything(source, T0 + 602_000, claim) + everything(restarted(source, T0 + 603_000), T0 + 604_000, claim)
    assert [fact.step for fact in facts if isinstance(fact, CheckpointSaved)] == [99]


def test_whose_it_was_of_several_attempts_nobody_knows_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "slurm-7.out"
    path.write_text(f"{bar(0, 99)}\n{save(0, 99)}\n")
    source = Source(str(path), reading())
    everything(source, T0 + 600_000, running(path))
    source = restarted(source, T0 + 601_000)
    with path.open("a") as file:
        file.write(f"{bar(1, 1)}\n{bar(1, 2)}\n")
    facts = everything(source, T0 + 602_000, two_attempts(path))
    assert [fact for fact in facts if isinstance(fact, CheckpointSaved)] == []


@pytest.mark.parametrize(
    ("line", "step"),
    [
        ("[Torch] Checkpoint global_step500 is ready now!", 500),
        ("[Torch] Checkpoint step_500-final is ready now!", 500),
        ("[Torch] Checkpoint epoch2-v7_final is ready now!", None),
        ("[Torch] Checkpoint 2026-08-01_10-10 is ready now!", None),
    ],
)
def test_of_a_tag_only_a_step_is_read(line: str, step: int | None) -> None:
    (found,) = matcher().scan(f"{line}\n".encode())
    assert found.saved is not None
    assert found.saved.step == step


@pytest.mark.parametrize(
    "line",
    [
        "ERROR: could not have successfully saved checkpoint from iteration 2000 to /ckpt",
        "the rank hasn't successfully saved checkpoint from iteration 2000 to /ckpt",
        "would have saved checkpoint /ckpt/checkpoint2.pt (epoch 2 @ 695 updates, dry run)",
        "saved checkpoint /ckpt/checkpoint2.pt (epoch 2 @ 695 updates, dry run)",
        "successfully saved checkpoint from iteration 2000 to /dev/shm/ckpt",
        "successfully saved checkpoint from iteration 2000 to /ckpt/2000.tmp",
    ],
)
def test_what_is_denied_or_does_not_last_is_no_save(line: str) -> None:
    assert [found.saved for found in matcher().scan(f"{line}\n".encode()) if found.saved] == []


@pytest.mark.parametrize("path", ["/scratch/dry-run", "/ckpt/dry_run_7/x", "/ckpt/llama-dry-run", "dryrun/2000"])
def test_a_path_that_is_called_a_dry_run_is_one_like_any_other(path: str) -> None:
    line = f"successfully saved checkpoint from iteration 2000 to {path}"
    assert [found.saved is not None for found in matcher().scan(f"  {line}\n".encode())] == [True]
    assert saved_step(line.encode()) == (True, 2000)
    assert saved_step(f"{line} (dry run)".encode()) == (False, None)


def test_the_name_of_a_node_denies_nothing() -> None:
    line = b"not-a-node1:  successfully saved checkpoint from iteration 2000 to /ckpt\n"
    assert [found.saved is not None for found in matcher().scan(line)] == [True]


def test_what_another_clause_denies_is_a_save() -> None:
    line = "the loss did not improve; saved checkpoint /ckpt/2.pt (epoch 2 @ 695 updates, score 9)"
    assert [found.saved is not None for found in matcher().scan(f"{line}\n".encode())] == [True]
