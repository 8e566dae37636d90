"""Which line is the root: first hand before hearsay, a death before those who wait, the kernel before the program."""

from __future__ import annotations

import pytest

from schemas.vocabulary import FaultClass, LineRole, Remedy, Scope
from streams.decide.blame import places_of
from streams.decide.roots import root_line
from streams.decide.state import Line
from streams.decide.together import FORERUN_MS
from streams.decide.weighing import Scene, weigh
from tests.decide.test_weighing import HERE, NODES, broken, closed, ended, line, timeout, xid

EFFECT = LineRole.CONSEQUENCE
XID31 = "kernel: NVRM: Xid (PCI:0000:db:00): 31, pid={pid}, Ch 00000008, intr 00000000. MMU Fault"


def told(at_ms: int) -> Line:
    return line("nccl-told", FaultClass.NCCL_TIMEOUT, at_ms, precedence=25, role=EFFECT)


def exited(at_ms: int) -> Line:
    return line("process-exit", FaultClass.USER_CODE, at_ms, precedence=6, role=EFFECT)


def preempted(at_ms: int, *, by_slurm: bool = False) -> Line:
    remedy, role = (Remedy.WAIT, EFFECT) if by_slurm else (Remedy.RESTART, LineRole.CAUSE)
    return line("preempted", FaultClass.PREEMPTION, at_ms, precedence=43, scope=Scope.JOB, remedy=remedy, role=role)


def waiting(at_ms: int) -> Line:
    return line("storage-waiting", FaultClass.STORAGE_IO, at_ms, precedence=3, remedy=Remedy.WAIT, role=EFFECT)


def fault(at_ms: int, pid: int, device: str = "0000:db:00") -> Line:
    text = XID31.format(pid=pid).replace("0000:db:00", device)
    return line("xid-application", FaultClass.USER_CODE, at_ms, precedence=60, scope=Scope.JOB, text=text)


lost = line("remote-node-dead", FaultClass.NODE_LOST, 10, precedence=36)
kernel = line("kernel-gpu", FaultClass.GPU_HARDWARE, 10, precedence=9, role=EFFECT)
runtime = line("cuda-other", FaultClass.USER_CODE, 20, precedence=41)
python = line("python-error", FaultClass.USER_CODE, 20, precedence=52)
lockup = line("soft-lockup", FaultClass.HOST_HARDWARE, 10, precedence=35, role=EFFECT)
panic = line("kernel-panic", FaultClass.HOST_HARDWARE, 20, precedence=90, scope=Scope.NODE)
rdma = line("nccl-ib-completion", FaultClass.NETWORK_IB, 10, precedence=45, role=EFFECT)
hung = line("hung-task", FaultClass.STORAGE_IO, 20, precedence=24, role=EFFECT)
vague = line("python-exception", FaultClass.USER_CODE, 30, precedence=13)
cut_off = line("said-node", FaultClass.NODE_LOST, 10, precedence=7, role=EFFECT)
killed = line("worker-killed", FaultClass.HOST_OOM, 20, precedence=26)
message = line(
    "process-exit", FaultClass.USER_CODE, 10, precedence=6, role=EFFECT, text="terminate called after throwing x"
)
stopped = broken("xid-hardware", FaultClass.GPU_HARDWARE, 20, 94, text="NVRM: Xid (PCI:0000:db:00): 109")
signalled = line("signal-told", FaultClass.PREEMPTION, 20, precedence=22, scope=Scope.JOB)
handled = line("sigterm-received", FaultClass.PREEMPTION, 20, precedence=21, scope=Scope.JOB)
too_late = line("job-cancelled", FaultClass.PREEMPTION, 30, precedence=6, role=EFFECT, remedy=Remedy.IGNORE)
cancelled = line("job-cancelled", FaultClass.PREEMPTION, 10, precedence=6, role=EFFECT, remedy=Remedy.IGNORE)
stalled = line("stalled-ranks", FaultClass.HANG_NO_LOG, 10, precedence=32)
number = line("hccl-told", FaultClass.NETWORK_IB, 10, precedence=30, role=EFFECT)
meaning = line("hccl-stuck", FaultClass.NCCL_TIMEOUT, 20, precedence=31, role=EFFECT)
wrapper = line("nccl-repeated", FaultClass.NETWORK_IB, 10, precedence=23, role=EFFECT)
below = line("nccl-transport", FaultClass.NETWORK_IB, 20, precedence=24, role=EFFECT)
fan = line("said-host", FaultClass.HOST_HARDWARE, 10, precedence=7, role=EFFECT)
notice = line("said-preempted", FaultClass.PREEMPTION, 10, precedence=9, role=EFFECT)
refused = line("nccl-connect-failed", FaultClass.NETWORK_IB, 20, precedence=44)
unmapped = line("amdgpu-page-fault", FaultClass.USER_CODE, 10, precedence=59, text="amdgpu 0000:65:00.0: page fault (")
reset = line("amdgpu-lost", FaultClass.GPU_HARDWARE, 20, precedence=84, text="amdgpu 0000:65:00.0: GPU reset begin!")
another = line("amdgpu-lost", FaultClass.GPU_HARDWARE, 20, precedence=84, text="amdgpu 0000:c1:00.0: GPU reset begin!")
asked = broken(
    "xid-recovery-asked",
    FaultClass.GPU_HARDWARE,
    20,
    81,
    text="NVRM: Xid (PCI:0000:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (OS Reboot)",
)
torn = line("nccl-socket-failed", FaultClass.NETWORK_IB, 20, precedence=28, role=EFFECT)


