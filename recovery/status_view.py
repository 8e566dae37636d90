"""How `recovery status` shows what it learned: tables for people, one JSON document for programs."""

import json
from dataclasses import asdict

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from infra.local.stack import PartStatus
from recovery.overview import Overview, Row

WIDTH_OF_FILES = 140  # where the output is no terminal


def show(overview: Overview) -> None:
    """Print the tables on standard output."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = WIDTH_OF_FILES
    if overview.nothing_runs:
        console.print(f"nothing runs in {overview.data}; `recovery up` starts it")
        return
    parts = _table("part", "health", "address")
    for part in overview.parts:
        health = _health(part.healthy, "answers" if part.healthy else "does not answer")
        parts.add_row(part.name, health, "\n".join(_endpoints(part).values()))
    console.print(parts)
    processes = _table("process", "pid", "restarts", "health", "lag", "address")
    for row in overview.rows:
        processes.add_row(*_cells(row))
    console.print(processes)


def _table(*columns: str) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def as_document(overview: Overview) -> str:
    """Return everything as JSON: `well`, `data`, `parts`, `processes` (with `lag` a topic and group)."""
    document = {
        "well": overview.well,
        "data": str(overview.data),
        "parts": [
            {"name": part.name, "healthy": part.healthy, "endpoints": _endpoints(part)} for part in overview.parts
        ],
        "processes": [asdict(row.process) | {"restarts": row.restarts} for row in overview.rows],
    }
    return json.dumps(document, indent=2)


def _cells(row: Row) -> tuple[str | Text, ...]:
    process = row.process
    return (
        process.name,
        str(process.pid or "-"),
        "-" if row.restarts is None else str(row.restarts),
        _health(process.ready, process.health),
        str(sum(lag.records for lag in process.lag)) if process.lag else "-",
        "\n".join(process.addresses.values()) or process.url or "-",
    )


def _health(well: bool, text: str) -> Text:
    return Text(text, style="green" if well else "red")


def _endpoints(part: PartStatus) -> dict[str, str]:
    return {name: _without_password(value) for name, value in part.endpoints.items()}


def _without_password(address: str) -> str:
    scheme, found, rest = address.partition("://")
    user, at, host = rest.rpartition("@")
    return f"{scheme}{found}{user.partition(':')[0]}{at}{host}" if found else address
