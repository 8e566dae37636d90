"""Lines of output, put back where events name them by digest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Connection, select

from gateway.models import EvidenceLine
from gateway.tables import EVIDENCE
from gateway.times import rfc3339

Line = Mapping[str, Any]


def lines_in(payload: Mapping[str, Any]) -> list[Line]:
    """The lines that an event's document names."""
    single = [payload[name] for name in ("evidence", "root") if payload.get(name) is not None]
    of_node = [payload["fault"]["evidence"]] if "fault" in payload else []
    return [*single, *of_node, *payload.get("secondary", ())]


def texts_of(database: Connection, lines: Iterable[Line]) -> dict[str, str]:
    """The texts of the lines, by digest; a redacted one is not among them."""
    digests = sorted({line["digest"] for line in lines})
    if not digests:
        return {}
    found = database.execute(select(EVIDENCE).where(EVIDENCE.c.digest.in_(digests)))
    return {row.digest: row.text for row in found}


def with_texts(payload: Mapping[str, Any], texts: Mapping[str, str]) -> dict[str, Any]:
    """An event's document with its lines made whole."""
    document = dict(payload)
    for name in ("evidence", "root"):
        if document.get(name) is not None:
            document[name] = document[name] | {"text": texts.get(document[name]["digest"])}
    if "fault" in document:
        document["fault"] = with_texts(document["fault"], texts)
    if "secondary" in document:
        document["secondary"] = [line | {"text": texts.get(line["digest"])} for line in document["secondary"]]
    return document


def evidence_line(line: Line, texts: Mapping[str, str]) -> EvidenceLine:
    """A line as the interface shows it."""
    return EvidenceLine(
        file=line["file"],
        line_no=line["line_no"],
        offset=str(line["offset"]),
        node=line["node"],
        rank=line["rank"],
        time=rfc3339(line["line_ms"]),
        read_at=rfc3339(line["read_ms"]),
        text=texts.get(line["digest"]),
        digest=line["digest"],
    )
