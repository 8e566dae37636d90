"""Adds bytes of state versions that the corpus lacks: `python -m tests.corpus.make_states`. What is there stays."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from streams.decide.nodes import NODE_STATE_VERSION
from streams.decide.state import STATE_VERSION
from streams.run.state_codec import JOB_STATES, NODE_STATES, StateCodec
from tests.decide.story import Story
from tests.decide.test_nodes import Nodes, came, fault, went

CORPUS = Path(__file__).parent / "states.jsonl"


def job_state() -> Any:
    """The state of a job that was restarted once and fails again."""
    story = Story()
    story.run_and_fail()
    story.wait(2)
    story.held_then_running(1)
    story.progress(7, 1)
    story.line("Xid 79 again", 1, node="node1")
    return story.state


def node_state() -> Any:
    """The state of a node with a fault and two attempts."""
    nodes = Nodes()
    nodes.take(fault(1, 5_000), came(1, 0), came(2, 0), went(2, 0, 9_000))
    return nodes.states["node1"]


SAMPLES: dict[str, tuple[StateCodec[Any], int, Callable[[], Any]]] = {
    "job": (JOB_STATES, STATE_VERSION, job_state),
    "node": (NODE_STATES, NODE_STATE_VERSION, node_state),
}


def main() -> None:
    lines = CORPUS.read_text().splitlines() if CORPUS.exists() else []
    known = {(json.loads(line)["kind"], json.loads(line)["version"]) for line in lines}
    for kind, (states, version, make) in SAMPLES.items():
        if (kind, version) not in known:
            state = make()
            entry = {"kind": kind, "version": version, "state": repr(state), "bytes": states.dump(state).hex()}
            lines.append(json.dumps(entry))
    CORPUS.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
