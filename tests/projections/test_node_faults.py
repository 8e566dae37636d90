"""What a node says, as people read it: under the node's name, never as the job's output, its text kept apart."""

from __future__ import annotations

import json

import pytest

from projections.projectors import rows_for
from projections.records import Record
from projections.tables import EVIDENCE, TIMELINE
from schemas.facts import Evidence, NodeFault, NodeFaultReported
from schemas.identity import AttemptId, Position
from schemas.vocabulary import FaultClass, LineRole, Remedy, Scope, Witness

TEXT = "kernel: NVRM: Xid (PCI:0000:06:00): 79, GPU has fallen off the bus."


def reported(witness: Witness, distance_ms: int = 0) -> Record:
    evidence = Evidence("/var/log/nodes/node2/kern.log", 7, 1, 1_000, 2_000, "node2", None, TEXT, "sha256:1")
    fault = NodeFault(
        "local",
        "node2",
        witness,
        "xid-off-the-bus",
        FaultClass.GPU_HARDWARE,
        Scope.NODE,
        Remedy.RESTART_EXCLUDING_NODE,
        LineRole.CAUSE,
        98,
        "Xid 79",
        evidence,
    )
    position = Position("topic:recovery.node-decisions/0", 0, 1)
    fact = NodeFaultReported("id", "told", AttemptId("local", "7", 1, 0), position, fault, distance_ms, 3_000)
    return Record("t", 0, 0, 0, "relay", fact)


def timeline(record: Record) -> tuple[str, str]:
    [row] = [row for row in rows_for(record) if row.upsert.table is TIMELINE]
    return row.values["title"], row.values["detail"]


@pytest.mark.parametrize(
    ("witness", "title"),
    [(Witness.NODE_LOG, "The log of node2 shows Xid 79"), (Witness.NODE_METRIC, "A metric of node2 shows Xid 79")],
)
def test_the_timeline_says_which_witness_of_which_node(witness: Witness, title: str) -> None:
    assert timeline(reported(witness))[0] == title


@pytest.mark.parametrize(
    ("distance_ms", "said"),
    [
        (0, "while the attempt was there"),
        (-20_000, "20 s before its start"),
        (1_500, "1.5 s after its end"),
    ],
)
def test_the_timeline_says_how_far_it_was_from_the_attempt(distance_ms: int, said: str) -> None:
    assert timeline(reported(Witness.NODE_LOG, distance_ms))[1].endswith(said)


def test_the_line_itself_stands_in_the_evidence_table_alone() -> None:
    rows = list(rows_for(reported(Witness.NODE_LOG)))
    assert [row.values["text"] for row in rows if row.upsert.table is EVIDENCE] == [TEXT]
    assert TEXT not in json.dumps([row.values for row in rows if row.upsert.table is not EVIDENCE])
