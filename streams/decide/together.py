"""What several lines say together that none of them says alone. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from schemas.vocabulary import FaultClass, Remedy, Scope
from streams.decide.blame import host_of
from streams.decide.cause import Cause, Scene, began_with, said, what
from streams.decide.roots import BEGINNINGS, FORERUNNERS, PATIENT, moment
from streams.decide.state import Line

VICTIMS = 3
"""So many processes must meet the same fault of an application on the same GPU, before it is the GPU's."""

_OF_PROCESS = re.compile(r"NVRM: Xid \((?P<device>[^)]*)\): \d+, .{0,20}?pid='?(?P<pid>\d+)")
_WAITING = {FaultClass.NCCL_TIMEOUT, FaultClass.HANG_NO_LOG}
_BLOCKED = {"hung-task"}
_OF_DRIVER, _IN_DRIVER = "xid-", "stuck-in-driver"
_ALREADY_FATAL = {"sxid-fatal"}
FORERUN_MS = 10 * 60_000
"""A sign explains what follows it within this time; what is not done yet, as long as it takes."""
_LASTING = {"save-unfinished", "transport-without-gpu"}
_SLOW = {"slow-rank", "straggler-report"}
_NOT_STARTED, _NOT_FETCHED = "container-start", "container-image"
_OF_THE_NODE = {"container-folder", "container-tool-failed"}
# A message whose first line says what happened, and the one below it that says to which node.
_BELOW = {"daemon-lost": "daemon-lost-on"}


def announced(cause: Cause, lines: Sequence[Line]) -> Cause:
    """The cause, with its root where it began: a sign of the same node that means nothing by itself."""
    root = cause.root
    if root.signature in BEGINNINGS or root.signature in _ALREADY_FATAL:
        return cause

    def began(line: Line) -> bool:
        of_kind = cause.fault_class in BEGINNINGS.get(line.signature, ())
        here = line.evidence.node == root.evidence.node or None in (line.evidence.node, root.evidence.node)
        in_time = moment(root)[0] - moment(line)[0] <= FORERUN_MS or line.signature in _LASTING
        return of_kind and here and moment(line) < moment(root) and in_time

    return began_with(cause, min((line for line in lines if began(line)), key=moment, default=None))


def alone(root: Line, _lines: Sequence[Line], _scene: Scene) -> Cause | None:
    """A sign after which nothing is told but that the job failed."""
    if root.signature not in FORERUNNERS:
        return None
    return said(root, root.fault_class, Scope.UNKNOWN, Remedy.RESTART, 0.4, what(root))


def _is_patience_only(lines: Sequence[Line]) -> bool:
    """Whether storage was waited for, and nothing came of it."""
    return all(line.signature in PATIENT for line in lines)


def _waited_for_storage(root: Line, lines: Sequence[Line]) -> Line | None:
    """The line by which storage stopped to answer, before ranks waited for each other or a process was blocked."""
    if root.fault_class not in _WAITING and root.signature not in _BLOCKED:
        return None
    silent = min((line for line in lines if line.signature in PATIENT), key=moment, default=None)
    return silent if silent is not None and moment(silent) < moment(root) else None


def _worn_gpu(root: Line, lines: Sequence[Line]) -> str | None:
    """The one GPU on which process after process met what is as a rule a program's fault; None where there is none."""
    met: dict[str, set[str]] = {}
    for line in lines:
        found = _OF_PROCESS.search(line.evidence.text) if line.signature == root.signature else None
        if found is not None:
            met.setdefault(found["device"], set()).add(found["pid"])
    device = next(iter(met)) if len(met) == 1 else None
    return device if device is not None and len(met[device]) >= VICTIMS else None


def _of_many_nodes(root: Line, lines: Sequence[Line]) -> Line | None:
    """The line that says of many nodes at once what the root says of one: then no node is to blame."""
    if root.fault_class is not FaultClass.NODE_LOST:
        return None
    return next((line for line in lines if line.fault_class is root.fault_class and line.scope is Scope.CLUSTER), None)


