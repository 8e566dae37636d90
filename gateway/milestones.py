"""The steps of a recovery and how long each took, from the line that shows the fault to training on."""

from __future__ import annotations

from collections.abc import Iterable

from gateway.story import Entry, Story

LINE_WRITTEN = "lineWritten"
LINE_READ = "lineRead"
ANOMALY = "anomaly"
ATTRIBUTED = "attributed"
ADVISED = "advised"
HELD = "held"
RELEASED = "released"
RUNNING = "runningAgain"
RESUMED = "resumedFromCheckpoint"
TRAINING = "trainingAgain"

Reached = list[tuple[str, int]]


def milestones(story: Story) -> Reached:
    """(name, time in ms) of each step that was reached, in the order of time; empty where no incident opened.

    `held` and `released` are what the scheduler was seen to have done, not what it was asked to do.
    """
    anomaly = _first(story.entries, "anomaly")
    if anomaly is None:
        return []
    found = {
        LINE_WRITTEN: anomaly.times.get("lineMs"),
        LINE_READ: anomaly.times.get("readMs"),
        ANOMALY: anomaly.at_ms,
        ATTRIBUTED: _time(_first(story.entries, "attribution")),
        ADVISED: _time(_first(story.entries, "advice")),
        **_successor(story),
    }
    reached = [(name, at) for name, at in found.items() if at is not None]
    return sorted(reached, key=lambda step: step[1])


def _successor(story: Story) -> dict[str, int | None]:
    """What became of the attempt that this one's Advice brought about."""
    if story.successor is None or not any(row["desired_state"] == "RESTARTED" for row in story.advice):
        return {}
    moves = [entry for entry in story.successor_entries if entry.kind == "state"]
    held = next((entry for entry in moves if entry.payload["after"] == "HELD"), None)
    freed = next((entry for entry in moves if entry.payload["before"] == "HELD"), None)
    running = next((entry for entry in moves if entry.payload["after"] == "RUNNING"), None)
    return {
        HELD: _time(held),
        RELEASED: _time(freed),
        RUNNING: _time(running),
        RESUMED: _time(_first(story.successor_entries, "checkpoint_loaded")),
        TRAINING: story.successor["first_step_ms"],
    }


def _first(entries: Iterable[Entry], kind: str) -> Entry | None:
    return next((entry for entry in entries if entry.kind == kind), None)


def _time(entry: Entry | None) -> int | None:
    return None if entry is None else entry.at_ms
