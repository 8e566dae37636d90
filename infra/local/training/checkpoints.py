"""Checkpoints that are whole or absent: written beside, flushed to disk, renamed."""

import json
import os
from pathlib import Path


def save(folder: Path, iteration: int, weights: list[float]) -> None:
    target = folder / f"iter_{iteration:07d}.json"
    draft = target.with_suffix(".tmp")
    with draft.open("w") as file:
        json.dump({"iteration": iteration, "weights": weights}, file)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(target)
    directory = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def load(folder: Path) -> tuple[int, list[float]] | None:
    """The newest checkpoint as (iteration, weights); None if there is none."""
    found = sorted(folder.glob("iter_*.json"))
    if not found:
        return None
    state = json.loads(found[-1].read_text())
    return int(state["iteration"]), [float(weight) for weight in state["weights"]]