def bus(at_ms: int, node: str | None = "node2") -> Line:
    remedy = Remedy.WAIT
    kind = FaultClass.HOST_HARDWARE
    return line("pcie-uncorrected", kind, at_ms, precedence=3, remedy=remedy, role=EFFECT, node=node)


@pytest.mark.parametrize(
    ("lines", "root"),
    [
        ([stalled, ended(20)], 0),
        ([ended(5), stalled], 0),
        ([closed(10, "node1", "node2"), torn], 1),
        ([timeout(10, 5, 3), torn], 0),
        ([bus(10), exited(20)], 1),
        ([told(10), timeout(20, 5, 3)], 1),
        ([told(10), told(20)], 0),
        ([exited(10), timeout(20, 5, 3)], 0),
        ([timeout(10, 5, 3), exited(20)], 0),
        ([exited(10), closed(20, "node1", "node2")], 0),
        ([kernel, runtime], 0),
        ([kernel, python], 1),
        ([lockup, panic], 0),
        ([rdma, vague], 0),
        ([closed(10, "node1", "node2"), vague], 1),
        ([closed(10, "node1", "node2"), python], 1),
        ([closed(10, "node1", "node2"), hung], 1),
        ([closed(10, "node1", "node2"), exited(20)], 0),
        ([kernel, closed(20, "node1", "node2")], 0),
        ([lost, preempted(20)], 1),
        ([waiting(10), exited(20)], 1),
        ([cut_off, killed], 0),
        ([cut_off, vague], 0),
        ([cut_off, python], 1),
        ([message, closed(20, "node1", "node2")], 1),
        ([fault(10, 1), stopped], 0),
        ([fault(10, 1, "0000:cb:00"), stopped], 1),
        ([fault(30, 1), stopped], 1),
        ([number, meaning], 1),
        ([wrapper, below], 1),
        ([fan, torn], 0),
        ([fan, refused], 1),
        ([notice, refused], 0),
        ([unmapped, reset], 0),
        ([unmapped, another], 1),
        ([fault(10, 1), asked], 0),
        ([fault(30, 1), asked], 1),
        ([python, asked], 1),
        ([stopped, asked], 0),
        ([cancelled, signalled], 0),
        ([signalled, cancelled], 1),
        ([cancelled, handled], 0),
        ([handled, too_late], 0),
    ],
)
def test_the_line_that_explains_the_others_is_picked(lines: list[Line], root: int) -> None:
    assert root_line(lines) is lines[root]


