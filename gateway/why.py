"""Why an attempt ended and what was done about it, in plain sentences, from rows alone.

Four questions are kept apart: what happened, why, what was decided, and whether it came about. Each sentence names its
time and, where it rests on lines of output, shows them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gateway.story import Entry, Row, Story
from gateway.times import clock
from gateway.why_steps import steps
from schemas.vocabulary import FAILURE_STATES, FINAL_STATES, AnomalyKind, AttemptState, Mode

HAPPENED, CAUSE, DECIDED, DONE, OUTCOME, NOW = "happened", "cause", "decided", "done", "outcome", "now"

WAITING = frozenset({AttemptState.PENDING, AttemptState.HELD, AttemptState.CONFIGURING})
_WANTED = {"RESTARTED": "restart it", "TERMINATED": "terminate it", "RELEASED": "release it"}


@dataclass(frozen=True)
class Sentence:
    """One sentence, what it is about, and what it rests on."""

    about: str
    text: str
    at_ms: int | None = None
    event_id: str | None = None
    evidence: tuple[Row, ...] = ()


@dataclass(frozen=True)
class Explanation:
    """The answer: a summary, then the sentences in order."""

    summary: str
    sentences: tuple[Sentence, ...]
    converged: bool | None
    running_again: bool


def explain(story: Story) -> Explanation:
    """Explain one attempt."""
    now = _now(story)
    sentences = (*_happened(story), *_causes(story), *_decided(story), *_done(story), *_outcome(story), now)
    newest = story.newest
    return Explanation(
        summary=f"{_gist(story)} {now.text}",
        sentences=sentences,
        converged=story.advice[-1]["disposition"] == "CONVERGED" if story.advice else None,
        running_again=newest["attempt_index"] > story.attempt["attempt_index"]
        and newest["state"] in (AttemptState.RUNNING, AttemptState.COMPLETED),
    )


def _name(row: Row) -> str:
    return f"attempt {row['attempt_index']}"


def _happened(story: Story) -> Iterator[Sentence]:
    attempt = story.attempt
    who = (
        f"Attempt {attempt['attempt_index']} of job {attempt['job_id']} ({attempt['name']}, of {attempt['user_name']})"
    )
    if attempt["start_ms"] is None:
        yield Sentence(HAPPENED, f"{who} was not seen to have started.")
    else:
        where = f" on {_list(attempt['nodes'])}" if attempt["nodes"] else ""
        yield Sentence(HAPPENED, f"{who} started{where} at {clock(attempt['start_ms'])}.", attempt["start_ms"])
    if attempt["mode"] == Mode.DISABLED:
        yield Sentence(HAPPENED, _ended(f"Recovery leaves it alone: {attempt['mode_reason']}"))
    for entry in story.entries:
        if entry.kind == "anomaly":
            yield Sentence(HAPPENED, _symptom(entry), entry.at_ms, entry.event_id, entry.evidence)
        elif entry.kind == "state" and entry.payload["after"] in FINAL_STATES:
            state, detail = entry.payload["after"], f": {entry.detail}" if entry.detail else ""
            text = f"Slurm showed it as {state} at {clock(entry.at_ms)}{detail}."
            yield Sentence(HAPPENED, text, entry.at_ms, entry.event_id)


_OUTPUT = "A line of its output showed a fault"
_WITHOUT_LINE: Mapping[str, str] = {
    AnomalyKind.CRASH_STATE: "it counted as crashed by the scheduler's word alone",
    AnomalyKind.HANG: "it counted as hung",
    AnomalyKind.STRAGGLER: "it counted as slow",
}


def _symptom(entry: Entry) -> str:
    said, kind = entry.payload["detail"], entry.payload["kind"]
    if kind in _WITHOUT_LINE:
        return f"At {clock(entry.at_ms)} {_WITHOUT_LINE[kind]}: {said}."
    who = "A node that it ran on reported a fault" if kind == AnomalyKind.NODE_FAULT else _OUTPUT
    written = entry.times.get("lineMs")
    when = f", written at {clock(written)}" if written is not None else ""
    return f"{who} ({said}{when}); it was noticed at {clock(entry.at_ms)}."


def _causes(story: Story) -> Iterator[Sentence]:
    for entry in story.entries:
        if entry.kind != "attribution":
            continue
        made = entry.payload
        where = f"The fault is placed on {_list(made['nodes'])}" if made["nodes"] else "No node is blamed for it"
        count = made["lines_seen"]
        text = (
            f"{_ended(made['explanation'])} {where}; {count} fault {'line was' if count == 1 else 'lines were'} seen,"
            f" fault class {made['fault_class']}, confidence {made['confidence']:.0%}, by {made['provider']}."
        )
        yield Sentence(CAUSE, text, entry.at_ms, entry.event_id, entry.evidence)
    for entry in story.entries:
        if entry.kind == "answer" and entry.payload["error"] is not None:
            text = f"The attribution provider {entry.payload['provider']} gave no answer ({entry.payload['error']})."
            yield Sentence(CAUSE, text, entry.at_ms, entry.event_id)


def _decided(story: Story) -> Iterator[Sentence]:
    known: set[tuple[str, str]] = set()
    for entry in story.entries:
        if entry.kind == "command":
            given = entry.payload
            text = f"{given['by']} asked at {clock(entry.at_ms)} for: {given['kind']} ({given['reason']})."
            yield Sentence(DECIDED, text, entry.at_ms, entry.event_id)
        elif entry.kind == "withheld":
            text = f"At {clock(entry.at_ms)} something was held back ({entry.payload['reason']}): {entry.detail}"
            yield Sentence(DECIDED, _ended(text), entry.at_ms, entry.event_id)
        elif entry.kind == "advice":
            advice = entry.payload["advice"]
            sort = (advice["incident_id"], advice["desired_state"])
            text = _renewed(advice, entry.at_ms) if sort in known else _advised(advice, entry.at_ms)
            known.add(sort)
            yield Sentence(DECIDED, text, entry.at_ms, entry.event_id)
        elif entry.kind in ("parked", "quarantine", "set_aside"):
            yield Sentence(DECIDED, f"{_ended(entry.title)} {_ended(entry.detail)}", entry.at_ms, entry.event_id)


def _advised(advice: Row, at_ms: int) -> str:
    without = f" without {_list(advice['exclude_nodes'])}" if advice["exclude_nodes"] else ""
    return (
        f"At {clock(at_ms)} it was decided to {_WANTED[advice['desired_state']]}{without} (Advice"
        f" {advice['generation']}, because of {advice['reason']}): {_ended(advice['explanation'])} The policy was"
        f" {advice['policy']}, the rules version {advice['logic']}."
    )


def _renewed(advice: Row, at_ms: int) -> str:
    return f"At {clock(at_ms)} the same was decided anew, as Advice {advice['generation']}."


def _done(story: Story) -> Iterator[Sentence]:
    for step in steps(story.entries):
        yield Sentence(DONE, step.text, step.at_ms, step.event_id)
    if story.advice and not any(entry.kind.startswith("action") for entry in story.entries):
        yield Sentence(DONE, "The scheduler controller has neither sent a command for this nor refused to.")


def _outcome(story: Story) -> Iterator[Sentence]:
    if not story.advice:
        return
    advice = story.advice[-1]
    label = f"Advice {advice['generation']}"
    detail = f": {advice['resolution_detail']}" if advice["resolution_detail"] else ""
    at_ms = advice["resolved_ms"]
    if advice["disposition"] == "CONVERGED":
        text = f"{label} converged at {clock(at_ms)}, as a fresh look at Slurm showed{detail}."
    elif advice["disposition"] == "ABANDONED":
        text = f"{label} was abandoned at {clock(at_ms)} ({advice['resolution']}){detail}."
    else:
        text = f"{label} has not converged yet: no look at Slurm has shown what it wants."
    yield Sentence(OUTCOME, text, at_ms)


def _now(story: Story) -> Sentence:
    newest, attempt = story.newest, story.attempt
    if newest["attempt_index"] == attempt["attempt_index"]:
        return Sentence(NOW, _without_successor(story), newest["observed_ms"])
    since = clock(newest["observed_ms"])
    state, name = newest["state"], _name(newest).capitalize()
    where = f" on {_list(newest['nodes'])}" if newest["nodes"] else ""
    if state == AttemptState.RUNNING:
        text = f"It is running again: {_name(newest)} runs{where} since {since}{_resumed(newest)}."
    elif state == AttemptState.COMPLETED:
        ended = clock(newest["end_ms"] or newest["observed_ms"])
        text = f"It ran again and completed: {_name(newest)} ended at {ended}{_resumed(newest)}."
    elif state == AttemptState.HELD:
        text = f"It is not running: {_name(newest)} is held since {since}."
    elif state in WAITING:
        text = f"It is not running yet: {_name(newest)} waits in Slurm's queue ({state}) since {since}."
    else:
        text = f"{name} came after it and is {state} since {since}{_resumed(newest)}."
    return Sentence(NOW, text, newest["observed_ms"])


def _without_successor(story: Story) -> str:
    state, since = story.attempt["state"], clock(story.attempt["observed_ms"])
    if story.attempt["mode"] == Mode.DISABLED and state not in FINAL_STATES:
        return (
            f"It was {state} when it was first seen, at {since}; what recovery leaves alone is looked at again only"
            " when Slurm no longer shows it."
        )
    if state == AttemptState.RUNNING:
        return f"It is running, since {since}{_resumed(story.attempt)}."
    if state in FINAL_STATES:
        return f"It is {state} since {since}, and no later attempt was seen."
    return f"It is {state} since {since}."


def _resumed(row: Row) -> str:
    loaded, last, total = row["loaded_checkpoint_step"], row["last_step"], row["total_steps"]
    parts = [] if loaded is None else [f"resumed from the checkpoint of step {loaded}"]
    if last is not None:
        parts.append(f"last seen at step {last}" + (f" of {total}" if total is not None else ""))
    return "".join(f", {part}" for part in parts)


def _gist(story: Story) -> str:
    attempt = story.attempt
    name = f"{_name(attempt).capitalize()} of job {attempt['job_id']}"
    made = next((entry.payload for entry in reversed(story.entries) if entry.kind == "attribution"), None)
    if made is None:
        if attempt["state"] in FAILURE_STATES:
            return f"{name} failed ({attempt['state']}); its cause is not known."
        if attempt["mode"] == Mode.DISABLED:
            return _ended(f"{name} is left alone by recovery: {attempt['mode_reason']}")
        return f"No incident was seen in {name[0].lower()}{name[1:]}."
    where = f" on {_list(made['nodes'])}" if made["nodes"] else ""
    fault = f"{name} had a fault of class {made['fault_class']}{where}"
    if not story.advice:
        return f"{fault}; nothing was advised."
    advice = story.advice[-1]
    without = f" without {_list(advice['exclude_nodes'])}" if advice["exclude_nodes"] else ""
    return f"{fault}; it was decided to {_WANTED[advice['desired_state']]}{without}."


def _list(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _ended(text: str) -> str:
    """The text as a sentence."""
    stripped = text.strip()
    return stripped if not stripped or stripped[-1] in ".!?" else f"{stripped}."
