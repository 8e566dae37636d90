"""How logic 1 weighed lines."""

from __future__ import annotations

import re
from collections.abc import Sequence

from schemas.vocabulary import FaultClass, LineRole, Remedy, Scope
from streams.decide.cause import Cause, Scene
from streams.decide.logic1.blame import host_of, silent_node, voices_against
from streams.decide.state import Line

TIER = 20
"""Precedences are compared in steps of this: within one, the earlier line is the cause of the later."""
CERTAIN = 80
"""From this precedence on a line speaks of broken hardware, whatever the program says."""
HANG_SILENCE_MS = 30 * 60_000
"""Silence before the scheduler's time limit that makes it a hang."""
REPORTERS = 2
"""So many others must blame the same node before it is excluded for what it did not print itself."""

# Faults that come again where the same code meets the same data at the same step.
_DETERMINISTIC = {
    FaultClass.NUMERIC_NAN,
    FaultClass.HOST_OOM,
    FaultClass.CUDA_OOM,
    FaultClass.USER_CODE,
    FaultClass.DATA,
    FaultClass.SOFTWARE_ENV,
}
# What every rank would meet alike; met by the ranks of one node only, it is that node's.
_SAME_EVERYWHERE = {"python-import", "missing-library", "command-not-found"}
_BETWEEN_RANKS = {FaultClass.NETWORK_IB, FaultClass.NCCL_TIMEOUT, FaultClass.NODE_LOST}
_OF_GPU = {FaultClass.GPU_HARDWARE, FaultClass.GPU_MEMORY_ECC, FaultClass.NVLINK}
_LAUNCHERS_SUMMARY = "torchrun-root-cause"
_ENDED_BY_SCHEDULER = {FaultClass.PREEMPTION, FaultClass.SCHEDULER_TIMEOUT}
_GROUP = re.compile(r"\[PG (?:ID )?(\d+)")


def weigh(lines: Sequence[Line], scene: Scene) -> Cause:
    """Return the cause that explains the lines, of which there is at least one."""
    root = root_line(lines)
    if scene.finished and root.precedence < CERTAIN:
        return _said(root, FaultClass.BENIGN_NOISE, Scope.JOB, Remedy.IGNORE, 0.8, "printed after a normal end")
    for rule in (
        _handed_over,
        _hung_until_the_limit,
        _again_and_again,
        _on_one_node_only,
        _confirmed,
        _blamed_by_others,
    ):
        cause = rule(root, lines, scene)
        if cause is not None:
            return cause
    return _as_the_line_says(root, lines, scene)


def root_line(lines: Sequence[Line]) -> Line:
    """The line that explains the others: a cause before a consequence, the weightier kind, then the earliest."""
    root = _before_timeouts(lines, min(lines, key=_rank))
    if root.sequence is None:
        return root
    group = _group(root)
    same = [line for line in lines if line.signature == root.signature and line.sequence is not None]
    return min((line for line in same if _group(line) == group), key=lambda line: (line.sequence or 0, moment(line)))


def _before_timeouts(lines: Sequence[Line], root: Line) -> Line:
    """What a program prints after the first collective timed out is no cause of it, unless hardware speaks.

    The scheduler's end of a run is no cause of what went wrong between its ranks before.
    """
    if root.precedence >= CERTAIN or root.role is not LineRole.CAUSE:
        return root
    kinds = _BETWEEN_RANKS if root.fault_class in _ENDED_BY_SCHEDULER else {FaultClass.NCCL_TIMEOUT}
    broken = [line for line in lines if line.fault_class in kinds and line.precedence >= TIER]
    first = min(broken, key=moment, default=None)
    if first is None or moment(first) >= moment(root):
        return root
    return min(broken, key=_rank)


def moment(line: Line) -> tuple[int, int]:
    """When a line was printed, as well as it is known."""
    seen = line.evidence
    return (seen.line_ms if seen.line_ms is not None else seen.read_ms, seen.offset)


