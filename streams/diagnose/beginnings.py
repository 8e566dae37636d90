"""Where a failure began, by lines that prove nothing alone: rules of order for whole logs, after the cause is known.

The cause keeps its kind, its nodes and what should be done about it; only the line that explains it moves to the first
one that told of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from schemas.vocabulary import FaultClass
from streams.decide.cause import Cause, began_with
from streams.decide.roots import ENDED_BY_SCHEDULER, OF_KERNEL, moment
from streams.decide.state import Line

BEGAN_MS = 30 * 60_000
"""What was told longer before is another story."""
# What the kernel says of its machine in words that alone would prove little.
_OF_MACHINE = OF_KERNEL.keys() | {"soft-lockup", "nmi-unknown", "gpu-hung-task"}
_DEVICE = re.compile(r"\b(?:[\da-f]{4}:[\da-f]{2}:[\da-f]{2}(?:\.\d)?|nvme\d+|sd[a-z]+|mlx[45]_\d+|hl\d+|accel\d+)\b")
_OF_DEVICES = {
    *(FaultClass.GPU_HARDWARE, FaultClass.GPU_MEMORY_ECC, FaultClass.NVLINK),
    *(FaultClass.NETWORK_IB, FaultClass.STORAGE_IO, FaultClass.HOST_HARDWARE),
}
_LEFT_BEHIND = {"left-behind"}


def begun(cause: Cause, lines: Sequence[Line]) -> Cause:
    """The cause, with its root where the failure began."""
    return began_with(
        cause, _before_a_node_went(cause, lines) or _of_its_device(cause, lines) or _left_by_whom(cause.root, lines)
    )


def _before_a_node_went(cause: Cause, lines: Sequence[Line]) -> Line | None:
    """A node that is lost may have told why in its kernel's log, just before."""
    if cause.fault_class is not FaultClass.NODE_LOST:
        return None
    return _first(cause.root, [line for line in lines if line.signature in _OF_MACHINE and _here(cause, line)])


def _of_its_device(cause: Cause, lines: Sequence[Line]) -> Line | None:
    """The kernel's first line of a device, before the one by which it is known to be broken."""
    if cause.fault_class not in _OF_DEVICES:
        return None
    devices = _devices(cause.root)
    signs = [line for line in lines if line.signature in _OF_MACHINE and devices & _devices(line)]
    return _first(cause.root, signs)


def _left_by_whom(root: Line, lines: Sequence[Line]) -> Line | None:
    """What stands in the way was left by the run that was ended before it was done."""
    if root.signature not in _LEFT_BEHIND:
        return None
    return _first(root, [line for line in lines if line.fault_class in ENDED_BY_SCHEDULER])


def _first(root: Line, signs: Sequence[Line]) -> Line | None:
    before = (one for one in signs if moment(one) < moment(root) and moment(root)[0] - moment(one)[0] <= BEGAN_MS)
    return min(before, key=moment, default=None)


def _here(cause: Cause, line: Line) -> bool:
    """Whether it may be the node that was lost; what names no node, stands in that one's log."""
    node = line.evidence.node
    return node is None or node in cause.nodes or not cause.nodes


def _devices(line: Line) -> set[str]:
    return {found[:10] if ":" in found else found for found in _DEVICE.findall(line.evidence.text)}
