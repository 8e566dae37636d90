"""The timestamp that a log line carries, in milliseconds since the epoch.

Only a stamp in the line's first bytes counts as the line's own (a date further on is something it talks about), and
Slurm's `CANCELLED AT`. A stamp without a zone is the local time of the hosts that write; one without a year is the one
next before the time of reading.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache

# Where a line's own stamp begins at the latest, and how far the search looks at all.
PREFIX_BYTES = 48
HEAD_BYTES = 128

_TIME = rb"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?:[.,](?P<fraction>\d{1,9}))?"
_ZONE = rb"(?: ?(?P<zone>Z|UTC|[+-]\d\d:?\d\d)\b)?"
_MONTHS = b"Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
_FULL = re.compile(rb"(?<!\d)(?P<year>\d{4})[-/](?P<month>\d\d)[-/](?P<day>\d\d)[T ,_]{1,2}" + _TIME + _ZONE)
_SLURM = re.compile(rb"CANCELLED AT (?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)T" + _TIME + _ZONE)
_SYSLOG = re.compile(rb"(?P<name>" + rb"|".join(_MONTHS) + rb") +(?P<day>\d{1,2}) " + _TIME)
# PyTorch writes months without a zero.
_GLOG = re.compile(rb"(?<![A-Za-z0-9])[EWIF](?P<month>\d{1,2})(?P<day>\d\d) " + _TIME)
_SHORT = re.compile(rb"(?<![\d/-])(?P<month>\d\d)[/-](?P<day>\d\d) " + _TIME)
_CLOCK = re.compile(rb"\d\d:\d\d:\d\d")  # what all forms have: most lines have none
_FORMS = (_FULL, _GLOG, _SYSLOG, _SHORT)
_SLACK = timedelta(days=1)
_QUARTER_MS = 900_000  # no zone changes in between


def stamp_ms(line: bytes, *, zone: tzinfo | None, near_ms: int) -> int | None:
    """Return the line's own time, or None where it carries none.

    `zone` is that of stamps without one (None: this machine's); `near_ms` the time of reading, for the year.
    """
    best = _own_stamp(line)
    return None if best is None else _milliseconds(best.groupdict(), zone, near_ms)


def repeat_ms(moment_ms: int, zone: tzinfo | None) -> int:
    """After how long clocks of the zone show the same time once more: an hour when summer time ends, else 0."""
    return _repeat_ms(moment_ms // _QUARTER_MS, zone)


@lru_cache(maxsize=256)
def _repeat_ms(quarter: int, zone: tzinfo | None) -> int:
    moment_s = quarter * _QUARTER_MS // 1000
    try:
        return int(datetime.fromtimestamp(moment_s, zone).replace(fold=1).timestamp() - moment_s) * 1000
    except (ValueError, OverflowError):
        return 0  # of the year 1 or 9999, which other zones may not have


def names_zone(line: bytes) -> bool:
    """Whether the line's own time says of which zone it is, and needs no setting to be understood."""
    return offset_ms(line) is not None


def offset_ms(line: bytes) -> int | None:
    """How far ahead of UTC the zone is that the line's own time names; None where it names none."""
    best = _own_stamp(line)
    named = None if best is None else best.groupdict().get("zone")
    return None if named is None else _offset(named) // timedelta(milliseconds=1)


def _own_stamp(line: bytes) -> re.Match[bytes] | None:
    head = line[:HEAD_BYTES]
    if head.count(b":") < 2 or _CLOCK.search(head) is None:
        return None
    best = _SLURM.search(head) if b"CANCELLED AT" in head else None
    return _first_of(head) if best is None else best


def _first_of(head: bytes) -> re.Match[bytes] | None:
    """The stamp that begins first, and near enough to where the line does."""
    best: re.Match[bytes] | None = None
    for form in _FORMS:
        match = form.search(head)
        if match is not None and match.start() <= PREFIX_BYTES and (best is None or match.start() < best.start()):
            best = match
            if match.start() <= 1:
                break
    return best


def _milliseconds(parts: dict[str, bytes | None], zone: tzinfo | None, near_ms: int) -> int | None:
    near = datetime.fromtimestamp(near_ms / 1000, UTC)
    try:
        moment = datetime(
            _number(parts.get("year")) or near.year,
            _number(parts.get("month")) or _MONTHS.index(parts.get("name") or b"") + 1,
            _number(parts["day"]),
            _number(parts["hour"]),
            _number(parts["minute"]),
            _number(parts["second"]),
            int((parts.get("fraction") or b"0").ljust(6, b"0")[:6]),
        )
        moment = _zoned(moment, parts.get("zone"), zone)
        if parts.get("year") is None and moment > near + _SLACK:
            moment = moment.replace(year=moment.year - 1)
        return int(moment.timestamp() * 1000)
    except (ValueError, OverflowError):
        return None  # digits that are no date: the line carries no time


def _zoned(moment: datetime, named: bytes | None, zone: tzinfo | None) -> datetime:
    if named is None:
        return moment.replace(tzinfo=zone) if zone is not None else moment.astimezone()
    return (moment - _offset(named)).replace(tzinfo=UTC)


def _offset(named: bytes) -> timedelta:
    if named in (b"Z", b"UTC"):
        return timedelta()
    offset = timedelta(hours=int(named[1:3]), minutes=int(named[-2:]))
    return offset if named[:1] == b"+" else -offset


def _number(digits: bytes | None) -> int:
    return int(digits) if digits else 0
