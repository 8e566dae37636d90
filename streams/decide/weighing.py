"""Which of the lines is the cause, and what should be done about it? Pure rules over matched lines.

Used by the decider for an incident's lines, and by `recovery diagnose` for those of a dead run's files, so that what is
measured on files is what decides. Unsure means restart without exclusion, never a stop.
"""

from __future__ import annotations

from collections.abc import Sequence

from schemas.vocabulary import FaultClass, LineRole, Remedy, Scope
from streams.decide.blame import host_of, silent_node, voices_against
from streams.decide.cause import Cause, Earlier, Scene, said, what
from streams.decide.roots import BETWEEN_RANKS, CERTAIN, ENDED_BY_SCHEDULER, TIER, moment, rank, root_line
from streams.decide.state import Line
from streams.decide.together import (
    alone,
    announced,
    blocked_in_driver,
    named_below,
    not_fetched,
    outwaited,
    slow_rank,
    whole_site,
    worn,
)

__all__ = ["HANG_SILENCE_MS", "Cause", "Earlier", "Scene", "moment", "root_line", "weigh"]

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
# What a program or its settings do wrong wherever they run.
_OF_THE_PROGRAM = {"duplicate-gpu", "nccl-setup"}
_OF_GPU = {FaultClass.GPU_HARDWARE, FaultClass.GPU_MEMORY_ECC, FaultClass.NVLINK}
# What the driver tells of a program's kernels, as a rule.
_ON_GPU = "xid-application"
# The program wanted to requeue its job, and could not.
_NOT_REQUEUED = "requeue-failed"
LAUNCHERS_SUMMARY = "torchrun-root-cause"
# By which a program gives up on numbers that are none.
_GAVE_UP = {"loss-scale-minimum", "loss-scale-floor"}


def weigh(lines: Sequence[Line], scene: Scene) -> Cause:
    """Return the cause that explains the lines, of which there is at least one."""
    return announced(_weigh(lines, scene), lines)


def _weigh(lines: Sequence[Line], scene: Scene) -> Cause:
    root = root_line(lines)
    if scene.finished and root.precedence < CERTAIN:
        return said(root, FaultClass.BENIGN_NOISE, Scope.JOB, Remedy.IGNORE, 0.8, "printed after a normal end")
    for rule in (
        alone,
        outwaited,
        blocked_in_driver,
        _handed_over,
        _hung_until_the_limit,
        _again_and_again,
        _given_up,
        _on_one_node_only,
        _on_every_node,
        not_fetched,
        slow_rank,
        worn,
        whole_site,
        _confirmed,
        named_below,
        _blamed_by_others,
    ):
        cause = rule(root, lines, scene)
        if cause is not None:
            return cause
    return _as_the_line_says(root, lines, scene)


def _handed_over(root: Line, lines: Sequence[Line], _scene: Scene) -> Cause | None:
    """Somebody has already requeued the job: a second requeuer would fight the first.

    The notice is the root of what is weaker, and of what broke between ranks when it had been given.
    """
    if root.precedence >= CERTAIN:
        return None
    waiting = (line for line in lines if line.remedy is Remedy.WAIT and line.fault_class in ENDED_BY_SCHEDULER)
    handed = next(waiting, None)
    if handed is None or any(line.signature == _NOT_REQUEUED for line in lines):
        return None
    torn_down = root.fault_class in BETWEEN_RANKS and moment(root) > moment(handed)
    weaker = root.precedence // TIER < handed.precedence // TIER
    if root.fault_class not in ENDED_BY_SCHEDULER and root.precedence >= TIER and not torn_down:
        return None
    first = handed if torn_down or weaker else root
    fault_class = first.fault_class if first.fault_class in ENDED_BY_SCHEDULER else handed.fault_class
    text = what(first) if first is handed else f"{what(first)}; {handed.detail}"
    return said(first, fault_class, Scope.JOB, Remedy.WAIT, 0.8, text)


def _hung_until_the_limit(root: Line, _lines: Sequence[Line], scene: Scene) -> Cause | None:
    if root.fault_class is not FaultClass.SCHEDULER_TIMEOUT or (scene.silent_ms or 0) < HANG_SILENCE_MS:
        return None
    minutes = (scene.silent_ms or 0) // 60_000
    text = f"no step was printed for {minutes} minutes before the time limit: the run hung"
    return said(root, FaultClass.HANG_NO_LOG, Scope.UNKNOWN, Remedy.RESTART, 0.6, text)


def _again_and_again(root: Line, _lines: Sequence[Line], scene: Scene) -> Cause | None:
    """The same failure at the same step after a restart: the next one would end there, too."""
    if root.fault_class not in _DETERMINISTIC:
        return None
    same = [one for one in scene.earlier if one.signature == root.signature and one.step == scene.step]
    if not same:
        return None
    where = f" at step {scene.step}" if scene.step is not None else ""
    text = f"{what(root)}, for the {len(same) + 1}. time{where}: a restart ends in the same place"
    return said(root, root.fault_class, Scope.JOB, Remedy.TERMINATE_NO_RETRY, 0.8, text)


