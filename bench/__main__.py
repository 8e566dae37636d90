"""Run all benchmarks, each in a process of its own; print one table and write `bench/results.json`.

`python -m bench` runs everything, `python -m bench NAME...` only those: then only their lines of the results change.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

ALL = ("replaying", "reading", "following", "deciding", "projecting", "starting", "living")
RESULTS = Path(__file__).with_name("results.json")
LIMIT_S = 1800
WIDTH = 160

Entry = dict[str, Any]


def main(names: Sequence[str]) -> int:
    """Return 1 if a benchmark broke. A target that is missed is a finding, not a failure."""
    unknown = [name for name in names if name not in ALL]
    if unknown:
        print(f"there is no benchmark {', '.join(unknown)}; there are {', '.join(ALL)}", file=sys.stderr)
        return 2
    console, broken = Console(width=WIDTH, highlight=False), []
    known: list[Entry] = json.loads(RESULTS.read_text()) if names and RESULTS.exists() else []
    for name in names or ALL:
        console.print(f"measuring: {name}")
        measured = _run(name)
        if measured is None:
            broken.append(name)
            continue
        fresh = {entry["name"] for entry in measured}
        known = [entry for entry in known if entry["name"] not in fresh] + measured
        RESULTS.write_text(json.dumps(known, indent=2) + "\n")
    console.print(table(known))
    if broken:
        console.print(f"broken: {', '.join(broken)}; their own output is above")
    return 1 if broken else 0


def _run(name: str) -> list[Entry] | None:
    with tempfile.NamedTemporaryFile(suffix=".json") as said:
        command = [sys.executable, "-W", "ignore", "-m", "bench.one", name, said.name]
        try:
            done = subprocess.run(command, check=False, timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            return None
        measured: list[Entry] = json.loads(Path(said.name).read_text()) if done.returncode == 0 else []
        return measured or None


def table(entries: Sequence[Entry]) -> Table:
    """All figures, with whether each target was met."""
    shown = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in ("what", "value", "beside", "ratio", "target", "notes"):
        shown.add_column(column, overflow="fold")
    for entry in entries:
        ratio = "-" if entry["ratio"] is None else f"{entry['ratio']:.2f}"
        met = "" if entry["met"] is None else "[green]met[/]: " if entry["met"] else "[red]missed[/]: "
        value = f"{entry['value']:,.2f}" if entry["value"] < 100 else f"{entry['value']:,.0f}"
        shown.add_row(
            entry["name"],
            f"{value} {entry['unit']}",
            entry["compared_to"],
            ratio,
            met + entry["target"],
            entry["notes"],
        )
    return shown


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
