"""Every event class that is ever written, and the committed schema versions of each."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any, get_args

from schemas.bookkeeping import ClusterSeen, PolicyPublished, RecordParked, SourceRead
from schemas.decisions import Advice, Decision, JobView, TimerSet
from schemas.facts import Fact
from schemas.nodes import NodeFact, NodeFaultTold
from schemas.records import schema_of


def _members(union: Any) -> tuple[type, ...]:
    return tuple(get_args(union))


FACTS: tuple[type, ...] = _members(Fact)
DECISIONS: tuple[type, ...] = _members(Decision)
NODE_FACTS: tuple[type, ...] = _members(NodeFact)
VIEWS: tuple[type, ...] = (Advice, JobView, TimerSet)
OTHERS: tuple[type, ...] = (*NODE_FACTS, NodeFaultTold, PolicyPublished, SourceRead, RecordParked, ClusterSeen)

EVENTS: dict[str, type] = {cls.__name__: cls for cls in (*FACTS, *DECISIONS, *VIEWS, *OTHERS)}


@dataclass(frozen=True)
class SchemaVersion:
    """One committed schema of one event class."""

    name: str
    number: int
    text: str

    @property
    def schema(self) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads(self.text)
        return loaded

    @property
    def fingerprint(self) -> str:
        return sha256(self.text.encode()).hexdigest()


def canonical(schema: dict[str, Any]) -> str:
    """The text that is committed: readable, stable, ending in a newline."""
    return json.dumps(schema, indent=2) + "\n"


def current_text(name: str) -> str:
    """The schema text that the class gives now."""
    return canonical(schema_of(EVENTS[name]))


@cache
def committed() -> dict[str, tuple[SchemaVersion, ...]]:
    """All committed versions of each event, oldest first."""
    root = files("schemas") / "avro"
    found: dict[str, tuple[SchemaVersion, ...]] = {}
    for name in sorted(EVENTS):
        folder = root / name
        if not folder.is_dir():
            continue
        numbers = sorted(int(entry.name.removesuffix(".avsc")) for entry in folder.iterdir())
        found[name] = tuple(SchemaVersion(name, number, (folder / f"{number}.avsc").read_text()) for number in numbers)
    return found
