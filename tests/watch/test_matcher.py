"""Lines are found in blocks of any bytes, and what they say is read right."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.vocabulary import FaultClass
from streams.watch.matching.matcher import LINE_BYTES
from tests.watch.parts import matcher

XID79 = b"kernel: NVRM: Xid (PCI:0000:06:00): 79, GPU has fallen off the bus."
STEP = (
    b" [2026-08-01 10:00:31.512345] iteration     1001/  500000 | consumed samples:      1025024 |"
    b" elapsed time per iteration (ms): 30512.4 | lm loss: 2.413345E+00 | loss scale: 1.0 |"
)


PREFIXES = (
    *("", "[rank3]: ", "3: ", "node02: ", "[2026-08-01 10:00:00.123] node2 rank 3: ", "[1,0]<stderr>:", "[Rank 3] "),
    *("2024-05-01 10:00:00,123 - root - ERROR - ", "ERROR:root:", "[2024-05-01 10:00:00,123] [ERROR] [a.py:1:main] "),
    *("E0601 10:00:00.123000 4711 a.py:12] ", "May  1 10:00:00 node01 python[123]: ", "rank 3: ", "worker-0 | "),
    *("(Worker pid=11, ip=10.0.0.1) ", "[36m(Worker pid=11)[0m ", "2024-05-01T10:00:00.123Z stderr F ", "[node01:0] "),
    *('{"log":"', '{"level": "error", "rank": 3, "msg": "'),
)


def classes(*lines: str) -> list[FaultClass]:
    found = matcher().scan("".join(f"{line}\n" for line in lines).encode())
    return [one.fault.signature.fault_class for one in found if one.fault is not None]


def test_a_line_is_found_where_it_stands_among_bytes_of_any_kind() -> None:
    block = b"\xff\xfe\x00 not text\n" + XID79 + b"\r\n\x00\x00" + XID79 + b"\xff\n"
    found = matcher().scan(block)
    assert [(one.start, one.line) for one in found] == [
        (13, XID79),
        (13 + len(XID79) + 2, b"\x00\x00" + XID79 + b"\xff"),
    ]


@pytest.mark.parametrize(
    "line",
    [
        "step 59 loss 2.0 sample: 'torch.cuda.OutOfMemoryError: CUDA out of memory'",
        'step 59 loss 2.0 | prompt: "why do I get RuntimeError: NCCL error?"',
        "{'loss': 2.01, 'epoch': 0.1, 'text': 'torch.OutOfMemoryError: CUDA out of memory'}",
        "step 59 loss 2.0 tok/s 100 'CUDA error: uncorrectable ECC error encountered'",
        "iter 100 | train_loss=1.93, lr=1e-05 | completion = CUDA error: uncorrectable ECC error encountered",
    ],
)
def test_what_the_line_of_a_step_quotes_behind_its_loss_is_no_fault(line: str) -> None:
    assert [one.fault for one in matcher().scan(line.encode() + b"\n") if one.fault is not None] == []


@pytest.mark.parametrize(
    "line",
    [
        " 3%|3| 10/300 [00:10<05:00, 1.0it/s, loss=2.1]RuntimeError: CUDA error: uncorrectable ECC error 'x y'",
        "step 59 loss 2.0 torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB in 'a b'",
        "{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 4e-05, 'epoch': 0.1}",
        "step 59 loss nan sample: 'x'",
    ],
)
def test_what_follows_the_loss_and_is_no_quoted_text_counts(line: str) -> None:
    assert [one.fault for one in matcher().scan(line.encode() + b"\n") if one.fault is not None]


def test_words_of_the_data_silence_even_what_a_level_of_warning_does_not() -> None:
    killed = "failed (exitcode: -9) local_rank: 3 (pid: 812917) of binary: python"
    assert classes(f"WARNING {killed}") == [FaultClass.HOST_OOM]
    assert classes(f'{{"prompt": "{killed}"}}', f"<|user|> {killed}") == []


def test_colours_do_not_hide_a_line_and_do_not_move_it() -> None:
    coloured = XID79.replace(b"NVRM", b"\x1b[31mNV\x1b[0mRM")
    block = b"\x1b[32mfine\x1b[0m\n" + coloured + b"\nlast\n" + XID79 + b"\n"
    found = matcher().scan(block)
    assert [one.line for one in found] == [XID79, XID79]
    assert [one.start for one in found] == [block.index(coloured), block.index(XID79)]


def test_redrawn_progress_bars_are_lines() -> None:
    found = matcher().scan(
        b"\r 41%|##  | 366/903 [5:15:39<6:53:09, 46.16s/it]\r 41%|##  | 367/903 [5:16:25<6:53:09, 46.20s/it]\n"
    )
    assert [(one.progress.step, one.progress.seconds_per_step(one.line)) for one in found if one.progress] == [
        (366, 46.16),
        (367, 46.2),
    ]


def test_one_line_has_one_fault_which_is_the_weightiest() -> None:
    [found] = matcher().scan(b"RuntimeError: CUDA error: unknown error; uncorrectable ECC error encountered\n")
    assert found.fault is not None
    assert found.fault.signature.id == "gpu-ecc"


def test_a_step_of_megatron_is_read() -> None:
    [found] = matcher().scan(STEP + b"\n")
    assert found.progress is not None
    assert (found.progress.step, found.progress.total_steps) == (1001, 500000)
    assert found.progress.seconds_per_step(found.line) == pytest.approx(30.5124)
    assert found.progress.loss(found.line) == pytest.approx(2.413345)
    assert found.fault is None


@pytest.mark.parametrize("loss", [b"nan", b"inf", b"1.0e999"])
def test_a_loss_that_is_no_finite_number_is_none(loss: bytes) -> None:
    [found] = matcher().scan(STEP.replace(b"2.413345E+00", loss) + b"\n")
    assert found.progress is not None
    assert found.progress.loss(found.line) is None


def test_a_counter_of_absurd_length_is_no_step() -> None:
    assert matcher().scan(b"iteration " + b"9" * 400 + b"/ 10 |\n") == []


def test_only_a_finished_save_counts() -> None:
    said = matcher().scan(
        b"saving checkpoint at iteration    2000 to /ck in torch_dist format\n"
        b"scheduled an async checkpoint save at iteration    2000 to /ck\n"
        b"  successfully saved checkpoint from iteration    2000 to /ck [ t 1/8, p 1/4 ]\n"
        b"  successfully loaded checkpoint from /ck [ t 1/8, p 1/4 ] at iteration 2000\n"
    )
    assert [(one.saved.step, one.saved.path) for one in said if one.saved] == [(2000, "/ck")]
    assert [(one.loaded.step, one.loaded.path) for one in said if one.loaded] == [(2000, "/ck")]


@pytest.mark.parametrize(
    ("line", "loaded"),
    [
        ("Resuming training from checkpoint /ckpt/run1/checkpoint-3000", (3000, "/ckpt/run1/checkpoint-3000")),
        ("Continuing training from checkpoint-500", (500, "checkpoint-500")),
        ("Resuming from global step 1200", (1200, None)),
        ("Loading from detectron2://ImageNetPretrained/MSRA/R-50.pkl", None),
    ],
)
def test_a_checkpoint_that_a_path_names_is_of_the_step_that_the_path_says(
    line: str, loaded: tuple[int, str | None] | None
) -> None:
    said = [(one.loaded.step, one.loaded.path) for one in matcher().scan(f"{line}\n".encode()) if one.loaded]
    assert said == ([] if loaded is None else [loaded])


def test_an_endless_line_is_read_around_its_first_match() -> None:
    [found] = matcher().scan(b"x" * 500_000 + XID79 + b"y" * 500_000)
    assert found.fault is not None
    assert found.start == 0
    assert len(found.line) <= LINE_BYTES


def test_hostile_repetition_costs_linear_time() -> None:
    started = time.monotonic()
    matcher().scan(b"Xid (PCI:" * 100_000)
    matcher().scan(b"iteration " * 100_000)
    matcher().scan((XID79 + b" ") * 14_000)
    matcher().scan(b"\x1b[31" * 200_000)
    assert time.monotonic() - started < 10


def test_a_line_of_one_word_for_ever_hides_nothing_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.watch.matching.matcher.MOST_REPEATED", 20)
    endless, cause = b"Error: " * 1_000, b"RuntimeError: CUDA error: an illegal memory access was encountered"
    found = matcher().scan(endless + b"\n" + cause + b"\n" + endless + b"\n" + cause)
    assert [one.line for one in found if one.line == cause] == [cause, cause]
    assert [one.start for one in found if one.line == cause] == [len(endless) + 1, 2 * len(endless) + len(cause) + 3]


def test_launchers_prefixes_do_not_hide_an_exception_and_talk_of_one_is_none() -> None:
    said = "ModuleNotFoundError: No module named 'x'"
    for prefix in PREFIXES:
        assert classes(prefix + said) == [FaultClass.USER_CODE], prefix
    assert classes(f"WARNING - sandbox command failed: Traceback (most recent call last): {said}") == []


@given(block=st.binary(max_size=3000))
def test_any_bytes_can_be_scanned(block: bytes) -> None:
    for found in matcher().scan(block):
        assert 0 <= found.start < len(block)


CASES = Path(__file__).parent / "single_lines.jsonl"


@pytest.mark.parametrize(
    "case", [json.loads(line) for line in CASES.read_text().splitlines()], ids=lambda case: case["id"]
)
def test_published_failures_of_one_decisive_line_have_their_class(case: dict[str, list[str]]) -> None:
    found = classes(*case["lines"])
    if not case["classes"]:
        assert found == []
    else:
        assert found
        assert found[0] in case["classes"]
