"""Where settings come from: each layer maps a dotted key (`sac.mode`) to a value and the place that gave it.

The place is kept because an error is only useful when it names the file or the variable to correct.
"""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

PREFIX = "RECOVERY_"
CONFIG_VARIABLE = "RECOVERY_CONFIG"
DATA_VARIABLE = "RECOVERY_DATA"
DEFAULT_FILE = "recovery.toml"
ENDPOINTS_FILE = "endpoints.json"

# Names that the original's installations use already.
ALIASES = {
    "SLURM_ADVISOR_ACKNOWLEDGE_SCHEDULER_ACTIONS": "sac.acknowledge_scheduler_actions",
    "HEIMDALL_ENVIRONMENT": "sac.environment",
}
ENDPOINT_KEYS = {
    "kafka": "kafka.bootstrap",
    "registry": "registry.url",
    "postgres": "postgres.url",
    "slurm_conf": "slurm.conf_path",
}


class SettingsError(Exception):
    """A setting is wrong. The text names the file or variable, the key, the value and what is allowed."""


@dataclass(frozen=True)
class Given:
    """A value as somebody wrote it, and where."""

    value: object
    origin: str


Layer = dict[str, Given]


def environment_layer(environment: Mapping[str, str]) -> Layer:
    """Read `RECOVERY_<SECTION>__<KEY>`, `RECOVERY_DATA` and the original's names.

    Other `RECOVERY_…` names are left alone: Kubernetes makes such names for a Service called `recovery`.
    Raises SettingsError where two names give one key different values: to pick one could mean to act unasked.
    """
    layer = {
        name.removeprefix(PREFIX).lower().replace("__", "."): Given(value, name)
        for name, value in environment.items()
        if name.startswith(PREFIX) and ("__" in name or name == DATA_VARIABLE)
    }
    for name, key in ALIASES.items():
        if not environment.get(name):
            continue  # an empty one is as good as unset
        known = layer.setdefault(key, Given(environment[name], name))
        if known.value != environment[name]:
            raise SettingsError(
                f"{known.origin} is {known.value!r} but {name} is {environment[name]!r}; both set {key}: unset one"
            )
    return layer


def config_file(chosen: Path | None, environment: Mapping[str, str]) -> Path | None:
    """Return the settings file to read; None when there is none. A file asked for must exist."""
    asked, origin = chosen, "--config"
    if asked is None and environment.get(CONFIG_VARIABLE):
        asked, origin = Path(environment[CONFIG_VARIABLE]), CONFIG_VARIABLE
    if asked is None:
        default = Path(DEFAULT_FILE)
        return default if default.is_file() else None
    if not asked.is_file():
        raise SettingsError(f"{origin} names {asked}, which is not a file; create it or leave {origin} out")
    return asked


def file_layer(path: Path | None) -> Layer:
    """Read the TOML file; a table is a section."""
    if path is None:
        return {}
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"{path} cannot be read as TOML: {error}") from error
    return _flat("", document, str(path))


def _flat(prefix: str, table: Mapping[str, object], origin: str) -> Layer:
    layer: Layer = {}
    for name, value in table.items():
        if isinstance(value, dict):
            layer |= _flat(f"{prefix}{name}.", value, origin)
        else:
            layer[f"{prefix}{name}"] = Given(value, origin)
    return layer


def endpoints_layer(data: Path) -> Layer:
    """Read the addresses of the local stack; empty when it is not up."""
    path = data / ENDPOINTS_FILE
    if not path.is_file():
        return {}
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SettingsError(f"{path} cannot be read: {error}; run `recovery down` and `recovery up`") from error
    return {key: Given(document[name], str(path)) for name, key in ENDPOINT_KEYS.items() if document.get(name)}
