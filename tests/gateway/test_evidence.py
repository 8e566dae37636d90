"""Lines of output find their way back to every event that names them, and to no other place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from gateway.evidence import lines_in, with_texts
from projections.records import Record
from schemas.vocabulary import Witness
from tests.histories import gpu_xid_failure
from tests.projections.test_node_faults import reported

RECORDS = [
    *(Record("t", 0, 0, one.timestamp_ms, one.producer, one.event) for one in gpu_xid_failure().records),
    reported(Witness.NODE_LOG),
]
SHOWING = [record for record in RECORDS if record.evidence]


@pytest.mark.parametrize("record", SHOWING, ids=lambda record: type(record.event).__name__)
def test_an_events_lines_are_found_in_its_document_and_made_whole(record: Record) -> None:
    texts = {line.digest: line.text for line in record.evidence}
    assert [line["digest"] for line in lines_in(record.payload)] == [line.digest for line in record.evidence]
    whole = with_texts(record.payload, texts)
    assert _texts(whole) == [line.text for line in record.evidence]
    assert _texts(record.payload) == [], "the record itself is left as it was"


def test_each_kind_of_event_that_shows_lines_is_among_these() -> None:
    assert {type(record.event).__name__ for record in SHOWING} == {
        "SignatureMatched",
        "AnomalyDetected",
        "AttributionMade",
        "NodeFaultReported",
    }


def _texts(document: Any) -> list[str]:
    """The texts of the lines anywhere in a document, in its order."""
    if isinstance(document, Mapping):
        own = [document["text"]] if "text" in document else []
        return own + [text for value in document.values() for text in _texts(value)]
    if isinstance(document, list | tuple):
        return [text for value in document for text in _texts(value)]
    return []
