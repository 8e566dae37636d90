"""Which framework's lines these are, what is read from them, and what an unknown program counts."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schemas.aps_comment import parse_aps
from streams.diagnose.formats import MOST_READ, Detected, detect
from streams.diagnose.matching import known_formats
from streams.diagnose.reading import Unreadable
from streams.diagnose.report import detected_json, detected_text
from streams.watch.guessing import guess
from streams.watch.matching.examples import load_matcher
from streams.watch.matching.packs import Packs, load_packs, read_pack
from streams.watch.matching.proposals import pack_lines
from streams.watch.matching.shapes import Shapes

DATA = Path(__file__).parents[1] / "watch" / "data"
FORMATS = [
    json.loads(line)
    for name in ("formats.jsonl", "more_formats.jsonl")
    for line in (DATA / name).read_text(encoding="utf-8").splitlines()
]
# Step and seconds of the first step lines, as a person reads them.
READ: dict[str, list[tuple[int, float | None]]] = {
    "Megatron-LM (current)": [(1001, 30.5124), (1002, 30.4863)],
    "Megatron-LM (older) / forks": [(10, 0.3562), (122, 86.5452)],
    "DeepSpeed": [(35, None), (34, None), (40, None)],
    "NeMo 2 / Megatron-Bridge": [(0, 10.71), (120, 0.03146)],
    "NeMo 1 (Lightning tqdm)": [(794, 41.36)],
    "PyTorch Lightning": [(4, 4.47), (391, 1 / 3.38)],
    "HF Trainer": [],
    "torchtitan": [(1, None), (22, None)],
    "MosaicML Composer / llm-foundry": [(1, 1 / 0.0503)],
    "OLMo": [(100, None), (110, None)],
    "nanoGPT": [(0, 41.23512), (100, 0.25143)],
    "fairseq / metaseq": [(2800, 25.0), (700, 1 / 0.07)],
    "mmengine": [(900, 0.4123)],
    "torchtune": [(52, 1 / 1.83), (3, 6.87)],
    "MaxText": [(1, 12.444), (2, 0.002), (3, 11.715)],
    "Keras": [(10, 1.0), (5004, 1.0), (450, 0.005)],
    "TensorFlow Estimator": [(0, None), (100, None), (665, 646.632)],
    "detectron2": [(19, 0.4487), (90000, 0.4487)],
    "Ultralytics YOLO": [(220, 1 / 3.98), (141, 3.8), (288, 3.8)],
    "timm": [(0, 3.412), (450, 0.412)],
    "Swin Transformer": [(450, 0.4021)],
    "MetricLogger (torchvision, DETR, DINO, MAE)": [(450, 0.4021), (460, 0.4011), (470, 0.802341)],
    "PyTorch ImageNet example": [(310, 0.412), (320, 0.412)],
    "mmengine / mmcv by iterations": [(400, 0.4021), (450, 0.402)],
    "PaddleNLP": [(1, 5.0), (10, 0.2)],
    "PaddleSeg / PaddleOCR / PaddleClas": [(20, 0.5344), (100, 0.18023)],
    "MindFormers": [(100, 1.234), (102, 1.23), (110, 0.71)],
    "Colossal-AI": [(120, 1.01)],
    "verl": [(1, 163.957), (2, 161.13), (3, 12.1)],
    "OpenRLHF": [(120, 1.01), (12, 132.2)],
    "CLU (T5X, Scenic and other JAX programs)": [(62508, 1.25), (62600, 0.25)],
    "Pax": [(100, None), (200, None)],
    "diffusers / kohya": [(120, 0.5), (208, 3.02)],
    "ESPnet": [(682, 1.816), (1364, 1.79)],
    "NVIDIA DLLogger": [(20, None), (25, None), (30, None)],
    "MLPerf logging": [(3072, None), (3100, None)],
    "Horovod synthetic benchmark": [(0, None), (1, None)],
    "tf_cnn_benchmarks": [(1, None), (10, None)],
    "nanotron": [(15, 1.24), (16, 0.842)],
    "LitGPT": [(1, 0.82031), (2, 0.54872), (3, 0.30007)],
    "rsl_rl": [(927, None), (928, None)],
    "rl_games": [(376, None), (377, None)],
    "llm.c": [(80, 2.95068), (4999, 0.24532), (5000, 0.24521)],
    "nanochat": [(4999, 0.51233), (5000, 0.51217)],
    "modded-nanogpt": [(249, 0.09286), (250, 0.09286)],
    "NeMo-RL": [(11, None), (12, None)],
    "prime-rl": [(49, 58.4), (50, None), (52, 0.35)],
    "ms-swift": [(1200, 12.82), (1200, 1 / 0.077917), (1205, 15.143)],
    "open-instruct": [(100, None), (101, None)],
    "XTuner v1": [(10, 3.523), (11, 3.519)],
    "Levanter": [(32, 6.5), (132, 6.5)],
    "AReaL": [(937, None), (938, None)],
    "InternEvo": [(1, None), (2, None)],
    "Meta Lingua": [(990, 0.6402), (1000, 0.6388)],
    "mlx-lm": [(80, 1 / 0.82), (90, 1 / 0.776)],
    "mmcv by epochs": [(2150, 0.391), (2200, 0.391), (50, 0.402)],
    "YOLOX": [(10, 0.677), (20, 0.592)],
    "WeNet": [(3700, 1 / 2.315), (3800, 1 / 2.316), (3900, None)],
    "open_clip": [(6464, 0.559), (12864, 0.515)],
    "PaddleDetection": [(140, 0.2063), (160, 0.2095)],
    "MXNet / GluonCV": [(100, None), (150, None), (10799, None)],
    "Darknet": [(1813, 1.233), (1814, 1.228)],
    "TensorFlow 2 Object Detection API": [(4000, 0.827), (4000, 0.827)],
    "TensorFlow Model Garden (orbit)": [(188, 1 / 9.8), (288, 1 / 10.4)],
    "StyleGAN / EDM": [(14, 366.1), (15, 366.0)],
    "nnU-Net": [(11, None), (12, None), (13, None)],
}
SAVED = {
    "Megatron-LM (current)": {2000},
    "Megatron-LM (older) / forks": {500},
    "DeepSpeed": {500},
    "NeMo 2 / Megatron-Bridge": {50},
    "NeMo 1 (Lightning tqdm)": {1000},
    "PyTorch Lightning": {40},
    "torchtitan": {22},
    "MosaicML Composer / llm-foundry": {100},
    "OLMo": {1000},
    "fairseq / metaseq": {695, 10},
    "torchtune": {3},
    "MaxText": {500},
    "Keras": {450},
    "detectron2": {4999},
    "MindFormers": {19},
    "verl": {3},
    "TensorFlow Estimator": {5000},
    "timm": {450},
    "Swin Transformer": {450},
    "PaddleSeg / PaddleOCR / PaddleClas": {100},
    "Colossal-AI": {500},
    "Pax": {200},
    "diffusers / kohya": {500},
    "nanochat": {5000},
    "prime-rl": {52},
    "open-instruct": {200},
    "Levanter": {9485},
    "AReaL": {938},
    "InternEvo": {1000},
    "Meta Lingua": {1000},
    "mlx-lm": {100, 90},
    "mmcv by epochs": {50, 16000},
    "MXNet / GluonCV": {10799},
    "TensorFlow Model Garden (orbit)": {388},
    "nnU-Net": {13},
}
TOLD_EARLY = {"NeMo 1 (Lightning tqdm)", "PyTorch Lightning"}
"""Their saves are told before they are written."""


@pytest.fixture(autouse=True)
def kept_apart(request: pytest.FixtureRequest) -> None:
    known_formats()  # all that is shipped, from where it is kept for everybody
    request.getfixturevalue("own_cache")


def read(tmp_path: Path, *lines: str) -> Detected:
    file = tmp_path / "run.log"
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return detect(str(file), *known_formats(), lambda _name, _read, _size: None)


@pytest.mark.parametrize("known", FORMATS, ids=lambda known: known["framework"])
def test_a_framework_is_known_by_its_first_three_step_lines(known: dict[str, Any], tmp_path: Path) -> None:
    found = read(tmp_path, *known["examples"]["step"][:3])
    assert found.framework == known["framework"]
    assert [step.step for step in found.steps] == [step for step, _seconds in READ[known["framework"]]]
    for step, (_number, seconds) in zip(found.steps, READ[known["framework"]], strict=True):
        assert step.seconds_per_step == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize("known", FORMATS, ids=lambda known: known["framework"])
def test_only_a_finished_save_is_a_checkpoint(known: dict[str, Any], tmp_path: Path) -> None:
    steps = known["examples"]["step"][:3]
    went_on = ["Training completed."] if known["framework"] in TOLD_EARLY else []
    for kind, lines in known["examples"].items():
        if kind == "checkpoint_saved":
            saved = {checkpoint.step for checkpoint in read(tmp_path, *steps, *lines, *went_on).checkpoints}
            assert saved == SAVED.get(known["framework"], set())
        else:  # each alone: a later save proves an earlier one
            assert [line for line in lines if read(tmp_path, *steps, line).checkpoints] == [], kind


@pytest.mark.parametrize("known", FORMATS, ids=lambda known: known["framework"])
def test_only_a_line_of_a_step_is_one(known: dict[str, Any]) -> None:
    for kind, lines in known["examples"].items():
        found = known_formats()[1].scan("".join(f"{line}\n" for line in lines).encode())
        assert {one.progress is not None for one in found} <= {kind == "step"}, kind


def test_the_time_of_a_step_is_read_from_the_lines_below_it(tmp_path: Path) -> None:
    lines = [
        text
        for batch in range(1, 4)
        for text in (f"[batch={batch}/30]:", "\t Train loss: 12.0", f"\t Train throughput/batches_per_sec: 0.{batch}")
    ]
    found = read(tmp_path, *lines, "[batch=4/30]:", "[batch=5/30]:", "\t Train throughput/batches_per_sec: 0.5")
    seconds = [step.seconds_per_step for step in found.steps]
    assert seconds == [pytest.approx(1 / 0.1), pytest.approx(1 / 0.2), pytest.approx(1 / 0.3), None, 2.0]


@pytest.mark.parametrize(
    ("line", "step", "seconds"),
    [
        ("| epoch 001:    200 / 1374 loss=14.351, ppl=20000, ups=1, bsz=80, num_updates=200, lr=2.8e-05", 200, 1.0),
        ("3: | epoch 002:    7 / 1374 loss=nan, ppl=20000, ups=1.2, bsz=80, num_updates=1381, lr=0.1", 1381, 1 / 1.2),
        ('10:00:00 | INFO | train_inner | {"epoch": 1, "loss": "8.2", "ups": "0.5", "num_updates": "10"}', 10, 2.0),
    ],
)
def test_older_and_other_bars_of_fairseq_are_read(line: str, step: int, seconds: float, tmp_path: Path) -> None:
    found = read(tmp_path, line)
    assert found.framework == "fairseq / metaseq"
    assert [one.step for one in found.steps] == [step]
    assert found.steps[0].seconds_per_step == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("step", "save"),
    [
        ("[2026-08-01 10:00:01.5] iteration {0}/ 9 | ", "successfully saved checkpoint from iteration {0} to /ck"),
        ("batch_done n={0} t=0.31", "Checkpoint saved: step={0}"),
    ],
)
def test_of_many_saves_the_last_ones_are_told_once_each(step: str, save: str, tmp_path: Path) -> None:
    numbers = range(1, MOST_READ + 701)
    ranks = [f"[rank{rank}]: {save}" for rank in range(2)]
    found = read(tmp_path, *(text.format(number) for number in numbers for text in (step, *ranks)))
    assert [saved.step for saved in found.checkpoints] == list(numbers[-MOST_READ:])


def test_of_lines_below_a_step_those_of_its_rank_count(tmp_path: Path) -> None:
    lines = ["1: [batch=1/30]:", "0: [batch=1/30]:", "0: \t Train throughput/batches_per_sec: 0.1"]
    found = read(tmp_path, *lines, "1: \t Train throughput/batches_per_sec: 0.2", *["x" * 100] * 100)
    assert [step.seconds_per_step for step in found.steps] == [5.0, 10.0]
    lines = ["[batch=1/30]:", *["x" * 100] * 100, "\t Train throughput/batches_per_sec: 0.2"]
    assert [step.seconds_per_step for step in read(tmp_path, *lines).steps] == [None]


def test_the_step_of_a_progress_bar_is_read(tmp_path: Path) -> None:
    bar = (
        "\r 41%|####      | 366/903 [5:15:39<6:53:09, 46.16s/it]\r 41%|####      | 367/903 [5:16:25<6:52:09, 46.16s/it]"
    )
    assert [step.step for step in read(tmp_path, bar).steps] == [366, 367]


@pytest.mark.usefixtures("few_shipped")
def test_an_unknown_program_s_counter_is_found_and_proposed_as_a_format(tmp_path: Path) -> None:
    lines = [
        f"2026-08-01 10:00:0{second} worker 7 | round {5 + second} of 9 | goal {2.5 - second} | 0.{second + 41} s/it"
        for second in range(5)
    ]
    found = read(tmp_path, *lines, "an odd line 3", "another one 4")
    assert found.framework is None
    assert [step.step for step in found.steps] == [5, 6, 7, 8, 9]
    assert found.proposal is not None
    assert found.proposal.caveat is None
    assert [(step.step, step.seconds_per_step) for step in found.steps][:2] == [(5, 0.41), (6, 0.42)]
    site = tmp_path / "site"
    site.mkdir()
    (site / "ours.toml").write_text("\n".join(pack_lines(found.proposal)), encoding="utf-8")
    assert as_a_site_reads(load_packs((site,)), tmp_path).steps == found.steps


def own_pack(found: Detected) -> Packs:
    assert found.proposal is not None
    return read_pack("ours.toml", "\n".join(pack_lines(found.proposal)))


def as_a_site_reads(packs: Packs, tmp_path: Path) -> Detected:
    """The same file, read by one who put what is proposed into a pack."""
    again = detect(str(tmp_path / "run.log"), packs, load_matcher(packs), lambda _name, _read, _size: None)
    assert again.framework == "ours"
    return again


STEP_LINES = [
    '{{"step": {0}, "loss": {1}, "time": "2026-05-18 10:00:07"}}',
    "{{'step': {0}, 'it''s': {1}}}",
    "[{0}/5000] loss: {1} | 1.3s/batch",
    "Update {0}: reward={1} kl=1e-{0}",
    "step {0},000 of 9,000,000 | {1} it/s",
    "\x1b[32mstep\x1b[0m {0} ▏ loss\t{1} é",
    "2026-08-01T10:00:07.123Z INFO  batch_done n={0} ce=-{1} lr=nan",
    "(Trainer pid=77, ip=10.0.0.1) iter {0} (#{{}}*+?|^$) \\ ''' \x07 {1} ms/step",
    "epoch=1 step={0} loss={1}" + " and so on" * 50,
]


@pytest.mark.parametrize("line", STEP_LINES)
def test_what_is_proposed_loads_and_reads_all_lines_that_led_to_it(line: str, tmp_path: Path) -> None:
    found = read(tmp_path, *(line.format(number, 9.5 - number) for number in range(1, 8)), "done")
    assert found.proposal is not None
    numbers = [number * 1000 if ",000" in line else number for number in range(1, 8)]
    assert [step.step for step in found.steps] == numbers
    paced = any(step.seconds_per_step is not None for step in found.steps)
    assert paced == (found.proposal.pace is not None)
    again = as_a_site_reads(own_pack(found), tmp_path)
    assert (again.steps, again.lines) == (found.steps, found.lines)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words=st.lists(st.text(max_size=9), min_size=2, max_size=4))
def test_whatever_stands_around_a_counter_its_proposal_loads_or_there_is_none(words: list[str], tmp_path: Path) -> None:
    lines = [f" step {number} loss {number / 7:.3f} ".join(words).replace("\n", " ") for number in range(5)]
    found = read(tmp_path, *lines)
    if found.framework is None and found.proposal is not None:
        assert as_a_site_reads(own_pack(found), tmp_path).lines == found.lines


@pytest.mark.parametrize(
    "prefix",
    ["{0}: ", "[rank{0}]: ", "[default{0}]:", "[1,{0}]<stdout>:", "(Worker pid={0}) ", "node{0}: ", "rank {0} "],
)
def test_of_ranks_that_print_the_same_one_is_followed(prefix: str, tmp_path: Path) -> None:
    chance = random.Random(3)
    lines = []
    for step in range(20):
        ranks = chance.sample(range(8), 8)
        lines += [f"{prefix.format(rank)}Update {step}: reward={chance.random():.2f}" for rank in ranks]
    found = read(tmp_path, *lines)
    assert found.proposal is not None
    assert [step.step for step in found.steps] == list(range(20))
    assert found.lines == 160


@pytest.mark.parametrize(
    ("line", "elsewhere"),
    [
        ("2026-08-01 10:00:0{0} [node4] step={0} loss=0.5", "2027-01-02 03:04:05 [gpu-b17] step=7 loss=0.5"),
        ("I0801 10:00:0{0}.000123 4211 run.cc:33] batch {0}", "W1231 23:00:09.000456 17 run.cc:33] batch 7"),
        ("Aug  1 10:00:0{0} gpu07 trainer[4211]: step={0}", "Sep 12 10:00:09 login trainer[18]: step=7"),
        ("Aug  1 10:00:0{0} login trainer[4211]: step={0}", "Sep 12 10:00:09 gpu07 trainer[18]: step=7"),
        ("[rank0 pid=4211 host=gpu07] step {0}, nll 0.7", "[rank3 pid=7 host=gpu11] step 7, nll 0.7"),
        ("run-7f3ac2 | 1 Aug 2026 10:00:0{0} | step {0}", "run-b0 | 12 Dec 2026 10:00:09 | step 7"),
        ("7f3ac2b1-11d0 step {0} loss 0.5", "b03acff2-12d0 step 7 loss 0.5"),
        ("Sat Aug  1 10:00:0{0} UTC 2026: step {0}", "Mon Sep 12 10:00:09 CET 2027: step 7"),
        ("3: [rank3]: step {0} loss 0.5", "0: [rank0]: step 7 loss 0.5"),
    ],
)
def test_what_is_proposed_reads_the_lines_of_another_day_and_node(line: str, elsewhere: str, tmp_path: Path) -> None:
    found = read(tmp_path, *(line.format(number) for number in range(1, 9)))
    (again,) = load_matcher(own_pack(found)).scan(f"{elsewhere}\n".encode())
    assert again.progress is not None
    assert again.progress.step == 7


@pytest.mark.parametrize(("begun", "picture"), [("█", "▏▎▍▌▋▊▉"), ("#", "123456789")])
def test_a_bar_is_proposed_with_its_count_whatever_is_in_its_picture_and_however_long_it_takes(
    begun: str, picture: str, tmp_path: Path
) -> None:
    bars = []
    for number in range(1, 1001):
        whole, part = divmod(number * (len(picture) + 1) // 100, len(picture) + 1)
        bar = (begun * whole + (picture[part - 1] if part else "")).ljust(10)
        left = (1000 - number) * 50
        bars.append(
            f"Training: {number // 10:3}%|{bar}| {number}/1000 [00:50<{left // 60:02}:{left % 60:02}, loss=0.7]"
        )
    found = read(tmp_path, *bars)
    assert found.lines == 1000
    assert [step.step for step in found.steps] == [*range(1, 1001)]
    (again,) = load_matcher(own_pack(found)).scan(b"Training:   0%|    | 7/9000 [00:50<1:07:30, loss=0.7]\n")
    assert again.progress is not None
    assert (again.progress.step, again.progress.total_steps) == (7, 9000)


@pytest.mark.parametrize(
    ("line", "first", "group"),
    [
        ("epoch {0} it {1} loss 0.3", 0, False),
        ("Epoch: {0} | step {1}/10 | nll 0.3", 1, True),
        ("ep={0}, batch={1} of 10, loss=0.3", 0, True),
    ],
)
def test_steps_that_count_anew_in_each_epoch_are_proposed_with_it(
    line: str, first: int, group: bool, tmp_path: Path
) -> None:
    found = read(tmp_path, *(line.format(first + number // 10, number % 10) for number in range(45)))
    assert found.proposal is not None
    assert [step.step for step in found.steps] == [number % 10 for number in range(45)]
    assert [step.of_run for step in found.steps] == ([*range(45)] if group else [None] * 45)
    again = as_a_site_reads(own_pack(found), tmp_path)
    assert (again.steps, again.lines) == (found.steps, found.lines)


def test_a_number_that_rises_and_falls_is_no_counter_of_an_epoch(tmp_path: Path) -> None:
    chance = random.Random(3)
    found = read(tmp_path, *(f"epoch {number} seen {chance.randrange(9999)} loss 0.3" for number in range(45)))
    assert [step.step for step in found.steps] == list(range(45))


def test_what_a_program_counts_beside_its_epochs_is_read_though_its_lines_look_like_those_of_a_trainer(
    tmp_path: Path,
) -> None:
    line = "(Trainer pid=7) {{'loss': 0.5, 'epoch': 1, 'step': {0}}}"
    assert [step.step for step in read(tmp_path, *(line.format(n) for n in range(9))).steps] == list(range(9))


def test_lines_of_several_nodes_are_of_one_format(tmp_path: Path) -> None:
    chance = random.Random(3)
    line = "2026-08-01 10:00:01 [node{0}] tok={1} loss=0.5"
    found = read(tmp_path, *(line.format(chance.randrange(4), 1048576 * number) for number in range(1, 101)))
    assert (found.lines, len(found.steps)) == (100, 100)
    each = [line.format(node, number) for number in range(1, 26) for node in chance.sample(range(4), 4)]
    found = read(tmp_path, *each)
    assert found.lines == 100
    assert [step.step for step in found.steps] == list(range(1, 26))


@pytest.mark.parametrize(
    "line",
    [
        "Downloading shard {0} of 400 at {0}1.5 MB/s",
        "2026-05-18 10:00:0{0} heartbeat pid 4412 uptime {0}s",
        "request id={0} status 200 in 12ms batch_size 8",
    ],
)
def test_what_may_count_anything_is_proposed_with_a_caveat_and_no_steps(line: str, tmp_path: Path) -> None:
    found = read(tmp_path, *(line.format(number) for number in range(1, 9)))
    assert found.proposal is not None
    assert found.proposal.caveat is not None
    assert found.steps == ()
    assert any("But no word or number of these lines" in said for said in detected_text(found))
    assert detected_json(found)["proposal"]["caveat"] == found.proposal.caveat


@pytest.mark.parametrize(
    "line",
    [
        "Map:   4%|4   | {0}/1000 [00:01<00:02, 33.0 examples/s]",
        "Downloading shards:   4%|4   | {0}/1000 [00:01<00:02, 1.0it/s]",
        "Evaluating:   4%|4   | {0}/1000 [00:01<00:02, 1.0it/s]",
        "tokenized batch {0} of 3000",
        "Capturing CUDA graph batch size {0}",
        "connection lost, retry step {0}",
    ],
)
def test_what_a_program_counts_beside_its_steps_is_proposed_with_a_caveat(line: str, tmp_path: Path) -> None:
    found = read(tmp_path, *(line.format(number) for number in range(1, 9)))
    assert found.proposal is not None
    assert found.proposal.caveat is not None
    assert found.steps == ()


@pytest.mark.parametrize(
    "line",
    [
        "heartbeat: alive for {0} s, step 4711, loss 2.31",
        "watchdog: no progress for {0} s, last step 500",
        "uptime {0} s, loss=2.31, global_step=500",
    ],
)
def test_what_rises_beside_a_step_that_stands_still_is_not_proposed(line: str, tmp_path: Path) -> None:
    assert read(tmp_path, *(line.format(number) for number in range(1, 9))).proposal is None


@pytest.mark.parametrize(
    ("line", "read_to"),
    [
        ("it {0} AKIAIOSFODNN7EXAMPLE loss 3.2", 0),
        ("it {0} --hf-token hf_abcdefghijklmnopqrstuvwxyz12345 loss 3.2", 0),
        ("it {0} MYSQL_PWD=Sup3rSecret loss 3.2", 0),
        ("it {0} loss 3.2 url=postgres://me:s3cr3tpw@db/x", 8),
        ("it {0} loss 3.2 " + "and so on " * 37 + "ghp_abcdefghijklmnopqrstuvwx", 8),
    ],
)
def test_no_secret_of_an_unknown_program_is_shown(line: str, read_to: int, tmp_path: Path) -> None:
    found = read(tmp_path, *(line.format(number) for number in range(1, 9)))
    shown = "\n".join([*detected_text(found), json.dumps(detected_json(found))])
    assert not any(secret in shown for secret in ("AKIA", "hf_a", "Sup3r", "s3cr", "ghp_"))
    assert len(found.steps) == read_to


@pytest.mark.parametrize(
    ("line", "certain"),
    [
        ("global_step {0}", True),
        ("[{0}/5000] loss: 2.3 | time per iter 250 ms", True),
        ("n={0} of total steps 5000 ce=0.3", True),
        ("step {0} mAP 0.5", True),
        ("Training:   4%|4   | {0}/1000 [00:01<00:02, 1.0it/s, loss=0.3]", True),
        ("rollout phase:   4%|4   | {0}/1000 [00:01<00:02, 1.0it/s]", False),
        ("Evaluating: batch {0} loss 2.3", False),
        ("alive for {0}, loss 2.3", False),
        ("up {0} s, loss 2.3", False),
    ],
)
def test_a_proposal_is_certain_where_its_counter_is_named_or_stands_beside_a_loss(line: str, certain: bool) -> None:
    found = guess("".join(f"{line}\n".format(number) for number in range(1, 9)).encode())
    assert found is not None
    assert found.certain == certain


def test_a_proposal_is_shown_as_the_comment_of_a_job_may_bring_it(tmp_path: Path) -> None:
    found = read(tmp_path, *(f"it {number} loss 3.2" for number in range(9)))
    [comment] = [said for said in detected_text(found) if "anomaly_detection_config" in said]
    aps = parse_aps(f'{{"APS":{{{comment.strip()}}}}}')
    assert aps is not None
    assert found.proposal is not None
    assert aps.log_based_progress_pattern == found.proposal.pattern
    long = read(tmp_path, *(f"it {number} of this run " + "loss 3.2 " * 30 for number in range(9)))
    [comment] = [said for said in detected_text(long) if "anomaly_detection_config" in said]
    assert "of\\\\s*this\\\\s*run\\\\s*loss" in comment
    assert parse_aps(f'{{"APS":{{{comment.strip()}}}}}') is not None


def test_steps_that_rise_in_no_shape_are_read_by_their_words_as_diagnose_does(tmp_path: Path) -> None:
    found = read(tmp_path, *(f"worker uptime {n}s\nEpoch: [4][ {7 - n}/50] Loss 2.{n}" for n in range(5)))
    assert (found.framework, found.proposal) == (None, None)
    assert [step.step for step in found.steps] == [7, 6, 5, 4, 3]
    assert "  Epoch: [4][ 7/50] Loss 2.0" in detected_text(found)


def test_lines_of_training_are_proposed_before_those_that_count_anything(tmp_path: Path) -> None:
    lines = [
        line for number in range(1, 9) for line in (f"shard {number}", f"request {number}", f"n={number} ce=0.{number}")
    ]
    found = read(tmp_path, *lines)
    assert found.proposal is not None
    assert (found.proposal.example, found.proposal.caveat) == ("n=1 ce=0.1", None)


@pytest.mark.parametrize("line", ["iter {0}: loss 6.10, time 250.00ms, mfu 38.12%", "Update {0}: reward=1"])
def test_of_very_many_steps_the_first_and_the_last_are_told_and_how_many_are_left_out(
    line: str, tmp_path: Path
) -> None:
    found = read(tmp_path, *(line.format(number) for number in range(3 * MOST_READ)))
    assert [step.step for step in found.steps] == [*range(MOST_READ), *range(2 * MOST_READ, 3 * MOST_READ)]
    assert detected_json(found)["steps_left_out"] == found.steps_left_out == MOST_READ
    assert f"              and {3 * MOST_READ - 5} more, the last is step {3 * MOST_READ - 1}" in detected_text(found)


def test_of_a_large_file_the_beginning_and_the_end_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.diagnose.formats.HEAD_BYTES", 1 << 16)
    monkeypatch.setattr("streams.diagnose.formats.TAIL_BYTES", 1 << 16)
    monkeypatch.setattr("streams.diagnose.reading.BLOCK_BYTES", 1 << 14)
    found = read(tmp_path, *(f"iter {number}: loss 6.1, time 250.00ms, mfu 38.12%" for number in range(20_000)))
    assert (found.steps[0].step, found.steps[-1].step) == (0, 19_999)
    size = (tmp_path / "run.log").stat().st_size
    assert size - (1 << 18) < found.bytes_left_out < size - (1 << 17) + 100


def test_times_are_told_without_digits_that_mean_nothing(tmp_path: Path) -> None:
    [first, *_] = detected_json(read(tmp_path, *(f"step {number} at 3.7 it/s" for number in range(5))))["steps"]
    assert first == {"step": 0, "seconds_per_step": 0.27027}


def test_a_counter_that_names_itself_is_preferred_to_any_other_rising_number() -> None:
    shapes = Shapes()
    for number in range(4):
        shapes.take(f"t={100 + number} iter {number * 10} mem {number}".encode())
    proposal = shapes.proposal()
    assert proposal is not None
    assert proposal.steps == (0, 10, 20, 30)


def test_lines_without_a_rising_number_propose_nothing(tmp_path: Path) -> None:
    assert read(tmp_path, *(["loading shard 3 of 9"] * 5), "done 1").proposal is None
    assert read(tmp_path, "").framework is None


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match=r"nowhere\.log can't be read: No such file"):
        detect(str(tmp_path / "nowhere.log"), *known_formats(), lambda _name, _read, _size: None)
