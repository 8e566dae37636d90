"""Adds bytes of schema versions that the corpus lacks: `python -m tests.corpus.make`. What is there never changes."""

from __future__ import annotations

import json
import types
from dataclasses import fields
from enum import StrEnum
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from schemas.catalogue import EVENTS, committed
from schemas.codec import Codec, FixedIds

CORPUS = Path(__file__).parent / "events.jsonl"


def sample(cls: type) -> Any:
    """An event of `cls` with a telling value in each field."""
    hints = get_type_hints(cls)
    return cls(**{field.name: _value(hints[field.name], field.name) for field in fields(cls)})


def _value(kind: Any, name: str) -> Any:
    if kind is str:
        return f"{name} \u00e9"
    if kind is bool:
        return True
    if kind is int:
        return 1_700_000_000_000 + len(name)
    if kind is float:
        return 0.25
    if kind is bytes:
        return b"\x00\xff"
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return list(kind)[-1]
    if isinstance(kind, type) and get_origin(kind) is None:
        return sample(kind)
    args = get_args(kind)
    if get_origin(kind) is tuple:
        return (_value(args[0], name),)
    return _value(next(arg for arg in args if arg is not types.NoneType), name)


def main() -> None:
    codec = Codec(FixedIds())
    lines = CORPUS.read_text().splitlines() if CORPUS.exists() else []
    known = {json.loads(line)["fingerprint"] for line in lines}
    for name, cls in sorted(EVENTS.items()):
        version = committed()[name][-1]
        if version.fingerprint not in known:
            event = sample(cls)
            entry = {
                "type": name,
                "version": version.number,
                "fingerprint": version.fingerprint,
                "value": codec.encode_value(event).hex(),
                "event": repr(event),
            }
            lines.append(json.dumps(entry))
    CORPUS.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
