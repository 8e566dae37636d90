"""Which of the lines explains the others? Rules of picking, pure, by kind, time and collective.

The loudest is seldom the first, and what is printed first is not always the cause: ranks print in any order, a wrapper
repeats what it wraps, and whoever is told of a failure tells it again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from schemas.vocabulary import FaultClass, LineRole, Scope
from streams.decide.state import Line

TIER = 20
"""Precedences are compared in steps of this: within one, the earlier line is the cause of the later."""
CERTAIN = 80
"""From this precedence on a line speaks of broken hardware, whatever the program says."""
EXPRESS = 40
"""From this precedence on a line of the scheduler says why it ended a run, and not only that it did."""

BETWEEN_RANKS = {FaultClass.NETWORK_IB, FaultClass.NCCL_TIMEOUT, FaultClass.NODE_LOST}
ENDED_BY_SCHEDULER = {FaultClass.PREEMPTION, FaultClass.SCHEDULER_TIMEOUT}
# Storage does not answer, and its client waits without end: no fault by itself, and why others wait.
PATIENT = {"storage-waiting", "slow-load"}
# Nothing by themselves: they are where a failure of such a kind began, if one follows on the node.
FORERUNNERS = {
    "pcie-uncorrected": {FaultClass.GPU_HARDWARE, FaultClass.HOST_HARDWARE},
    "sxid-nonfatal": {FaultClass.NVLINK, FaultClass.GPU_MEMORY_ECC, FaultClass.GPU_HARDWARE},
    "machine-check-logged": {FaultClass.HOST_HARDWARE, FaultClass.NODE_LOST},
    "nvme-aborted": {FaultClass.STORAGE_IO, FaultClass.NODE_LOST},
    "build-warned": {FaultClass.SOFTWARE_ENV},
    "verbs-absent": {FaultClass.SOFTWARE_ENV},
    "norm-nonfinite": {FaultClass.NUMERIC_NAN},
    "driver-warned": {FaultClass.SOFTWARE_ENV},
    "oom-survived": {FaultClass.CUDA_OOM, FaultClass.USER_CODE},
    "transport-without-gpu": {FaultClass.HANG_NO_LOG, FaultClass.SCHEDULER_TIMEOUT, FaultClass.NCCL_TIMEOUT},
    "save-unfinished": {FaultClass.NCCL_TIMEOUT, FaultClass.HANG_NO_LOG},
}
# Failures by themselves, too.
BEGINNINGS = FORERUNNERS | {
    "slurmd-silent": {FaultClass.NETWORK_IB},
    "row-remap-recorded": {FaultClass.GPU_MEMORY_ECC},
}
QUIET = PATIENT | FORERUNNERS.keys()

# What repeats that another rank waited in vain, or that a transfer failed: no root where one says so at first hand.
_SECOND_HAND = {"nccl-told", "nccl-timeout-told", "nccl-fatal-error", "nccl-repeated"}
# What the interface of a library repeats of it, and the lines of that library itself.
_OF_LIBRARY = {"hccl-stuck", "hccl-timeout", "hccl-failed", "accelerator-absent"}
_OF_INTERFACE = {
    "hccl-told": _OF_LIBRARY,
    "npu-told": _OF_LIBRARY,
    "nccl-setup-told": {"nccl-setup", "nccl-shm-full"},
}
# That a process ended. Before others wait for it in vain, it is why they do.
_DEATHS = {"process-exit", "process-died", "slurm-task-exit", "said-exception"}
# What the kernel says of a device in words that no signature knows better, and what a program says when it meets that.
OF_KERNEL = {
    "kernel-gpu": {FaultClass.GPU_HARDWARE, FaultClass.GPU_MEMORY_ECC, FaultClass.NVLINK, FaultClass.USER_CODE},
    "kernel-network": {FaultClass.NETWORK_IB},
    "kernel-storage": {FaultClass.STORAGE_IO},
    "kernel-host": {FaultClass.HOST_HARDWARE},
}
_RUNTIME = re.compile(r"^(?:cuda|amdgpu|gpu|accelerator)-")
# That a peer is gone, which is never why.
_PEER_GONE = {
    *("nccl-remote-error", "nccl-error", "nccl-socket-failed", "nccl-peer-closed"),
    *("nccl-repeated", "nccl-transport"),
}
# Of what an exception says of a peer that is gone, the line that says how.
_HOW_GONE = {"nccl-socket-failed", "nccl-peer-closed", "nccl-transport"}
# Ranks waited for others that never came, before the scheduler ended them all.
_STALLED = {"stalled-ranks", "fabric-stalled"}
# What somebody says of himself in words that no signature knows better.
_SAID = {"said-stuck", "said-node", "said-storage", "said-oom", "said-collective"}
# What is said of the machine, in such words.
_SAID_OF_MACHINE = {
    *("said-ecc", "said-nvlink", "said-gpu", "said-host", "said-node", "said-gpu-memory", "said-oom"),
}
# And what is said of anything at all, but for the run's end.
_TOLD = _SAID_OF_MACHINE | {
    *("said-storage", "said-stuck", "said-collective", "said-network", "said-data", "said-nan", "said-environment"),
}
# That the run gives way, in such words.
_GIVES_WAY = {"said-preempted"}
# What is said of the machine, or by whoever rules over the run: why a process ended, where that itself tells only that.
_OF_MACHINE = _SAID_OF_MACHINE | OF_KERNEL.keys() | {"said-preempted", "said-time-limit"}
# That a process was ended, or ended with an exception of which nothing is known.
_ENDED = {"worker-killed", "worker-bus-error", "segmentation-fault", "python-exception", "bare-exception"}
# A launcher tells that it was told to end, a program what it makes of that, and Slurm that somebody cancelled the job.
_TOLD_TO_END, _ENDS_ITSELF, _JOB_CANCELLED = "signal-told", "sigterm-received", "job-cancelled"
# By which a host announces that it fails.
_LEADING_UP = {"soft-lockup"}
# A kernel of the program met something; the GPU that can't get rid of it then stops.
_MET_BEFORE = {"xid-hardware": "xid-application", "amdgpu-lost": "amdgpu-page-fault"}
# What the driver asks for once an Xid was met: of all GPUs, if the host must be rebooted.
_ASKED = {"xid-recovery-asked"}
# Xids after which it may ask so, and which by themselves prove less.
_ASKED_FOR = {"xid-application", "xid-nvlink-access", "xid-other"}
# The head of a message, of which the next lines say what it is about.
_HEAD_OF_MESSAGE = "terminate called after throwing"
_DEVICE = re.compile(r"Xid \((?P<device>[^)]*)\)|amdgpu (?P<address>[\da-f]{4}:[\da-f]{2}:[\da-f]{2}\.\d)")
_OF_NCCL = "NCCL WARN Cuda failure"
_GROUP = re.compile(r"\[PG (?:ID )?(\d+)")
_RANKS = re.compile(r"\[rank(?P<rank>\d+)\]:.{0,120}?\[Rank (?P<member>\d+)\]")


def root_line(lines: Sequence[Line]) -> Line:
    """The line that explains the others: a cause before a consequence, the weightier kind, then the earliest."""
    lines = [line for line in lines if line.signature not in QUIET] or lines
    root = min(lines, key=rank)
    for rule in (
        _before_timeouts,
        _at_first_hand,
        _by_the_library,
        _stalled_before_its_end,
        _how_a_peer_went,
        _death_before,
        _why_a_peer_is_gone,
        _after_its_transport,
        _in_the_kernel,
        _told_before,
        _why_it_ended,
        _leading_up,
        _met_before_it_stopped,
        _asked_for,
        _first_of_its_group,
        _by_whoever_cancelled_it,
    ):
        root = rule(root, lines)
    return root


def rank(line: Line) -> tuple[bool, int, tuple[int, int], int]:
    """By which lines are ordered: the likeliest root comes first."""
    return (line.role is not LineRole.CAUSE, -(line.precedence // TIER), moment(line), -line.precedence)


def moment(line: Line) -> tuple[int, int]:
    """When a line was printed, as well as it is known."""
    seen = line.evidence
    return (seen.line_ms if seen.line_ms is not None else seen.read_ms, seen.offset)


def _before_timeouts(root: Line, lines: Sequence[Line]) -> Line:
    """What a program prints after the first collective timed out is no cause of it, unless hardware speaks.

    The scheduler's end of a run, and an exception in words that nobody knows, are no causes of what went wrong between
    ranks before; but of a peer that is gone, its own exception may be printed late, and of a node that is lost to a
    preemption, as a line says, that one.
    """
    if root.precedence >= CERTAIN or root.role is not LineRole.CAUSE:
        return root
    vague = root.precedence < TIER
    kinds = BETWEEN_RANKS if vague or root.fault_class in ENDED_BY_SCHEDULER else {FaultClass.NCCL_TIMEOUT}
    if root.fault_class is FaultClass.PREEMPTION and root.precedence >= EXPRESS:
        kinds = kinds - {FaultClass.NODE_LOST}
    broken = [line for line in lines if line.fault_class in kinds and line.precedence >= TIER]
    if vague and root.fault_class not in ENDED_BY_SCHEDULER:
        broken = [line for line in broken if line.signature not in _PEER_GONE]
    first = min(broken, key=moment, default=None)
    return root if first is None or moment(first) >= moment(root) else min(broken, key=rank)


def _at_first_hand(root: Line, lines: Sequence[Line]) -> Line:
    """Ranks that are told of a failure may print before the one that met it."""
    if root.signature not in _SECOND_HAND:
        return root
    own = [line for line in lines if line.fault_class is root.fault_class and line.signature not in _SECOND_HAND]
    return min(own, key=rank, default=root)


def _by_the_library(root: Line, lines: Sequence[Line]) -> Line:
    """An interface raises an error's number, and what the library says of it may be printed after that."""
    own = _OF_INTERFACE.get(root.signature, set())
    return min((line for line in lines if line.signature in own), key=rank, default=root)


