"""What launchers put before a line keeps no shipped format from being read."""

from __future__ import annotations

import pytest

from streams.watch.matching.matcher import ANSI
from streams.watch.matching.packs import Format, FormatPart, load_packs
from streams.watch.matching.patterns import compile_pattern
from tests.watch.parts import matcher

PREFIXES = {
    "srun": "3: ",
    "srun, padded": " 3: ",
    "torchrun": "[default0]:",
    "torchrun, ranks": "[rank0]:",
    "accelerate": "[rank0]: ",
    "DeepSpeed": "worker-1: ",
    "pdsh": "gpu-node-01: ",
    "Ray": "(RayTrainWorker pid=21231, ip=10.0.0.12) ",
    "Ray, coloured": "\x1b[36m(TrainTrainable pid=123)\x1b[0m ",
    "mpirun": "[1,0]<stdout>:",
    "mpirun, errors": "[1,0]<stderr>: ",
    "a time": "2026-08-01T10:00:00.123Z ",
    "Kubernetes": "2026-08-01T10:00:00.123456789Z stdout F ",
    "journald": "Aug 01 10:00:00 n01 train[123]: ",
    "Compose": "trainer-1  | ",
    "a rank": "[Rank 0] ",
    "a node": "ip-10-0-0-12: ",
    "a node's whole name": "gpu-a100-07.cluster.site.org: ",
    "a time in brackets": "[2026-08-01 10:00:00,123] ",
    "a level": "[INFO] ",
    "colour": "\x1b[32m",
    "two of them": "3: [rank0]: ",
    "ts": "Aug 01 10:00:00 ",
    "ts, seconds in parts": "Aug 01 10:00:00.123456 ",
    "a time and a zone's name": "2026-08-01 10:00:00.123 CEST ",
    "an export": "2026-08-01 10:00:00.123 CET\t",
    "an export, the level first": "INFO\t2026-08-01 10:00:00\t",
    "loguru": "2026-08-01 10:00:00.123 | INFO     | trainer.loop:<module>:12 - ",
    "Composer": "rank0[2311][MainThread]: ",
}
FORMATS = load_packs().formats
EXAMPLES = [
    pytest.param(example, id=f"{known.framework}, {name} {number}")
    for known in FORMATS
    for name, part in (("step", known.step), ("saved", known.saved), ("loaded", known.loaded))
    if part is not None
    for number, example in enumerate(part.examples)
]
MARKS = [(known.mark, example) for known in FORMATS if known.mark is not None for example in known.mark.examples]
OTHER_BARS = [
    *("Map: ", "Evaluating: ", "[eval] ", "(validation) ", "Loading checkpoint shards: ", "train: ", "[shard 3] "),
    *("[2/5] ", "[Epoch 1 eval] ", "train-00000-of-00010: ", "data-00007.parquet: ", "(epoch 3) ", "[eval-1] "),
    *("Aug 01 10:00:00 Map: ", "2026-08-01 10:00:00 TEST ", "eval\t", "Map\t", "shard:3\t", "INFO\teval\t", "val | "),
    *("(map_tokenize pid=1234) ", "(EvalWorker pid=7, ip=10.0.0.1) ", "3: (download_shard pid=7) "),
]


def read(text: str) -> list[tuple[object, ...]]:
    """What a line says of steps and checkpoints, without where in the line it says so."""
    found = matcher().scan(f"{text}\n".encode())
    return [
        (step and (step.framework, step.step, step.total_steps, step.epoch), *(one and one.step for one in saves))
        for step, saves in ((one.progress, (one.saved, one.loaded)) for one in found)
        if step or any(saves)
    ]


@pytest.mark.parametrize("example", EXAMPLES)
def test_each_example_is_read_alike_behind_each_prefix(example: str) -> None:
    wanted = read(example)
    found = {launcher: read(prefix + example) for launcher, prefix in PREFIXES.items()}
    assert wanted
    assert {launcher: told for launcher, told in found.items() if told != wanted} == {}


@pytest.mark.parametrize(("mark", "example"), MARKS)
def test_a_framework_is_known_by_its_mark_behind_each_prefix(mark: FormatPart, example: str) -> None:
    lines = [ANSI.sub(b"", (prefix + example).encode()) for prefix in PREFIXES.values()]
    assert [line for line in lines if mark.pattern.search(line) is None] == []


@pytest.mark.parametrize("known", FORMATS, ids=lambda known: known.framework)
def test_no_counter_example_is_read_behind_a_prefix(known: Format) -> None:
    """Some counter-examples are another framework's steps."""
    found = {
        prefix + example: told
        for example in known.counter_examples
        for prefix in PREFIXES.values()
        if (told := read(prefix + example)) != read(example)
    }
    assert found == {}


@pytest.mark.parametrize("word", OTHER_BARS)
def test_a_word_before_a_bar_says_that_it_counts_something_else(word: str) -> None:
    assert read(f"{word} 41%|####      | 366/903 [5:15:39<6:53:09, 46.16s/it]") == []


def test_what_stands_at_the_beginning_is_not_found_further_on() -> None:
    assert compile_pattern(r"^iter (?P<step>\d+)", behind_launchers=True).search(b"an iter 3") is None
    assert compile_pattern(r"[^a]\^ (?P<step>\d+)", behind_launchers=True).search(b"b^ 3") is not None
