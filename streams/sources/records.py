"""Reads what collectors write: JSON with field names of the site's choice, and OTLP's JSON.

Vector, Fluent Bit and the OpenTelemetry collector all write an object a line (the last, unless told otherwise, OTLP's
nested form with many lines in one). Whatever is in the bytes, reading raises nothing: what is no object is a line
without labels.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from streams.sources.lines import LONGEST_LINE, Labels

# A number of digits that int() takes in no time, and no label is longer.
_MOST_DIGITS = 19
_MOST_LABEL = 4096
# Below these a time in a number is in seconds, milliseconds, microseconds; else in nanoseconds.
_SECONDS, _MILLISECONDS, _MICROSECONDS = 1e11, 1e14, 1e17
LATEST_NS = 1 << 62
"""What is later is no time, and would fit no event."""


@dataclass(frozen=True)
class Fields:
    """Names of the fields, dotted where they are nested (`kubernetes.labels.job_id`); empty: not there."""

    message: str = "message"
    timestamp: str = "timestamp"
    job_id: str = "job_id"
    filename: str = "filename"
    attempt: str = "slurm_job_attempt"
    node: str = "node"
    rank: str = "rank"


@dataclass(frozen=True)
class Read:
    """One line of a record; `at_ns` None where it carries no time."""

    text: bytes
    at_ns: int | None
    labels: Labels


def read_record(value: bytes, fields: Fields) -> Iterator[Read]:
    """Give the lines of one record."""
    try:
        document = json.loads(value)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        yield Read(value[:LONGEST_LINE], None, Labels())
    elif isinstance(document.get("resourceLogs"), list):
        yield from _otlp(document["resourceLogs"], fields)
    else:
        text = lookup(document, fields.message)
        at_ns = as_ns(lookup(document, fields.timestamp))
        yield Read(as_text(value if text is None else text), at_ns, labels_of(document, fields))


def labels_of(document: Mapping[str, Any], fields: Fields) -> Labels:
    """The labels in an object."""
    return Labels(
        job_id=_label(lookup(document, fields.job_id)),
        filename=_label(lookup(document, fields.filename)),
        attempt=_whole(lookup(document, fields.attempt)),
        node=_label(lookup(document, fields.node)),
        rank=_whole(lookup(document, fields.rank)),
    )


def lookup(document: Mapping[str, Any], name: str) -> Any:
    """A field by its name, or by its dotted path; None where it is not there."""
    if not name:
        return None
    if name in document:
        return document[name]
    found: Any = document
    for part in name.split("."):
        if not isinstance(found, Mapping):
            return None
        found = found.get(part)
    return found


def as_text(value: Any) -> bytes:
    """A message as bytes, at most the longest line."""
    if isinstance(value, bytes):
        return value[:LONGEST_LINE]
    text = value if isinstance(value, str) else json.dumps(value)
    return text[:LONGEST_LINE].encode("utf-8", "replace")[:LONGEST_LINE]


def as_ns(value: Any) -> int | None:
    """A time in any of the forms that collectors write, in nanoseconds; None for what is none."""
    if isinstance(value, str):
        return _number_ns(value) if value.replace(".", "", 1).isdigit() else _stamp_ns(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return _scaled(value)


def _number_ns(text: str) -> int | None:
    whole, _, part = text.partition(".")
    if len(whole) > _MOST_DIGITS:
        return None
    scaled = _scaled(int(whole or "0"))
    if scaled is None or not part:
        return scaled
    return scaled + int(part[:9].ljust(9, "0")) if int(whole or "0") < _SECONDS else scaled


def _scaled(value: float) -> int | None:
    if not 0 < value < LATEST_NS:  # a NaN is not, either
        return None
    factor = 10**9 if value < _SECONDS else 10**6 if value < _MILLISECONDS else 10**3 if value < _MICROSECONDS else 1
    return int(value * factor)


def _stamp_ns(text: str) -> int | None:
    """An RFC 3339 time, with up to nine digits of a second. Without a zone it is UTC."""
    head, dot, rest = text.strip().partition(".")
    digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
    zone = rest[len(digits) :] if dot else ""
    try:
        moment = datetime.fromisoformat(head + zone)
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
        return int(moment.timestamp()) * 10**9 + int(digits[:9].ljust(9, "0") or "0")
    except (ValueError, OverflowError):
        return None


def _label(value: Any) -> str | None:
    if value is None or value == "" or isinstance(value, dict | list):
        return None
    return str(value)[:_MOST_LABEL].encode("utf-8", "replace").decode()


def _whole(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    text = str(value) if isinstance(value, int | str) else ""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else None


def _otlp(resources: list[Any], fields: Fields) -> Iterator[Read]:
    """Lines of the OpenTelemetry collector: attributes of the resource, and of the line, which count more."""
    for resource in _objects(resources):
        outer = _attributes(_object(resource.get("resource")))
        for scope in _objects(resource.get("scopeLogs")):
            for entry in _objects(scope.get("logRecords")):
                known = outer | _attributes(entry)
                at_ns = as_ns(entry.get("timeUnixNano")) or as_ns(entry.get("observedTimeUnixNano"))
                yield Read(as_text(_otlp_value(entry.get("body")) or ""), at_ns, labels_of(known, fields))


def _attributes(holder: Mapping[str, Any]) -> dict[str, Any]:
    return {str(one.get("key")): _otlp_value(one.get("value")) for one in _objects(holder.get("attributes"))}


def _otlp_value(value: Any) -> Any:
    """The value in OTLP's wrapping, such as {"stringValue": "7"}."""
    known = _object(value)
    return next(iter(known.values()), None)


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