def test_numbers_of_unnamed_groups_are_not_compared() -> None:
    ours = timeout(10, 88, 9, "[rank9]:[E416 13:21:26 ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught")
    theirs = timeout(20, 5, 3, "[rank3]:[E416 13:21:26 ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught")
    assert root_line([ours, theirs]) is ours
    of_all = timeout(30, 7, 3, "[rank3]:[E416 13:21:26 ProcessGroupNCCL.cpp:616] [Rank 3] Watchdog caught")
    late = timeout(5, 9, 4, "[rank4]:[E416 13:21:26 ProcessGroupNCCL.cpp:616] [Rank 4] Watchdog caught")
    assert root_line([late, of_all, theirs]) is of_all


def test_a_notice_of_preemption_is_the_root_of_what_it_tears_down_and_of_nothing_before() -> None:
    notice = preempted(20, by_slurm=True)
    broken = line("rendezvous-timeout", FaultClass.NETWORK_IB, 30, precedence=24)
    cause = weigh([notice, broken], HERE)
    assert (cause.root, cause.remedy) == (notice, Remedy.WAIT)
    before = line("rendezvous-timeout", FaultClass.NETWORK_IB, 10, precedence=24)
    assert weigh([before, notice], HERE).fault_class is FaultClass.NETWORK_IB


def test_storage_that_is_waited_for_is_a_fault_only_where_somebody_waits_in_vain() -> None:
    alone = weigh([waiting(10), waiting(20)], HERE)
    assert (alone.fault_class, alone.remedy) == (FaultClass.STORAGE_IO, Remedy.WAIT)
    cause = weigh([waiting(10), timeout(20, 5, 3)], HERE)
    assert (cause.fault_class, cause.remedy, cause.root.signature) == (
        FaultClass.STORAGE_IO,
        Remedy.RESTART,
        "storage-waiting",
    )
    assert weigh([timeout(10, 5, 3), waiting(20)], HERE).fault_class is FaultClass.NCCL_TIMEOUT


def test_a_program_s_fault_in_process_after_process_on_one_gpu_is_the_gpu_s() -> None:
    worn = [fault(10, 1), fault(20, 2), fault(30, 3)]
    assert weigh(worn, HERE).fault_class is FaultClass.GPU_HARDWARE
    assert weigh(worn[:2], HERE).fault_class is FaultClass.USER_CODE
    assert weigh([*worn[:2], fault(30, 2)], HERE).fault_class is FaultClass.USER_CODE
    assert weigh([*worn, fault(40, 4, "0000:1b:00")], HERE).fault_class is FaultClass.USER_CODE


def test_a_slow_rank_is_a_reason_to_leave_its_node_where_that_is_known() -> None:
    remedy = Remedy.RESTART_EXCLUDING_NODE
    slow = line("slow-rank", FaultClass.STRAGGLER, 10, precedence=39, scope=Scope.NODE, remedy=remedy, blamed=76)
    places = places_of(["  Rank=76 Node=node2 Score=0.41", "  Rank=13 Node=node1 Score=0.98"])
    assert weigh([slow], Scene(NODES, places=places)).nodes == ("node2",)
    assert weigh([slow], HERE).remedy is Remedy.WAIT


def test_where_many_nodes_are_lost_at_once_none_is_to_blame() -> None:
    one = line("node-not-responding", FaultClass.NODE_LOST, 10, precedence=79, scope=Scope.NODE, node="node1")
    many = line("many-nodes-down", FaultClass.NODE_LOST, 20, precedence=78, scope=Scope.CLUSTER)
    cause = weigh([one, many], HERE)
    assert (cause.scope, cause.remedy, cause.nodes) == (Scope.CLUSTER, Remedy.RESTART, ())


def test_a_gpu_that_stops_after_a_kernel_s_exception_is_left_out_and_the_exception_is_named() -> None:
    cause = weigh([fault(10, 1), stopped], HERE)
    assert (cause.root, cause.fault_class) == (fault(10, 1), FaultClass.GPU_HARDWARE)
    assert (cause.scope, cause.remedy) == (Scope.NODE, Remedy.RESTART_EXCLUDING_NODE)


