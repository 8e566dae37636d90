"""What is read of a program that no format knows: its steps' time, and the saves that are done."""

from __future__ import annotations

from pathlib import Path

import pytest

from streams.diagnose.formats import Detected, detect
from streams.diagnose.matching import known_formats
from streams.diagnose.unknown_saves import saved_step


def read(tmp_path: Path, *lines: str) -> Detected:
    file = tmp_path / "run.log"
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return detect(str(file), *known_formats(), lambda _name, _read, _size: None)


@pytest.mark.parametrize(
    ("line", "seconds"),
    [
        ("round-step {step} goal 2.5 | 0.25 s/it", 0.25),
        ("round-step {step} goal 2.5 | 4.0 it/s", 0.25),
        ("round-step {step} goal 2.5 iter_time: 0.25s, data_time: 0.01s", 0.25),
        ("round-step {step} goal 2.5 step time 250 ms", 0.25),
        ("round-step {step} goal 2.5 | dt: 250.00ms | done 3", 0.25),
        ("round-step {step} goal 2.5 | steps/sec 4.0| rank 0", 0.25),
        ("round-step {step} goal 2.5, It/sec 4.0, peak 5.1 GB", 0.25),
        ("{{'goal': 2.5, 'step': {step}, 'speed(s/it)': 0.25}}", 0.25),
        ("round-step {step} goal 2.5 data_time: 0.25", None),
        ("round-step {step} goal 2.5 elapsed time 250 s", None),
        ("round-step {step} cost=2.5 steps/sec: 4.0", 0.25),
        ("round-step {step} cost=2.5 it/s=4.0", 0.25),
        ("round-step {step} goal 2.5 step time 812 us", None),
    ],
)
def test_the_time_of_a_step_is_read_by_the_words_around_it(tmp_path: Path, line: str, seconds: float | None) -> None:
    found = read(tmp_path, *(line.format(step=step) for step in (7, 8, 9, 10)))
    assert found.framework is None
    assert [step.step for step in found.steps] == [7, 8, 9, 10]
    assert {step.seconds_per_step for step in found.steps} == {seconds}


@pytest.mark.parametrize(
    ("line", "step"),
    [
        ("Saved checkpoint to gs://bucket/run1/step-9485 for step 9485", 9485),
        ("Trial PPO_CartPole saved a checkpoint for iteration 7 at: (local)/root/results", 7),
        ("saved checkpoint to /ckpt/run1/ckpt-388.", 388),
        ("Saved model parameters to: /cache/base_checkpoints/d20/model_005000.pt", 5000),
        ("Now best checkpoint is saved as best_mIoU_iter_16000.pth.", 16000),
        ("Saved first model at 37.10450 @ 4999 steps", 4999),
        ("State dict saved!", None),
        ("Checkpoint saved: step=60 path=/ckpt/60", 60),
        ("=> saved step[60] of the model to /ckpt/60.pt", 60),
        ("Wrote checkpoint /ckpt/step_00060.pt (2.1 GB) in 12.3 s", 60),
        ("12:01:43 Training checkpoint saved in 4.31 seconds", None),
        ("Model weights saved in ./out/checkpoint-400/model.safetensors", 400),
        ("Saved model to /models/model-70/last.pt", None),
    ],
)
def test_a_save_that_is_done_is_known_by_its_words(line: str, step: int | None) -> None:
    assert saved_step(line.encode()) == (True, step)


@pytest.mark.parametrize(
    "line",
    [
        "Saving checkpoint at step 200 to /ckpt",
        "Checkpoints will be saved to /ckpt",
        "Failed to save checkpoint: model was not saved",
        "Configuration saved in /ckpt/model/config.json",
        "tokenizer and model config saved",
        "loaded the model that was saved at step 200",
        "a checkpoint is being saved",
        "saved 12 samples of the dataset",
        "Model state saved to host memory at step 44",
        "async save of checkpoint step 40 started; previous saved",
        "saved 3 images of the model at step 5",
        "step 12 loss 2.1",
        "Saved checkpoint to /ckpt/step-500.tmp",
        "Saved checkpoint to /dev/shm/ckpt/step-500",
        "Saved checkpoint shard 1/8 for step 500",
        "saved checkpoint step 500 to local nvme; upload to s3 in progress",
        "checkpoint saved: False (step 500)",
        "Skipping checkpoint save at step 50: already saved",
        "Deleted old saved checkpoint at step 300",
        "Last saved checkpoint was step 400",
        "Checkpoint saved at step 500 is corrupt",
    ],
)
def test_what_is_no_finished_save_is_none(line: str) -> None:
    assert saved_step(line.encode()) == (False, None)


def test_the_parts_of_one_save_are_one(tmp_path: Path) -> None:
    steps = [f"round-step {step} goal 2.5" for step in (7, 8, 9, 10)]
    parts = [f"rank {rank}: saved model state to /ckpt/step_10/part-{rank}.pt at step 10" for rank in range(4)]
    found = read(tmp_path, *steps, *parts, "saved model state at step 20")
    assert [checkpoint.step for checkpoint in found.checkpoints] == [10, 20]
