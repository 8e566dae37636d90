"""Which framework's lines these are, what is read from them, and what an unknown program counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from streams.diagnose.formats import Detected, detect
from streams.diagnose.matching import known_formats
from streams.diagnose.reading import Unreadable
from streams.diagnose.shapes import Shapes
from streams.watch.examples import load_matcher
from streams.watch.packs import load_packs

FORMATS = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "watch" / "data" / "formats.jsonl")
    .read_text(encoding="utf-8")
    .splitlines()
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
    "MosaicML Composer / llm-foundry": [(1, None)],
    "OLMo": [(100, None), (110, None)],
    "nanoGPT": [(0, 41.23512), (100, 0.25143)],
    "fairseq / metaseq": [(2800, 25.0), (700, 1 / 0.07)],
    "mmengine": [(900, 0.4123)],
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
}


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
    for kind, lines in known["examples"].items():
        saved = {checkpoint.step for checkpoint in read(tmp_path, *steps, *lines).checkpoints}
        expected = SAVED.get(known["framework"], set()) if kind == "checkpoint_saved" else set()
        assert saved == expected, kind


def test_the_step_of_a_progress_bar_is_read(tmp_path: Path) -> None:
    bar = (
        "\r 41%|####      | 366/903 [5:15:39<6:53:09, 46.16s/it]\r 41%|####      | 367/903 [5:16:25<6:52:09, 46.16s/it]"
    )
    assert [step.step for step in read(tmp_path, bar).steps] == [366, 367]


def test_an_unknown_program_s_counter_is_found_and_proposed_as_a_format(tmp_path: Path) -> None:
    lines = [
        f"2026-08-01 10:00:0{second} worker 7 | round {5 + second} of 9 | goal {2.5 - second} | 0.{second + 41} s/it"
        for second in range(5)
    ]
    found = read(tmp_path, *lines, "an odd line 3", "another one 4")
    assert found.framework is None
    assert [step.step for step in found.steps] == [5, 6, 7, 8, 9]
    assert found.proposal is not None
    site = tmp_path / "site"
    site.mkdir()
    (site / "ours.toml").write_text(
        f"[[format]]\nframework = 'ours'\nstep = '''{found.proposal.pattern}'''\n"
        f"seconds_per_step = '''{found.proposal.seconds}'''\nstep_examples = ['''{lines[0]}''']\nsource = 'here'\n"
    )
    packs = load_packs((site,))
    again = detect(str(tmp_path / "run.log"), packs, load_matcher(packs), lambda _name, _read, _size: None)
    assert again.framework == "ours"
    assert [(step.step, step.seconds_per_step) for step in again.steps][:2] == [(5, 0.41), (6, 0.42)]


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
