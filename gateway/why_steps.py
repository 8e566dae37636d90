"""What the scheduler controller did or refused to do, one sentence a command."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gateway.story import Entry
from gateway.times import clock

_NAMES = {
    "SLURM_REQUEUE_HOLD": "requeue into a held state",
    "SLURM_UPDATE_CONSTRAINTS": "exclude nodes",
    "SLURM_RELEASE": "release",
    "SLURM_CANCEL": "cancel",
}


@dataclass(frozen=True)
class Step:
    """One command and its fate."""

    text: str
    at_ms: int
    event_id: str


def steps(entries: Sequence[Entry]) -> Iterator[Step]:
    """The commands in the order in which they were sent or refused."""
    ends = {entry.payload["action_id"]: entry for entry in entries if entry.kind == "action_ended"}
    for entry in entries:
        if entry.kind == "action":
            text = f"{_sent(entry)}{_fate(entry, ends.get(entry.payload['action_id']))}."
            yield Step(text, entry.at_ms, entry.event_id)
        elif entry.kind == "action_refused":
            name = _NAMES[entry.payload["operation"]]
            text = (
                f"The step “{name}” was not taken at {clock(entry.at_ms)} ({entry.payload['reason']}): {entry.detail}"
            )
            yield Step(text if text.endswith(".") else f"{text}.", entry.at_ms, entry.event_id)


def _sent(entry: Entry) -> str:
    early = "" if entry.payload["generation"] else ", before any Advice, to keep Slurm from starting it again,"
    nodes = f" ({', '.join(entry.payload['nodes'])})" if entry.payload["nodes"] else ""
    name = _NAMES[entry.payload["operation"]]
    return f"The step “{name}”{nodes} was sent to Slurm{early} at {clock(entry.at_ms)} (`{entry.payload['command']}`)"


def _fate(intent: Entry, end: Entry | None) -> str:
    if end is None:
        return "; no answer is recorded"
    said = f": {end.detail.strip().rstrip('.')}" if end.detail.strip() else ""
    after = f" after {max(0, end.at_ms - intent.at_ms)} ms"
    outcome = end.payload["outcome"]
    if outcome == "accepted":
        return f" and accepted{after}{said}"
    if outcome == "refused":
        return f" and refused{after}{said}"
    return f"; whether it took effect is unknown{after}{said}"
