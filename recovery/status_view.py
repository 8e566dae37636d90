"""How `recovery status` shows what it learned: tables for people, one JSON document for programs."""

import json
import math
from dataclasses import asdict
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from infra.local.stack import PartStatus
from recovery.figures import MILESTONES, Milestone
from recovery.hidden import WAY_OUT
from recovery.overview import Overview, PartRow, Row

WIDTH_OF_FILES = 140  # where the output is no terminal


def show(overview: Overview) -> None:
    """Print the tables on standard output."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = WIDTH_OF_FILES
    if overview.nothing_runs:
        console.print(f"nothing runs in {overview.data}; `recovery up` starts it")
        return
    parts = _table("part", "restarts", "health", "address")
    for one in overview.parts:
        health = _health(one.part.healthy, one.health)
        parts.add_row(one.part.name, _restarts(one), health, "\n".join(_endpoints(one.part).values()))
    console.print(parts)
    processes = _table("process", "pid", "restarts", "health", "lag", "address")
    for row in overview.rows:
        processes.add_row(*_cells(row))
    console.print(processes)
    console.print(_figures(overview))


def _table(*columns: str) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _figures(overview: Overview) -> Table:
    """How fast recovery was since the processes started, and what is left undone."""
    found = overview.figures
    table = _table("figure", "value")
    for name in MILESTONES:
        table.add_row(f"line to {name}", _milestone(found.milestone(name)))
    rate = "-" if overview.decided_s is None else f", {overview.decided_s:.1f} a second now"
    table.add_row("facts decided", f"{found.decided}{rate}")
    table.add_row("parked records", _health(found.parked == 0, str(found.parked)))
    hidden = [f"{count} of {topic}" for topic, count in (found.hidden or {}).items()]
    unhidden = "-" if found.hidden is None else "0"
    table.add_row("hidden records", _health(not hidden, f"{', '.join(hidden)}: {WAY_OUT}" if hidden else unhidden))
    table.add_row("intents without outcome", "-" if found.intents is None else str(found.intents))
    return table


def _milestone(found: Milestone | None) -> str:
    if found is None:
        return "none yet"
    return f"{found.count}; half within {_bound(found.median_s)}, 99 % within {_bound(found.p99_s)}"


def _bound(seconds: float) -> str:
    return "longer" if math.isinf(seconds) else f"{seconds:g} s"


def as_document(overview: Overview) -> str:
    """Return everything as JSON: `well`, `data`, `parts`, `processes` (with `lag` a topic and group), `figures`."""
    document = {
        "well": overview.well,
        "data": str(overview.data),
        "parts": [
            {
                "name": one.part.name,
                "healthy": one.part.healthy,
                "health": one.health,
                "restarts": one.restarts,
                "endpoints": _endpoints(one.part),
            }
            for one in overview.parts
        ],
        "processes": [_document(row) for row in overview.rows],
        "figures": {
            "milestones": {name: _seconds(overview.figures.milestone(name)) for name in MILESTONES},
            "facts_decided": overview.figures.decided,
            "facts_decided_a_second": overview.decided_s,
            "parked_records": overview.figures.parked,
            "hidden_records": overview.figures.hidden,
            "intents_without_outcome": overview.figures.intents,
        },
    }
    return json.dumps(document, indent=2)


def _document(row: Row) -> dict[str, Any]:
    process = asdict(row.process)
    del process["figures"]
    lag = [asdict(lag) for lag in row.process.lag]
    return process | {"lag": lag, "restarts": row.restarts, "given_up": row.given_up}


def _seconds(found: Milestone | None) -> dict[str, Any] | None:
    """Seconds; null for what is past the longest bucket, which JSON has no number for."""
    if found is None:
        return None
    return {name: None if math.isinf(value) else value for name, value in asdict(found).items()}


def _cells(row: Row) -> tuple[str | Text, ...]:
    process = row.process
    return (
        process.name,
        str(process.pid or "-"),
        _restarts(row),
        _health(process.ready, process.health),
        str(sum(lag.records for lag in process.lag)) if process.lag else "-",
        "\n".join(process.addresses.values()) or process.url or "-",
    )


def _restarts(row: Row | PartRow) -> str:
    return "-" if row.restarts is None else str(row.restarts)


def _health(well: bool, text: str) -> Text:
    return Text(text, style="green" if well else "red")


def _endpoints(part: PartStatus) -> dict[str, str]:
    return {name: _without_password(value) for name, value in part.endpoints.items()}


def _without_password(address: str) -> str:
    scheme, found, rest = address.partition("://")
    user, at, host = rest.rpartition("@")
    return f"{scheme}{found}{user.partition(':')[0]}{at}{host}" if found else address
