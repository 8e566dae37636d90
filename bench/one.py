"""Run one benchmark in a process of its own and write its figures as JSON: `python -m bench.one NAME FILE`."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from importlib import import_module
from pathlib import Path


def main() -> None:
    name, target = sys.argv[1:]
    figures = import_module(f"bench.{name}").figures()
    Path(target).write_text(json.dumps([asdict(figure) for figure in figures]))


if __name__ == "__main__":
    main()
