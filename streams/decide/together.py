"""What several lines say together that none of them says alone. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from schemas.vocabulary import FaultClass, Scope
from streams.decide.roots import PATIENT, moment
from streams.decide.state import Line

VICTIMS = 3
"""So many processes must meet the same fault of an application on the same GPU, before it is the GPU's."""

_OF_PROCESS = re.compile(r"NVRM: Xid \((?P<device>[^)]*)\): \d+, .{0,20}?pid='?(?P<pid>\d+)")
_WAITING = {FaultClass.NCCL_TIMEOUT, FaultClass.HANG_NO_LOG}
_BLOCKED = {"hung-task"}


def is_patience_only(lines: Sequence[Line]) -> bool:
    """Whether storage was waited for, and nothing came of it."""
    return all(line.signature in PATIENT for line in lines)


def waited_for_storage(root: Line, lines: Sequence[Line]) -> Line | None:
    """The line by which storage stopped to answer, before ranks waited for each other or a process was blocked."""
    if root.fault_class not in _WAITING and root.signature not in _BLOCKED:
        return None
    silent = min((line for line in lines if line.signature in PATIENT), key=moment, default=None)
    return silent if silent is not None and moment(silent) < moment(root) else None


def worn_gpu(root: Line, lines: Sequence[Line]) -> str | None:
    """The one GPU on which process after process met what is as a rule a program's fault; None where there is none."""
    met: dict[str, set[str]] = {}
    for line in lines:
        found = _OF_PROCESS.search(line.evidence.text) if line.signature == root.signature else None
        if found is not None:
            met.setdefault(found["device"], set()).add(found["pid"])
    device = next(iter(met)) if len(met) == 1 else None
    return device if device is not None and len(met[device]) >= VICTIMS else None


def whole_site(root: Line, lines: Sequence[Line]) -> Line | None:
    """The line that says of many nodes at once what the root says of one: then no node is to blame."""
    if root.fault_class is not FaultClass.NODE_LOST:
        return None
    return next((line for line in lines if line.fault_class is root.fault_class and line.scope is Scope.CLUSTER), None)