def outwaited(root: Line, lines: Sequence[Line], _scene: Scene) -> Cause | None:
    """Clients of shared storage that wait for it: what others wait for then, and else nothing."""
    if _is_patience_only(lines):
        text = f"{what(root)}, and nothing failed of it so far"
        return said(root, FaultClass.STORAGE_IO, Scope.UNKNOWN, Remedy.WAIT, 0.5, text)
    silent = _waited_for_storage(root, lines)
    if silent is None:
        return None
    text = f"{what(silent)}; then {what(root)}"
    return said(silent, FaultClass.STORAGE_IO, Scope.UNKNOWN, Remedy.RESTART, 0.7, text)


def blocked_in_driver(root: Line, lines: Sequence[Line], _scene: Scene) -> Cause | None:
    """Processes blocked in the kernel within the GPU's driver, or after it cleaned up, wait for it for ever."""
    if root.signature not in _BLOCKED:
        return None
    told = [line for line in lines if line.signature.startswith(_OF_DRIVER) and moment(line) < moment(root)]
    first = min((line for line in told if line.evidence.node == root.evidence.node), key=moment, default=None)
    if first is None and any(line.signature == _IN_DRIVER for line in lines):
        first = root
    if first is None:
        return None
    node = first.evidence.node
    text = f"{what(first)}; then {what(root)}" if first is not root else f"{what(root)}, in the GPU's driver"
    nodes = (node,) if node is not None else ()
    return said(first, FaultClass.GPU_HARDWARE, Scope.NODE, Remedy.RESTART_EXCLUDING_NODE, 0.6, text, nodes)


def slow_rank(root: Line, _lines: Sequence[Line], scene: Scene) -> Cause | None:
    """A rank that is slow is a reason to leave its node where it is known which one that is."""
    if root.signature not in _SLOW:
        return None
    node = None if root.blamed_rank is None else host_of(scene.places.ranks.get(root.blamed_rank), scene.nodes)
    if node is None:
        return said(root, root.fault_class, Scope.UNKNOWN, Remedy.WAIT, 0.5, what(root))
    text = f"{what(root)}, which runs on {node}"
    return said(root, root.fault_class, Scope.NODE, Remedy.RESTART_EXCLUDING_NODE, 0.6, text, (node,))


def not_fetched(root: Line, lines: Sequence[Line], _scene: Scene) -> Cause | None:
    """A container that did not start because its image did not come is no fault of the node, unless that is named."""
    missing = next((line for line in lines if line.signature == _NOT_FETCHED), None)
    if root.signature != _NOT_STARTED or missing is None or any(line.signature in _OF_THE_NODE for line in lines):
        return None
    text = f"{what(root)}; then {what(missing)}"
    return said(root, root.fault_class, Scope.UNKNOWN, Remedy.RESTART, 0.5, text)


def named_below(root: Line, lines: Sequence[Line], scene: Scene) -> Cause | None:
    """The node that a message names only below its first line."""
    below = [line for line in lines if line.signature == _BELOW.get(root.signature) and moment(line) > moment(root)]
    if not below:
        return None
    first = min(below, key=moment)
    node = host_of(first.evidence.node, scene.nodes)
    nodes = (node,) if node is not None else ()
    return said(root, root.fault_class, first.scope, first.remedy, 0.6, what(first), nodes)


def worn(root: Line, lines: Sequence[Line], _scene: Scene) -> Cause | None:
    """What is a program's fault as a rule is the GPU's where it meets process after process on the same one."""
    device = _worn_gpu(root, lines) if root.fault_class is FaultClass.USER_CODE else None
    if device is None:
        return None
    text = f"{what(root)}, in several processes, and always on the GPU {device}"
    return said(root, FaultClass.GPU_HARDWARE, Scope.UNKNOWN, Remedy.RESTART, 0.5, text)


def whole_site(root: Line, lines: Sequence[Line], _scene: Scene) -> Cause | None:
    line = _of_many_nodes(root, lines)
    if line is None:
        return None
    return said(line, line.fault_class, Scope.CLUSTER, Remedy.RESTART, 0.7, what(line))
