"""What collectors write, read: Vector, Fluent Bit, OpenTelemetry, and whatever else may stand in the bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.sources.lines import LONGEST_LINE, Labels
from streams.sources.records import Fields, as_ns, read_record

T_NS = 1_785_578_400_123_456_789
"""2026-08-01T10:00:00.123456789Z."""


def read(document: Any, fields: Fields | None = None) -> list[tuple[bytes, int | None, Labels]]:
    value = document if isinstance(document, bytes) else json.dumps(document).encode()
    return [(one.text, one.at_ns, one.labels) for one in read_record(value, fields or Fields())]


def test_a_record_of_vector() -> None:
    document = {
        "file": "/logs/slurm-7.out",
        "host": "collector",
        "message": "step 1",
        "timestamp": "2026-08-01T10:00:00.123456789Z",
        "job_id": "7",
        "slurm_job_attempt": "2",
    }
    fields = Fields(filename="file", node="")
    assert read(document, fields) == [(b"step 1", T_NS, Labels("7", "/logs/slurm-7.out", 2))]


def test_a_record_of_fluent_bit() -> None:
    document = {"@timestamp": 1785578400.123, "log": "step 1", "slurm": {"job_id": 7, "rank": 3}}
    fields = Fields(message="log", timestamp="@timestamp", job_id="slurm.job_id", rank="slurm.rank")
    [(text, at_ns, labels)] = read(document, fields)
    assert (text, labels) == (b"step 1", Labels("7", rank=3))
    assert at_ns is not None
    assert abs(at_ns - 1_785_578_400_123_000_000) < 1_000


def test_a_batch_of_the_opentelemetry_collector() -> None:
    def attributes(**named: str) -> list[dict[str, Any]]:
        return [{"key": name, "value": {"stringValue": value}} for name, value in named.items()]

    document = {
        "resourceLogs": [
            {
                "resource": {"attributes": attributes(job_id="7", node="node1")},
                "scopeLogs": [
                    {
                        "logRecords": [
                            {"timeUnixNano": str(T_NS), "body": {"stringValue": "one"}},
                            {
                                "observedTimeUnixNano": str(T_NS + 1),
                                "body": {"stringValue": "two"},
                                "attributes": attributes(node="node2"),
                            },
                        ]
                    }
                ],
            }
        ]
    }
    assert read(document) == [
        (b"one", T_NS, Labels("7", node="node1")),
        (b"two", T_NS + 1, Labels("7", node="node2")),
    ]


def test_what_is_no_object_is_a_line_without_labels() -> None:
    assert read(b"plain text, \xff") == [(b"plain text, \xff", None, Labels())]
    assert read(b"[1, 2]") == [(b"[1, 2]", None, Labels())]
    assert read(b"") == [(b"", None, Labels())]


def test_an_object_without_the_message_is_a_line_as_a_whole() -> None:
    [(text, _at, labels)] = read({"msg": "x", "job_id": "7"})
    assert json.loads(text) == {"msg": "x", "job_id": "7"}
    assert labels == Labels("7")


def test_an_endless_message_is_cut() -> None:
    [(text, _at, _labels)] = read({"message": "x" * (2 * LONGEST_LINE)})
    assert len(text) == LONGEST_LINE


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2026-08-01T10:00:00.123456789Z", T_NS),
        ("2026-08-01T12:00:00.123456789+02:00", T_NS),
        ("2026-08-01 10:00:00", 1_785_578_400_000_000_000),
        (1_785_578_400, 1_785_578_400_000_000_000),
        (1_785_578_400_123, 1_785_578_400_123_000_000),
        (1_785_578_400_123_456, 1_785_578_400_123_456_000),
        (T_NS, T_NS),
        (str(T_NS), T_NS),
        ("1785578400.5", 1_785_578_400_500_000_000),
        ("yesterday", None),
        ("", None),
        (True, None),
        (float("nan"), None),
        (-5, None),
        (1e300, None),
        ("9" * 400, None),
        ({"a": 1}, None),
    ],
)
def test_times_in_every_form(value: object, expected: int | None) -> None:
    assert as_ns(value) == expected


WORDS = [
    *("message", "timestamp", "job_id", "filename", "slurm_job_attempt", "node", "rank", "key", "value", "body"),
    *("resourceLogs", "resource", "attributes", "scopeLogs", "logRecords", "timeUnixNano", "stringValue"),
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(WORDS) | st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.binary(max_size=300) | JSON.map(lambda document: json.dumps(document).encode()))
def test_nothing_in_a_record_raises(value: bytes) -> None:
    for one in read_record(value, Fields()):
        assert isinstance(one.text, bytes)
        for label in (one.labels.job_id, one.labels.filename, one.labels.node):
            assert label is None or label.encode()