def _stalled_before_its_end(root: Line, lines: Sequence[Line]) -> Line:
    """A run that waits for some of its ranks ends at its time limit, however long that takes."""
    if root.fault_class is not FaultClass.SCHEDULER_TIMEOUT:
        return root
    return _if_before(root, lines, lambda line: line.signature in _STALLED)


def _how_a_peer_went(root: Line, lines: Sequence[Line]) -> Line:
    """An exception wraps what was met on the connection, and prints it last."""
    if root.signature not in _PEER_GONE:
        return root
    return _earliest(lines, lambda line: line.signature in _HOW_GONE) or root


def _death_before(root: Line, lines: Sequence[Line]) -> Line:
    """Ranks wait in vain, or lose a connection, because a process that they need has ended before."""
    if root.fault_class not in BETWEEN_RANKS or root.role is LineRole.CAUSE:
        return root
    return _if_before(
        root, lines, lambda line: line.signature in _DEATHS and _HEAD_OF_MESSAGE not in line.evidence.text
    )


def _why_a_peer_is_gone(root: Line, lines: Sequence[Line]) -> Line:
    """What anybody says of himself explains a lost peer, in whatever order; in vague words, if he says it before."""
    if root.signature not in _PEER_GONE:
        return root
    elsewhere = BETWEEN_RANKS | ENDED_BY_SCHEDULER
    known = [line for line in lines if line.precedence >= TIER or line.signature in OF_KERNEL]
    vague = [line for line in lines if line.signature in _SAID and moment(line) < moment(root)]
    said = [line for line in known if line.fault_class not in elsewhere] or vague
    return min(said, key=rank, default=root)


