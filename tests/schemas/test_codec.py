"""Bytes: what is written can be read, by its fingerprint alone, for ever; and bad bytes are named, not crashed on."""

from __future__ import annotations

from dataclasses import fields
from enum import StrEnum
from functools import cache
from typing import Any, get_args, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.catalogue import EVENTS
from schemas.codec import Codec, FixedIds, SchemaDrift, UnknownSchema, UnreadableRecord

CODEC = Codec(FixedIds())
LONG = st.integers(-(2**63), 2**63 - 1)


def values(kind: Any) -> st.SearchStrategy[Any]:
    """A strategy for any field type that events use."""
    if kind is str:
        return st.text(max_size=20)
    if kind is bool:
        return st.booleans()
    if kind is int:
        return LONG
    if kind is float:
        return st.floats(allow_nan=False)
    if kind is bytes:
        return st.binary(max_size=20)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return st.sampled_from(list(kind))
    if isinstance(kind, type):
        return events(kind)
    args = get_args(kind)
    if args[-1] is Ellipsis:
        return st.lists(values(args[0]), max_size=3).map(tuple)
    return st.none() | values(next(arg for arg in args if arg is not type(None)))


@cache
def events(cls: type) -> st.SearchStrategy[Any]:
    hints = get_type_hints(cls)
    return st.builds(cls, **{field.name: values(hints[field.name]) for field in fields(cls)})


@pytest.mark.parametrize("name", sorted(EVENTS))
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_every_event_comes_back_as_it_was(name: str, data: st.DataObject) -> None:
    event = data.draw(events(EVENTS[name]))
    encoded = CODEC.encode(event, source="test", time_ms=0, subject="x")
    assert CODEC.decode(encoded.value, encoded.headers) == event
    assert CODEC.decode(encoded.value) == event


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200), st.integers(1, len(EVENTS)))
def test_any_bytes_give_an_event_or_a_named_error(body: bytes, schema_id: int) -> None:
    for value in (body, b"\x00" + schema_id.to_bytes(4, "big") + body):
        try:
            event = CODEC.decode(value)
        except (UnreadableRecord, UnknownSchema):
            continue
        assert type(event).__name__ in EVENTS


def test_a_class_that_is_not_what_its_committed_schema_says_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EVENTS, "ClusterSeen", EVENTS["JobClosed"])
    with pytest.raises(SchemaDrift, match="ClusterSeen"):
        Codec(FixedIds())


def test_an_unknown_schema_is_said_not_guessed() -> None:
    with pytest.raises(UnknownSchema, match="9999"):
        CODEC.decode(b"\x00" + (9999).to_bytes(4, "big"))
    with pytest.raises(UnknownSchema, match="feed"):
        CODEC.decode(b"\x00\x00\x00\x00\x01", [("schema_fingerprint", b"feed")])


def test_the_headers_are_those_of_cloudevents_and_w3c() -> None:
    event = EVENTS["ClusterSeen"]("0d6b6c6e-0000-5000-8000-000000000000", "", "local", 3, False, "", 5)
    headers = dict(CODEC.encode(event, source="sac/local", time_ms=1_700_000_000_123, subject="local").headers)
    assert headers["ce_specversion"] == b"1.0"
    assert headers["ce_id"] == event.event_id.encode()
    assert headers["ce_type"] == b"recovery.ClusterSeen"
    assert headers["ce_time"] == b"2023-11-14T22:13:20.123+00:00"
    version, trace, span, flags = headers["traceparent"].decode().split("-")
    assert (version, len(trace), len(span), flags) == ("00", 32, 16, "01")