def _given_up(root: Line, lines: Sequence[Line], _scene: Scene) -> Cause | None:
    """Numbers that stay none until the program itself says that nothing helps: the next run would end there, too."""
    if root.fault_class is not FaultClass.NUMERIC_NAN:
        return None
    last = next((line for line in lines if line.signature in _GAVE_UP and line is not root), None)
    if last is None:
        return None
    text = f"{what(root)}; then {what(last)}"
    return said(root, root.fault_class, Scope.JOB, last.remedy, 0.8, text)


def _on_one_node_only(root: Line, lines: Sequence[Line], scene: Scene) -> Cause | None:
    """An environment that is broken on one node only is that node's fault, not the program's."""
    alike = root.fault_class is FaultClass.SOFTWARE_ENV or root.signature in _SAME_EVERYWHERE
    node = root.evidence.node
    if root.signature in _OF_THE_PROGRAM or not alike or node not in scene.nodes or len(scene.nodes) < REPORTERS:
        return None
    if any(line.evidence.node != node for line in lines if line.signature == root.signature):
        return None
    text = f"{what(root)}, on {node} only"
    return said(
        root, FaultClass.SOFTWARE_ENV, Scope.NODE, Remedy.RESTART_EXCLUDING_NODE, 0.7, text, (node,) if node else ()
    )


def _on_every_node(root: Line, lines: Sequence[Line], scene: Scene) -> Cause | None:
    """What every node of several says of itself alike is no one's fault; broken hardware is, wherever it is met."""
    excluding = root.remedy is Remedy.RESTART_EXCLUDING_NODE
    if not excluding or root.precedence >= CERTAIN or len(scene.nodes) < REPORTERS:
        return None
    alike = {host_of(line.evidence.node, scene.nodes) for line in lines if line.signature == root.signature}
    if not alike.issuperset(scene.nodes):
        return None
    text = f"{what(root)}, on every node alike"
    return said(root, root.fault_class, Scope.CLUSTER, Remedy.RESTART, 0.5, text)


def _confirmed(root: Line, lines: Sequence[Line], scene: Scene) -> Cause | None:
    """A GPU fault that may be chance, or the program's, is neither where a later line says that GPUs are broken."""
    if (root.fault_class not in _OF_GPU and root.signature != _ON_GPU) or root.scope is Scope.NODE:
        return None
    later = [line for line in lines if line.fault_class in _OF_GPU and line.role is LineRole.CAUSE]
    proof = min((line for line in later if line.remedy is Remedy.RESTART_EXCLUDING_NODE), key=rank, default=None)
    if proof is None:
        return None
    node = _node_of(proof, scene) or _node_of(root, scene)
    text = f"{what(root)}; then {what(proof)}"
    fault_class = root.fault_class if root.fault_class in _OF_GPU else proof.fault_class
    return said(root, fault_class, Scope.NODE, proof.remedy, 0.8, text, (node,) if node is not None else ())


def _blamed_by_others(root: Line, lines: Sequence[Line], scene: Scene) -> Cause | None:
    """Several others name the same node, and no node has said itself that it is broken.

    That a node alone says nothing while all others time out is as good as one more that names it.
    """
    if root.fault_class not in BETWEEN_RANKS or root.scope is Scope.NODE:
        return None
    blaming = voices_against(lines, scene.nodes, scene.places)
    silent, quiet = silent_node(lines, scene.nodes), scene.silent_rank
    stopped = None if quiet is None else host_of(scene.places.ranks.get(quiet), scene.nodes)
    for node in {silent, stopped} - {None}:
        blaming.setdefault(str(node), set()).add((node, None))
    if quiet is not None and not blaming:
        text = f"{what(root)}; rank {quiet} stopped printing before the others"
        return said(root, root.fault_class, root.scope, root.remedy, 0.5, text)
    if len(blaming) != 1:
        return None
    [(node, others)] = blaming.items()
    why = "is silent where all others time out" if silent == node else "did not answer"
    why = f"{why}, and whose rank {quiet} stopped printing before the others" if stopped == node else why
    if len(others) < REPORTERS:
        text = f"{what(root)}; {node} {why}, which alone does not prove that it is broken"
        return said(root, root.fault_class, root.scope, root.remedy, 0.5, text)
    text = f"{what(root)}; {len(others - {(node, None)})} others blame {node}, which {why}"
    return said(root, root.fault_class, Scope.NODE, Remedy.RESTART_EXCLUDING_NODE, 0.65, text, (node,))


def _as_the_line_says(root: Line, lines: Sequence[Line], scene: Scene) -> Cause:
    node = _node_of(root, scene) or _first_to_fail(lines, scene)
    nodes = (node,) if root.scope is Scope.NODE and node is not None else ()
    confidence = 0.5 if root.role is not LineRole.CAUSE else 0.9 if nodes else 0.75
    return said(root, root.fault_class, root.scope, root.remedy, confidence, what(root), nodes)


def _node_of(root: Line, scene: Scene) -> str | None:
    """Where the line was printed: by its prefix, or by its rank where other lines say on which node that is."""
    rank = root.evidence.rank
    printed_by = root.evidence.node or (None if rank is None else scene.places.ranks.get(rank))
    return host_of(printed_by, scene.nodes)


def _first_to_fail(lines: Sequence[Line], scene: Scene) -> str | None:
    """The node of the rank that the launcher saw fail first; none where its agents on several nodes name several."""
    named = {host_of(line.evidence.node, scene.nodes) for line in lines if line.signature == LAUNCHERS_SUMMARY}
    return named.pop() if len(named) == 1 else None