def _after_its_transport(root: Line, lines: Sequence[Line]) -> Line:
    """What NCCL meets on a GPU after a transfer failed is what that transfer left behind."""
    if _OF_NCCL not in root.evidence.text:
        return root
    return _if_before(
        root,
        lines,
        lambda line: line.fault_class is FaultClass.NETWORK_IB and line.signature not in _PEER_GONE,
    )


def _in_the_kernel(root: Line, lines: Sequence[Line]) -> Line:
    """A program meets an error of a device, and its peers lose it, after the kernel has told of it, where it does."""
    if root.precedence >= CERTAIN or (root.fault_class is FaultClass.USER_CODE and not _RUNTIME.match(root.signature)):
        return root
    torn = root.fault_class in BETWEEN_RANKS and root.role is not LineRole.CAUSE
    return _if_before(
        root,
        lines,
        lambda line: line.signature in OF_KERNEL and (torn or root.fault_class in OF_KERNEL[line.signature]),
    )


def _told_before(root: Line, lines: Sequence[Line]) -> Line:
    """Ranks that wait in vain, or lose a peer, do so of what was told before, in whatever words."""
    if root.fault_class not in BETWEEN_RANKS or root.precedence >= CERTAIN or root.scope is Scope.NODE:
        return root
    kinds = _GIVES_WAY if root.role is LineRole.CAUSE else _TOLD | _GIVES_WAY
    return _if_before(root, lines, lambda line: line.signature in kinds)


