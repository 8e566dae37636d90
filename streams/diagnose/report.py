"""A diagnosis and a detected format, as JSON for programs and as text for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from schemas.vocabulary import FaultClass, Remedy, Scope
from streams.decide.state import Line
from streams.diagnose.formats import Detected
from streams.diagnose.ranks import met_alike
from streams.diagnose.verdict import Diagnosis, Steps
from streams.watch.matching.proposals import brought, in_comment, pack_lines

SHOWN_LINES = 5
SHOWN_STEPS = 5
SHOWN_RANGES = 16
WIDTH = 160

_ACTIONS = {
    Remedy.RESTART: "restart it from the last checkpoint",
    Remedy.RESTART_EXCLUDING_NODE: "restart it without the broken node",
    Remedy.TERMINATE_NO_RETRY: "do not restart it: the same would happen again",
    Remedy.IGNORE: "nothing",
    Remedy.WAIT: "wait: somebody else already acts",
}
_SLOW = "let it run, and look at the clocks, links and storage of its nodes"
_NODE_UNKNOWN = (
    "No line names the node: `sacct -j JOB -o nodelist` tells the job's nodes, and their kernels' logs which of them",
    "is broken. Give these logs, too; where the service runs, it knows the nodes from the scheduler.",
)
_SCOPES = {
    Scope.NODE: "in a node",
    Scope.JOB: "in the job itself",
    Scope.CLUSTER: "in the cluster",
    Scope.UNKNOWN: "where is not known",
}


def diagnosis_json(said: Diagnosis) -> dict[str, Any]:
    """The diagnosis in the vocabularies of public failure reports; `root` is null where nothing is wrong."""
    lines = ([] if said.root is None else [said.root]) + list(said.secondary)
    return {
        "fault_class": said.fault_class.value,
        "scope": said.scope.value,
        "action": said.remedy.value,
        "nodes": list(said.nodes),
        "ranks": list(said.ranks),
        "root": None if said.root is None else _place(said.root),
        "secondary": [_place(line) for line in said.secondary],
        "evidence": [_place(line) | {"signature": line.signature} for line in lines],
        "explanation": said.explanation,
        "confidence": said.confidence,
        "progress": {
            "framework": said.steps.framework,
            "first_step": said.steps.first_step,
            "last_step": said.steps.last_step,
            "last_checkpoint_step": said.steps.last_checkpoint_step,
        },
    }


def diagnosis_text(said: Diagnosis) -> Iterator[str]:
    """The diagnosis in plain words, line by line."""
    yield said.explanation
    yield ""
    if said.fault_class is not FaultClass.BENIGN_NOISE:
        yield f"What failed:     {said.fault_class.value.replace('_', ' ')}, {_SCOPES[said.scope]}"
        if said.nodes:
            yield f"Nodes:           {', '.join(said.nodes)}"
        if said.ranks:
            yield f"Ranks:           {_ranges(said.ranks)}"
    slow = said.fault_class is FaultClass.STRAGGLER and said.remedy is Remedy.WAIT
    action = _SLOW if slow else _ACTIONS[said.remedy]
    yield f"What to do:      {action} ({said.remedy.value}; confidence {said.confidence:.0%})"
    if said.remedy is Remedy.RESTART_EXCLUDING_NODE and not said.nodes:
        yield from (f"{'':17}{line}" for line in _NODE_UNKNOWN)
    yield f"Progress:        {_progress(said.steps)}"
    if said.root is not None:
        yield f"Root line:       {_shown(said.root)}"
    alike = dict.fromkeys(met_alike(said.root, said.secondary, said.ranks))
    yield from _listed("Met alike:", list(alike))
    yield from _listed("Consequences:", [line for line in said.secondary if line not in alike])


def detected_json(said: Detected) -> dict[str, Any]:
    """What was read; `framework` is null for an unknown format, and `proposal` says how it could be read."""
    found: dict[str, Any] = {
        "framework": said.framework,
        "steps": [{"step": step.step, "seconds_per_step": _rounded(step.seconds_per_step)} for step in said.steps],
        "steps_left_out": said.steps_left_out,
        "bytes_left_out": said.bytes_left_out,
        "checkpoints": [{"step": saved.step, "path": saved.path} for saved in said.checkpoints],
    }
    if said.proposal is not None:
        found["proposal"] = {
            "pattern": said.proposal.pattern,
            **({} if (pace := said.proposal.pace) is None else {pace.key: pace.pattern}),
            "example": said.proposal.example,
            "lines": said.lines,
            "caveat": said.proposal.caveat,
        }
    return found


def detected_text(said: Detected) -> Iterator[str]:
    """What was read, with a worked example."""
    if said.framework is not None:
        yield f"Framework:    {said.framework} ({said.lines} lines)"
        yield f"For example:  {said.example[:WIDTH]}"
    elif said.proposal is not None:
        yield f"No known format. {said.lines} lines of one shape count something up, such as:"
        yield f"  {said.proposal.example[:WIDTH]}"
        if said.proposal.caveat is not None:
            yield f"But {said.proposal.caveat}: use this only if you know that they do."
        yield "A format for a pack of your own (put it into a file *.toml of a folder that watch.packs names):"
        yield from (f"  {line}" for line in pack_lines(said.proposal))
        for pattern in islice(brought(said.proposal), 1):
            yield "Or, for one job, in its APS comment:"
            yield f"  {in_comment(pattern)}"
    elif said.steps:
        yield f"No known format. {said.lines} lines speak of steps, but no number rises from each to the next:"
        yield f"  {said.example[:WIDTH]}"
    else:
        yield "No known format, and no line that repeats with a rising number."
    if said.bytes_left_out:
        yield f"Not looked at: {said.bytes_left_out >> 20} MB between the beginning and the end"
    for step in said.steps[:SHOWN_STEPS]:
        pace = "" if step.seconds_per_step is None else f", {step.seconds_per_step:.4g} s a step"
        yield f"Read:         step {step.step}{pace}"
    if len(said.steps) > SHOWN_STEPS:
        more = len(said.steps) - SHOWN_STEPS + said.steps_left_out
        yield f"              and {more} more, the last is step {said.steps[-1].step}"
    for saved in said.checkpoints[-SHOWN_STEPS:]:
        yield f"Checkpoint:   step {'unknown' if saved.step is None else saved.step}{_at(saved.path)}"
    if not said.checkpoints:
        yield "Checkpoint:   no line says that a save was complete"


def _rounded(value: float | None) -> float | None:
    """To six significant digits: what is computed from a rate has more, and they mean nothing."""
    return None if value is None else float(f"{value:.6g}")


def _at(path: str | None) -> str:
    return "" if path is None else f" at {path}"


def _place(line: Line) -> dict[str, Any]:
    return {"file": line.evidence.file, "line_no": line.evidence.line_no, "text": line.evidence.text}


def _listed(heading: str, lines: Sequence[Line]) -> Iterator[str]:
    for number, line in enumerate(lines[:SHOWN_LINES]):
        yield f"{heading if number == 0 else '':17}{_shown(line)}"
    if len(lines) > SHOWN_LINES:
        yield f"{'':17}and {len(lines) - SHOWN_LINES} more"


def _ranges(ranks: Sequence[int]) -> str:
    """Ranks in their order, those in a row as one: `0-15, 24`."""
    rows: list[tuple[int, int]] = []
    for rank in ranks:
        if rows and rank == rows[-1][1] + 1:
            rows[-1] = (rows[-1][0], rank)
        else:
            rows.append((rank, rank))
    more = f" and {len(rows) - SHOWN_RANGES} more" if len(rows) > SHOWN_RANGES else ""
    shown = (f"{low}-{high}" if high > low else str(low) for low, high in rows[:SHOWN_RANGES])
    return ", ".join(shown) + more


def _shown(line: Line) -> str:
    return f"{line.evidence.file}:{line.evidence.line_no}: {line.evidence.text[:WIDTH]}"


def _progress(steps: Steps) -> str:
    if steps.last_step is None:
        return "no step was read; `recovery formats detect` looks for an unknown program's"
    saved = steps.last_checkpoint_step
    durable = "no finished checkpoint was read" if saved is None else f"the last finished checkpoint is of step {saved}"
    epoch = None if steps.last_epoch is None else f"epoch {steps.last_epoch}"
    known = ", ".join(text for text in (steps.framework, epoch) if text is not None)
    name = f" ({known})" if known else ""
    if steps.proposed:
        name = " (of no known format, by what the lines count up; `recovery formats detect` shows it)"
    return f"steps {steps.first_step} to {steps.last_step}{name}; {durable}"
