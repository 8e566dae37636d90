"""Where the local stack's servers are, as read by everything that connects to them."""

import json
from dataclasses import dataclass
from pathlib import Path

from infra.local.parts import StackError


class StackNotUp(StackError):
    """Nothing was started in the given data folder, or not all of what is needed."""


@dataclass(frozen=True)
class Endpoints:
    """Addresses of one running stack.

    `kafka` is host:port; `registry` the URL of the Confluent-compatible API; `postgres` an SQLAlchemy URL;
    `slurm_conf` the file to name in the environment variable SLURM_CONF, or None while Slurm isn't started.
    """

    kafka: str
    registry: str
    postgres: str
    slurm_conf: Path | None

    @classmethod
    def load(cls, folder: Path) -> "Endpoints":
        """Reads what `Stack.start` wrote. Raises `StackNotUp`."""
        file = folder / "endpoints.json"
        if not file.exists():
            raise StackNotUp(f"no local stack is up in {folder}; start it with `recovery up`")
        known: dict[str, str] = json.loads(file.read_text())
        missing = sorted({"kafka", "registry", "postgres"} - known.keys())
        if missing:
            raise StackNotUp(f"{', '.join(missing)} of the local stack in {folder} is not up; run `recovery up`")
        slurm_conf = known.get("slurm_conf")
        return cls(known["kafka"], known["registry"], known["postgres"], Path(slurm_conf) if slurm_conf else None)
