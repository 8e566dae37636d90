"""Schemas only grow compatibly: a published one never changes, and each class gives exactly its newest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from schemas.catalogue import EVENTS, committed, current_text
from schemas.codec import Codec, FixedIds
from tests.corpus.written import as_written
from tests.schemas.compatibility import incompatibilities

CORPUS = Path(__file__).parents[1] / "corpus" / "events.jsonl"


@pytest.mark.parametrize("name", sorted(EVENTS))
def test_the_newest_committed_schema_is_what_the_class_gives(name: str) -> None:
    newest = committed()[name][-1]
    assert newest.text == current_text(name), (
        f"{name} changed: write its schema as schemas/avro/{name}/{newest.number + 1}.avsc"
        " (`recovery schemas write`) and never edit a published one"
    )


@pytest.mark.parametrize("name", sorted(EVENTS))
def test_every_version_can_be_read_by_every_other(name: str) -> None:
    history = committed()[name]
    for older in history:
        for newer in history:
            assert incompatibilities(writer=older.schema, reader=newer.schema) == []


def test_numbers_run_from_one_without_a_gap() -> None:
    for name, history in committed().items():
        assert [version.number for version in history] == list(range(1, len(history) + 1)), name


def test_every_field_of_every_event_is_documented_or_speaks_for_itself() -> None:
    for name in EVENTS:
        schema: dict[str, Any] = json.loads(current_text(name))
        assert len(schema["doc"]) > 20, name


def test_the_committed_bytes_of_each_version_are_still_read() -> None:
    codec = Codec(FixedIds())
    versions = {version.fingerprint: version for history in committed().values() for version in history}
    seen = set()
    for line in CORPUS.read_text().splitlines():
        entry = json.loads(line)
        event = codec.decode(bytes.fromhex(entry["value"]), [("schema_fingerprint", entry["fingerprint"].encode())])
        assert as_written(event, versions[entry["fingerprint"]].schema) == entry["event"]
        seen.add(entry["fingerprint"])
    assert seen == set(versions)