def _why_it_ended(root: Line, lines: Sequence[Line]) -> Line:
    """A process that was ended says not why: what was said of the machine before it explains it."""
    if root.signature not in _ENDED:
        return root
    return _if_before(root, lines, lambda line: line.signature in _OF_MACHINE)


def _leading_up(root: Line, lines: Sequence[Line]) -> Line:
    """A host that fails for good has often said so before, in words that alone would prove little."""
    if root.fault_class is not FaultClass.HOST_HARDWARE or root.role is not LineRole.CAUSE:
        return root
    node = root.evidence.node
    return _if_before(root, lines, lambda line: line.signature in _LEADING_UP and line.evidence.node == node)


def _met_before_it_stopped(root: Line, lines: Sequence[Line]) -> Line:
    """A GPU that stops after it met an exception of a kernel stops for that."""
    kind = _MET_BEFORE.get(root.signature)
    device = _device(root)
    return _if_before(root, lines, lambda line: line.signature == kind and _device(line) == device)


def _asked_for(root: Line, lines: Sequence[Line]) -> Line:
    """A recovery that the driver asks for only repeats what an Xid did to a GPU of the host before."""
    if root.signature not in _ASKED:
        return root
    node = root.evidence.node
    return _if_before(root, lines, lambda line: line.signature in _ASKED_FOR and line.evidence.node == node)


def _first_of_its_group(root: Line, lines: Sequence[Line]) -> Line:
    """Of collectives of one group that timed out, the one that stands first in their order: others never got there.

    Where a rank's number in its group is not the one that it has in the job, and no group is named, nobody knows
    whether another's numbers count the same.
    """
    if root.sequence is None or _is_of_some_group(root):
        return root
    group = _group(root)
    same = [line for line in lines if line.signature == root.signature and line.sequence is not None]
    same = [line for line in same if not _is_of_some_group(line)]
    return min((line for line in same if _group(line) == group), key=lambda line: (line.sequence or 0, moment(line)))


def _by_whoever_cancelled_it(root: Line, lines: Sequence[Line]) -> Line:
    """A launcher that was told to end was told so by whoever cancelled the job, which Slurm may say before or after.

    So was a program that acts on the signal, if Slurm says it before: one that is cancelled at the end of its grace may
    have been preempted.
    """
    if root.signature == _TOLD_TO_END:
        return _earliest(lines, lambda line: line.signature == _JOB_CANCELLED) or root
    if root.signature == _ENDS_ITSELF:
        return _if_before(root, lines, lambda line: line.signature == _JOB_CANCELLED)
    return root


def _earliest(lines: Iterable[Line], wanted: Callable[[Line], bool]) -> Line | None:
    return min((line for line in lines if wanted(line)), key=moment, default=None)


def _if_before(root: Line, lines: Iterable[Line], wanted: Callable[[Line], bool]) -> Line:
    """The earliest of the wanted lines, where it was printed before the root; else the root."""
    found = _earliest(lines, wanted)
    return root if found is None or moment(found) >= moment(root) else found


def _device(line: Line) -> str | None:
    found = _DEVICE.search(line.evidence.text)
    return None if found is None else found["device"] or found["address"]


def _is_of_some_group(line: Line) -> bool:
    numbers = _RANKS.search(line.evidence.text)
    return numbers is not None and numbers["rank"] != numbers["member"] and _group(line) is None


def _group(line: Line) -> str | None:
    match = _GROUP.search(line.evidence.text)
    return None if match is None else match.group(1)