def _rank(line: Line) -> tuple[bool, int, tuple[int, int], int]:
    return (line.role is not LineRole.CAUSE, -(line.precedence // TIER), moment(line), -line.precedence)


def _group(line: Line) -> str | None:
    match = _GROUP.search(line.evidence.text)
    return None if match is None else match.group(1)


def _handed_over(root: Line, lines: Sequence[Line], _scene: Scene) -> Cause | None:
    """Somebody has already requeued the job: a second requeuer would fight the first."""
    if root.precedence >= CERTAIN:
        return None
    waiting = [line for line in lines if line.remedy is Remedy.WAIT and line.fault_class is not FaultClass.STRAGGLER]
    handed = next(iter(waiting), None)
    explained = root.precedence >= TIER and root.fault_class not in _ENDED_BY_SCHEDULER
    if handed is None or (root is not handed and explained):
        return None
    fault_class = root.fault_class if root.fault_class in _ENDED_BY_SCHEDULER else handed.fault_class
    return _said(root, fault_class, Scope.JOB, Remedy.WAIT, 0.8, f"{_what(root)}; {handed.detail}")


def _hung_until_the_limit(root: Line, _lines: Sequence[Line], scene: Scene) -> Cause | None:
    if root.fault_class is not FaultClass.SCHEDULER_TIMEOUT or (scene.silent_ms or 0) < HANG_SILENCE_MS:
        return None
    minutes = (scene.silent_ms or 0) // 60_000
    text = f"no step was printed for {minutes} minutes before the time limit: the run hung"
    return _said(root, FaultClass.HANG_NO_LOG, Scope.UNKNOWN, Remedy.RESTART, 0.6, text)


def _again_and_again(root: Line, _lines: Sequence[Line], scene: Scene) -> Cause | None:
    """The same failure at the same step after a restart: the next one would end there, too."""
    if root.fault_class not in _DETERMINISTIC:
        return None
    same = [one for one in scene.earlier if one.signature == root.signature and one.step == scene.step]
    if not same:
        return None
    where = f" at step {scene.step}" if scene.step is not None else ""
    text = f"{_what(root)}, for the {len(same) + 1}. time{where}: a restart ends in the same place"
    return _said(root, root.fault_class, Scope.JOB, Remedy.TERMINATE_NO_RETRY, 0.8, text)


def _on_one_node_only(root: Line, lines: Sequence[Line], scene: Scene) -> Cause | None:
    """An environment that is broken on one node only is that node's fault, not the program's."""
    alike = root.fault_class is FaultClass.SOFTWARE_ENV or root.signature in _SAME_EVERYWHERE
    node = root.evidence.node
    if not alike or node not in scene.nodes or len(scene.nodes) < REPORTERS:
        return None
    if any(line.evidence.node != node for line in lines if line.signature == root.signature):
        return None
    text = f"{_what(root)}, on {node} only"
    return _said(
        root, FaultClass.SOFTWARE_ENV, Scope.NODE, Remedy.RESTART_EXCLUDING_NODE, 0.7, text, (node,) if node else ()
    )


def _confirmed(root: Line, lines: Sequence[Line], scene: Scene) -> Cause | None:
    """A GPU fault that may be chance is none where a later line says that the node's GPUs are broken."""
    if root.fault_class not in _OF_GPU or root.scope is Scope.NODE:
        return None
    later = [line for line in lines if line.fault_class in _OF_GPU and line.role is LineRole.CAUSE]
    proof = min((line for line in later if line.remedy is Remedy.RESTART_EXCLUDING_NODE), key=_rank, default=None)
    if proof is None:
        return None
    node = _node_of(proof, scene) or _node_of(root, scene)
    text = f"{_what(root)}; then {_what(proof)}"
    return _said(root, root.fault_class, Scope.NODE, proof.remedy, 0.8, text, (node,) if node is not None else ())


def _blamed_by_others(root: Line, lines: Sequence[Line], scene: Scene) -> Cause | None:
    """Several others name the same node, and no node has said itself that it is broken.

    That a node alone says nothing while all others time out is as good as one more that names it.
    """
    if root.fault_class not in _BETWEEN_RANKS or root.scope is Scope.NODE:
        return None
    blaming = voices_against(lines, scene.nodes, scene.places)
    silent, quiet = silent_node(lines, scene.nodes), scene.silent_rank
    stopped = None if quiet is None else host_of(scene.places.ranks.get(quiet), scene.nodes)
    for node in {silent, stopped} - {None}:
        blaming.setdefault(str(node), set()).add((node, None))
    if quiet is not None and not blaming:
        text = f"{_what(root)}; rank {quiet} stopped printing before the others"
        return _said(root, root.fault_class, root.scope, root.remedy, 0.5, text)
    if len(blaming) != 1:
        return None
    [(node, others)] = blaming.items()
    why = "is silent where all others time out" if silent == node else "did not answer"
    why = f"{why}, and whose rank {quiet} stopped printing before the others" if stopped == node else why
    if len(others) < REPORTERS:
        text = f"{_what(root)}; {node} {why}, which alone does not prove that it is broken"
        return _said(root, root.fault_class, root.scope, root.remedy, 0.5, text)
    text = f"{_what(root)}; {len(others - {(node, None)})} others blame {node}, which {why}"
    return _said(root, root.fault_class, Scope.NODE, Remedy.RESTART_EXCLUDING_NODE, 0.65, text, (node,))


def _as_the_line_says(root: Line, lines: Sequence[Line], scene: Scene) -> Cause:
    node = _node_of(root, scene) or _first_to_fail(lines, scene)
    nodes = (node,) if root.scope is Scope.NODE and node is not None else ()
    confidence = 0.5 if root.role is not LineRole.CAUSE else 0.9 if nodes else 0.75
    return _said(root, root.fault_class, root.scope, root.remedy, confidence, _what(root), nodes)


def _node_of(root: Line, scene: Scene) -> str | None:
    """Where the line was printed: by its prefix, or by its rank where other lines say on which node that is."""
    rank = root.evidence.rank
    printed_by = root.evidence.node or (None if rank is None else scene.places.ranks.get(rank))
    return host_of(printed_by, scene.nodes)


def _first_to_fail(lines: Sequence[Line], scene: Scene) -> str | None:
    """The node of the rank that the launcher saw fail first; none where its agents on several nodes name several."""
    named = {host_of(line.evidence.node, scene.nodes) for line in lines if line.signature == _LAUNCHERS_SUMMARY}
    return named.pop() if len(named) == 1 else None


def _what(root: Line) -> str:
    node = root.evidence.node
    where = f" on {node}" if node is not None and node not in root.detail else ""
    return f"{root.detail or root.signature}{where}{root.told_by}"


def _said(
    root: Line,
    fault_class: FaultClass,
    scope: Scope,
    remedy: Remedy,
    confidence: float,
    text: str,
    nodes: tuple[str, ...] = (),
) -> Cause:
    kind = fault_class.value.replace("_", " ")
    return Cause(fault_class, scope, remedy, nodes, root, confidence, f"{text} ({kind})")
