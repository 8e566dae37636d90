"""Of many steps in a row only those are read that could be kept, and nothing else is passed over."""

from __future__ import annotations

from tests.watch.parts import matcher

STEP = " [2026-08-01 10:{time}.000000] iteration {step:8}/  500000 | consumed samples: 1025024 | loss scale: 1.0 |"
XID = "[2026-08-01 10:00:20] node2 rank 3: kernel: NVRM: Xid (PCI:0000:06:00): 79, GPU has fallen off the bus."


def steps(lines: list[str], interval_ms: int) -> list[int | None]:
    """The step of each line that was read; None for a line that is no step."""
    found = matcher().scan("".join(f"{line}\n" for line in lines).encode(), b"", interval_ms)
    return [None if one.progress is None else one.progress.step for one in found]


def test_steps_are_read_each_half_minute_where_one_a_minute_is_kept() -> None:
    lines = [STEP.format(time=f"00:{second:02}", step=second) for second in range(36)]
    assert steps(lines, 60_000) == [0, 30, 35]


def test_a_job_that_wants_more_progress_has_its_steps_read_more_often() -> None:
    lines = [STEP.format(time=f"00:{step // 10:02}", step=step) for step in range(30)]
    assert steps(lines, 4_000) == [0, 20, 29]


def test_a_job_that_wants_nearly_every_step_has_every_step_read() -> None:
    assert steps([STEP.format(time="00:00", step=step) for step in range(9)], 1_000) == list(range(9))


def test_every_step_is_read_where_no_interval_is_given() -> None:
    assert steps([STEP.format(time="00:00", step=step) for step in range(9)], 0) == list(range(9))


def test_a_fault_among_steps_is_read_after_the_last_step_before_it() -> None:
    lines = [STEP.format(time="00:10", step=step) for step in range(5)]
    lines += [XID, *(STEP.format(time="00:30", step=step) for step in range(5, 9))]
    assert steps(lines, 60_000) == [0, 4, None, 5, 8]


def test_steps_without_a_time_count_as_told_at_the_time_of_reading() -> None:
    assert steps([f"iteration {step:8}/  500000 | loss scale: 1.0 |" for step in range(50)], 60_000) == [0, 49]


def test_a_step_that_says_something_else_as_well_is_never_passed_over() -> None:
    lines = [STEP.format(time="00:10", step=step) for step in range(6)]
    lines[3] += " CUDA error: uncorrectable ECC error encountered"
    assert steps(lines, 60_000) == [0, 2, 3, 4, 5]


def test_steps_of_two_kinds_that_take_turns_are_both_thinned_and_stay_in_order() -> None:
    lines = []
    for second in range(24):
        lines.append(STEP.format(time=f"00:{second:02}", step=second))
        lines.append(f"[2026-08-01 10:00:{second:02},000] [INFO] [Rank 0] step={second}, skipped=0, lr=[9.65e-06]")
    assert steps(lines, 40_000) == [0, 0, 19, 20, 20, 23, 23]
