"""Where a failure began: the cause stays, and the line that explains it moves to the first that told of it."""

from __future__ import annotations

import pytest

from schemas.vocabulary import FaultClass, Remedy
from tests.watch.test_cases_score import diagnosed

FAILED = "slurmctld: error: Nodes node31 not responding"
LOCKUP = "kernel: watchdog: BUG: soft lockup - CPU#44 stuck for 22s! [kworker/44:1:812]"
SAVING = "saving checkpoint at iteration    2000 to /ckpt/run in torch_dist format"
SAVED = "  successfully saved checkpoint at iteration    2000 to /ckpt/run"
LATE = (
    "[rank7]:[E ProcessGroupNCCL.cpp:632] [Rank 7] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=9001, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=1800000) ran for 1800026 milliseconds"
)
PREEMPTED = "slurmstepd: error: *** JOB 5511 ON node02 CANCELLED AT 2026-02-01T03:00:09 DUE TO PREEMPTION ***"
IN_THE_WAY = "FileExistsError: [Errno 17] File exists: '/ckpt/run/step-64'"
HANDLED = "kernel: nvme nvme1: nvme_reset_work failed to start: timed out"
GONE = "kernel: nvme nvme1: Removing after probe failure status: -19"


@pytest.mark.parametrize(
    ("lines", "root", "kind"),
    [
        ([LOCKUP, FAILED], 0, FaultClass.NODE_LOST),
        ([FAILED, LOCKUP], 0, FaultClass.NODE_LOST),
        ([HANDLED, GONE], 0, FaultClass.STORAGE_IO),
        ([HANDLED.replace("nvme1", "nvme0"), GONE], 1, FaultClass.STORAGE_IO),
        ([SAVING, LATE], 0, FaultClass.NCCL_TIMEOUT),
        ([SAVING, SAVED, LATE], 2, FaultClass.NCCL_TIMEOUT),
        ([LATE, SAVING], 0, FaultClass.NCCL_TIMEOUT),
        ([PREEMPTED, IN_THE_WAY], 0, FaultClass.USER_CODE),
        ([IN_THE_WAY, PREEMPTED], 0, FaultClass.USER_CODE),
    ],
)
def test_a_failure_is_explained_by_where_it_began(lines: list[str], root: int, kind: FaultClass) -> None:
    said = diagnosed(lines)
    assert said.root is not None
    assert (said.root.evidence.line_no - 1, said.fault_class) == (root, kind)


def test_a_save_after_which_nobody_waits_in_vain_is_nothing() -> None:
    assert diagnosed([SAVING]).remedy is Remedy.IGNORE


BAR = " {percent}%|█▋        | {step}/174 [4:02:24<19:23:34, 484.82s/it]"
RAISED = "RuntimeError: [enforce fail at inline_container.cc:337] . unexpected pos 11347827264 vs 11347827160"


@pytest.mark.parametrize(
    ("after", "remedy"),
    [
        ([(17, 30)], Remedy.RESTART),
        ([(17, 30), (17, 30)], Remedy.RESTART),
        ([(17, 30), (18, 31)], Remedy.IGNORE),
        ([(0, 0)], Remedy.RESTART),
    ],
    ids=["closed", "closed-twice", "moved-on", "closed-unmoved"],
)
def test_a_bar_that_an_exception_closes_is_no_progress(after: list[tuple[int, int]], remedy: Remedy) -> None:
    bars = [BAR.format(percent=percent, step=step) for percent, step in after]
    assert diagnosed([RAISED, *bars]).remedy is remedy


def test_what_a_kernel_asserted_stays_though_a_bar_is_closed_behind_it() -> None:
    asserted = "Indexing.cu:1146: indexSelectLargeIndex: block: [58,0,0], thread: [21,0,0] Assertion `i < n` failed."
    said = diagnosed(
        [asserted, BAR.format(percent=0, step=3), "RuntimeError: CUDA error: device-side assert triggered"]
    )
    assert said.root is not None
    assert said.root.evidence.line_no == 1


def test_a_new_bar_is_progress() -> None:
    assert diagnosed([RAISED, "  0%|          | 0/174 [00:00<?, ?it/s]"]).remedy is Remedy.IGNORE


def test_a_warning_before_the_first_step_is_outlived_by_it() -> None:
    assert diagnosed(["node01: Input/output error on /data, will go on", BAR.format(percent=17, step=30)]).root is None
