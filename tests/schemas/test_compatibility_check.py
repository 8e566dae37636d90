"""The compatibility check itself sees what would break a reader."""

from __future__ import annotations

from typing import Any

from tests.schemas.compatibility import incompatibilities


def record(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": list(fields)}


def test_a_new_field_needs_a_default() -> None:
    old, new = record(), record({"name": "a", "type": "long"})
    assert incompatibilities(writer=old, reader=new) == [".a: new field without a default"]
    assert incompatibilities(writer=old, reader=record({"name": "a", "type": "long", "default": 0})) == []
    assert incompatibilities(writer=new, reader=old) == []


def test_a_changed_type_is_seen_where_it_hides() -> None:
    old = record({"name": "a", "type": {"type": "array", "items": "string"}})
    new = record({"name": "a", "type": {"type": "array", "items": "long"}})
    assert incompatibilities(writer=old, reader=new) != []
    optional = record({"name": "a", "type": ["null", "string"]})
    assert incompatibilities(writer=optional, reader=record({"name": "a", "type": "string"})) != []
    assert incompatibilities(writer=record({"name": "a", "type": "string"}), reader=optional) == []


def test_a_renamed_record_is_seen() -> None:
    assert incompatibilities(writer=record(), reader=record() | {"name": "S"}) != []
