"""What Avro's schema resolution could not do between two versions of a record."""

from __future__ import annotations

from typing import Any

PROMOTIONS = {("int", "long"), ("int", "double"), ("long", "double"), ("string", "bytes"), ("bytes", "string")}


def incompatibilities(*, writer: Any, reader: Any, path: str = "") -> list[str]:
    """Return why `reader` could not read what `writer` wrote; empty if it can."""
    if isinstance(reader, list) or isinstance(writer, list):
        readers = reader if isinstance(reader, list) else [reader]
        writers = writer if isinstance(writer, list) else [writer]
        return [
            f"{path}: no branch for {branch}"
            for branch in writers
            if not any(incompatibilities(writer=branch, reader=other, path=path) == [] for other in readers)
        ]
    if isinstance(writer, dict) and isinstance(reader, dict):
        return _named(writer, reader, path)
    if writer == reader:
        return []
    if isinstance(writer, str) and isinstance(reader, str) and (writer, reader) in PROMOTIONS:
        return []
    return [f"{path}: {writer} can't be read as {reader}"]


def _named(writer: dict[str, Any], reader: dict[str, Any], path: str) -> list[str]:
    if writer["type"] != reader["type"]:
        return [f"{path}: {writer['type']} can't be read as {reader['type']}"]
    if writer["type"] == "array":
        return incompatibilities(writer=writer["items"], reader=reader["items"], path=f"{path}[]")
    if writer["name"] != reader["name"]:
        return [f"{path}: record {writer['name']} can't be read as {reader['name']}"]
    written = {field["name"]: field for field in writer["fields"]}
    found = []
    for field in reader["fields"]:
        where = f"{path}.{field['name']}"
        if field["name"] in written:
            found += incompatibilities(writer=written[field["name"]]["type"], reader=field["type"], path=where)
        elif "default" not in field:
            found.append(f"{where}: new field without a default")
    return found