def test_a_recovery_that_the_driver_asks_for_proves_what_an_xid_alone_does_not() -> None:
    cause = weigh([fault(10, 1), asked], HERE)
    assert (cause.root, cause.fault_class) == (fault(10, 1), FaultClass.GPU_HARDWARE)
    assert (cause.scope, cause.remedy) == (Scope.NODE, Remedy.RESTART_EXCLUDING_NODE)


def test_a_node_that_a_message_names_below_its_first_line_is_the_one_that_was_lost() -> None:
    head = line("daemon-lost", FaultClass.NODE_LOST, 10, precedence=37, role=EFFECT)
    below = line("daemon-lost-on", FaultClass.NODE_LOST, 20, precedence=36, scope=Scope.NODE, node="node2", role=EFFECT)
    cause = weigh([head, below], HERE)
    assert (cause.root, cause.scope, cause.nodes) == (head, Scope.NODE, ("node2",))
    assert weigh([head], HERE).scope is Scope.UNKNOWN


def test_processes_that_are_blocked_after_the_driver_cleaned_up_wait_for_the_driver() -> None:
    cleanup = line("xid-cleanup", FaultClass.GPU_HARDWARE, 10, precedence=15, role=EFFECT)
    cause = weigh([cleanup, hung], HERE)
    assert (cause.root, cause.fault_class, cause.scope) == (cleanup, FaultClass.GPU_HARDWARE, Scope.NODE)
    later = line("xid-cleanup", FaultClass.GPU_HARDWARE, 30, precedence=15, role=EFFECT)
    assert weigh([hung, later], HERE).fault_class is FaultClass.STORAGE_IO


def test_a_sign_that_means_nothing_by_itself_is_where_a_failure_of_its_node_began() -> None:
    cause = weigh([bus(10), xid(20)], HERE)
    assert (cause.root, cause.fault_class, cause.nodes) == (bus(10), FaultClass.GPU_HARDWARE, ("node2",))
    assert cause.remedy is Remedy.RESTART_EXCLUDING_NODE


@pytest.mark.parametrize(
    "lines",
    [
        [xid(10), bus(20)],
        [bus(10, "node1"), xid(20)],
        [bus(10), xid(20 + FORERUN_MS)],
        [bus(10), timeout(20, 5, 3)],
    ],
    ids=["later", "elsewhere", "long-ago", "another-kind"],
)
def test_it_explains_nothing_else(lines: list[Line]) -> None:
    alone = [one for one in lines if one.signature != "pcie-uncorrected"]
    assert weigh(lines, HERE) == weigh(alone, HERE)


def test_a_sign_of_no_named_node_and_a_save_that_was_never_done_explain_what_follows() -> None:
    assert weigh([bus(10, None), xid(20)], HERE).root == bus(10, None)
    save = line("save-unfinished", FaultClass.STORAGE_IO, 10, precedence=3, remedy=Remedy.WAIT, role=EFFECT)
    late = timeout(20 + FORERUN_MS, 5, 3)
    cause = weigh([save, late], HERE)
    assert (cause.root, cause.fault_class) == (save, FaultClass.NCCL_TIMEOUT)


def test_a_job_that_failed_after_nothing_but_a_sign_is_tried_again() -> None:
    cause = weigh([bus(10)], HERE)
    assert (cause.fault_class, cause.remedy, cause.nodes) == (FaultClass.HOST_HARDWARE, Remedy.RESTART, ())


def test_numbers_that_are_none_until_the_program_gives_up_end_the_run() -> None:
    nan = line("nan-steps", FaultClass.NUMERIC_NAN, 10, precedence=61, scope=Scope.JOB)
    stop = Remedy.TERMINATE_NO_RETRY
    gave_up = line("loss-scale-minimum", FaultClass.NUMERIC_NAN, 20, precedence=75, scope=Scope.JOB, remedy=stop)
    cause = weigh([nan, gave_up], HERE)
    assert (cause.root, cause.remedy) == (nan, stop)
    assert weigh([nan], HERE).remedy is Remedy.RESTART
