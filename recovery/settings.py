"""What an operator may set: one TOML file, with an environment variable for each key.

Precedence, highest first: environment (`RECOVERY_<SECTION>__<KEY>`, and two names that the original uses), the file
(`recovery.toml` in the working folder, or `--config` / `RECOVERY_CONFIG`), the addresses of the local stack
(`<data>/endpoints.json`, written while it runs), the defaults below. Everything is read once, at start, and frozen.
"""

import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Literal
from zoneinfo import available_timezones

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from recovery.node_queries import NODE_QUERIES, NodeQuery
from recovery.settings_layers import Layer, SettingsError, config_file, endpoints_layer, environment_layer, file_layer

__all__ = ["Settings", "SettingsError", "load_settings"]

DEFAULT_DATA = ".local"
_PASSWORD = re.compile(r"(//[^:/@\s]*:)\S*@")
# Where pydantic's own words would speak of Python instead of the file.
_PLAIN = {
    "bool_parsing": "should be true or false",
    "bool_type": "should be true or false",
    "model_type": "should be a table",
    "path_type": "should be a path",
    "tuple_type": "should be a list",
}


def _split(value: object) -> object:
    """Let an environment variable give a list as `a,b`, or as it stands in a settings file."""
    if not isinstance(value, str):
        return value
    if not value.lstrip().startswith("["):
        return [part.strip() for part in value.split(",") if part.strip()]
    try:
        return json.loads(value)
    except ValueError as error:
        raise ValueError('must be a list: a,b or ["a", "b"]') from error


def _prefixed(*prefixes: str) -> Callable[[str], str]:
    def check(value: str) -> str:
        if not value.startswith(prefixes):
            raise ValueError(f"must start with {' or '.join(prefixes)}")
        return value

    return check


def _known_zone(value: str) -> str:
    if value and value not in available_timezones():
        raise ValueError("must be the name of a time zone, such as UTC or Europe/Berlin")
    return value


def _node_log(value: str) -> str:
    path = value.removeprefix("{host}:")
    if not path.startswith("/") or (path != value and "{node}" in path):
        raise ValueError("must be an absolute path, with {node} in it or {host}: before it or neither")
    return value


def _distinct(queries: tuple[NodeQuery, ...]) -> tuple[NodeQuery, ...]:
    names = [query.name for query in queries]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"must have a name each; twice there is {', '.join(twice)}")
    return queries


Names = Annotated[tuple[str, ...], BeforeValidator(_split)]
HttpUrl = Annotated[str, AfterValidator(_prefixed("http://", "https://"))]
PostgresUrl = Annotated[str, AfterValidator(_prefixed("postgresql+psycopg://"))]
Folder = Annotated[Path, AfterValidator(lambda path: path.expanduser().absolute())]
StoreName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]
TimeZone = Annotated[str, AfterValidator(_known_zone)]
Seconds = Annotated[float, Field(gt=0, le=86_400)]
Wait = Annotated[float, Field(ge=0, le=86_400)]
Port = Annotated[int, Field(ge=0, le=65_535)]


class Section(BaseModel):
    """A table of the settings file: unknown keys are refused, values never change after start."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class KafkaSettings(Section):
    """Where Kafka is."""

    bootstrap: str = Field(
        default="127.0.0.1:9092", min_length=1, description="Brokers, `host:port`, separated by commas."
    )


class RegistrySettings(Section):
    """Where the schema registry is (any that speaks the Confluent API)."""

    url: HttpUrl = Field(
        default="http://127.0.0.1:8081/apis/ccompat/v7", description="Base of its Confluent-compatible API."
    )


class PostgresSettings(Section):
    """Where the projections live."""

    url: PostgresUrl = Field(
        default="postgresql+psycopg://recovery@127.0.0.1:5432/recovery",
        description="An SQLAlchemy address for psycopg 3.",
    )


class SlurmSettings(Section):
    """The cluster that this installation looks after, and how its commands are run."""

    cluster: str = Field(default="local", min_length=1, description="ClusterName in slurm.conf.")
    conf_path: Folder | None = Field(
        default=None, description="slurm.conf, given to the commands as SLURM_CONF; none: theirs."
    )
    tick_s: Seconds = Field(default=0.5, description="Seconds between two looks at the scheduler.")
    command_timeout_s: Seconds = Field(
        default=10, description="Seconds after which a Slurm command counts as unanswered."
    )


class SacSettings(Section):
    """What the Slurm Advisor Controller may do. All defaults are the harmless ones."""

    mode: Literal["disabled", "observe", "act"] = Field(
        default="observe", description="For jobs whose APS names none. disabled: does not even look at jobs."
    )
    acknowledge_scheduler_actions: bool = Field(
        default=False,
        description="The ceiling: while false, act means observe for every job. "
        "Also SLURM_ADVISOR_ACKNOWLEDGE_SCHEDULER_ACTIONS.",
    )
    environment: str = Field(
        default="",
        description="A job is admitted only if its APS names exactly this. Empty admits none. "
        "Also HEIMDALL_ENVIRONMENT.",
    )
    partitions: Names = Field(default=(), description="Partitions whose jobs are admitted. Empty admits none.")


class WatchdogSettings(Section):
    """The process that releases our holds when everything else is down; it uses `sac.partitions`."""

    mode: Literal["observe", "act"] = Field(
        default="observe", description="observe: only reports what it would release."
    )
    acknowledge: bool = Field(
        default=False, description="The ceiling of the watchdog itself: while false, act means observe."
    )
    timeout_s: Seconds = Field(default=600, description="Seconds that a job may stay held by us before it is released.")
    tick_s: Seconds = Field(default=5, description="Seconds between two looks at the scheduler.")


class LabelSettings(Section):
    """What a collector calls the labels of a line; dotted where nested; empty: it gives none."""

    cluster: str = Field(default="", description="The one cluster whose job ids its lines carry; empty: slurm.cluster.")
    job_id_field: str = Field(default="job_id", description="Label with the job id, raw or as 123_4.")
    filename_field: str = Field(default="filename", description="Label with the path of the file, as Slurm names it.")
    attempt_field: str = Field(default="slurm_job_attempt", description="Label with Slurm's restart count.")
    node_field: str = Field(
        default="node",
        description="Label with the node that printed the line; leave it empty where it names the collector's host.",
    )
    rank_field: str = Field(default="rank", description="Label with the rank that printed the line.")


class NodeLabelSettings(Section):
    """What a collector calls the labels of a node's line; dotted where nested; empty: it gives none."""

    node_field: str = Field(
        default="host",
        description="Label with the host whose log it is; journald calls it _HOSTNAME, OpenTelemetry host.name. A line"
        " without it names its host itself, as syslog does.",
    )
    filename_field: str = Field(
        default="filename", description="Label with the file or unit that the line is from, shown as evidence."
    )


class TopicSettings(Section):
    """What topics of raw lines have in common."""

    topic: str = Field(default="", description="The topic; empty: none is read.")
    bootstrap: str = Field(default="", description="Brokers of the collector's Kafka; empty: those of [kafka].")
    message_field: str = Field(default="message", description="Field with the text; Fluent Bit calls it log.")
    timestamp_field: str = Field(default="timestamp", description="Field with the time; Fluent Bit: @timestamp.")
    delay_s: Wait = Field(default=60, description="Seconds by which output may reach the topic late.")


class KafkaSourceSettings(TopicSettings, LabelSettings):
    """A Kafka topic of raw lines, as Vector, Fluent Bit or an OpenTelemetry collector writes them; off by default."""


class NodeKafkaSettings(TopicSettings, NodeLabelSettings):
    """A Kafka topic of kernel and system logs, other than that of [watch.kafka]; off by default."""


class StoreSettings(Section):
    """What log stores have in common."""

    url: HttpUrl | None = Field(default=None, description="Base address, user:password@ allowed; none: it is off.")
    name: StoreName = Field(
        default="main", description="The store's name in positions; another name is read from the start."
    )
    token_file: Folder | None = Field(default=None, description="File with a bearer token; none: no token is sent.")
    tenant: str = Field(default="", description="Tenant to read; empty: none is named.")
    settle_s: Wait = Field(
        default=2,
        description="Seconds that lines are waited for: those of several collectors come in order then, and a store"
        " shows lines a while after it took them (VictoriaLogs a second). Below that, lines come after delay_s.",
    )
    delay_s: Wait = Field(
        default=60, description="The query delay: seconds after which no more lines of a moment are expected."
    )
    poll_s: Seconds = Field(default=1, description="Seconds between two looks at a store that had nothing new.")


class VictoriaLogsSettings(StoreSettings, LabelSettings):
    """A VictoriaLogs that has the lines of jobs; off by default. A tenant is account:project."""

    search: str = Field(default="job_id:*", min_length=1, description="LogsQL filter that all lines of jobs match.")


class LokiSettings(StoreSettings, LabelSettings):
    """A Loki that has the lines of jobs; off by default."""

    search: str = Field(
        default='{job_id=~".+"}', min_length=1, description="Stream selector that all lines of jobs match."
    )


class NodeVictoriaLogsSettings(StoreSettings, NodeLabelSettings):
    """A VictoriaLogs that has kernel and system logs of nodes; off by default. A tenant is account:project."""

    name: StoreName = Field(default="nodes", description="The store's name in positions; not one of [watch].")
    search: str = Field(
        default="host:* !job_id:*",
        min_length=1,
        description="LogsQL filter that all lines of nodes match, and no job's.",
    )


class NodeLokiSettings(StoreSettings, NodeLabelSettings):
    """A Loki that has kernel and system logs of nodes; off by default."""

    name: StoreName = Field(default="nodes", description="The store's name in positions; not one of [watch].")
    search: str = Field(
        default='{host=~".+", job_id=""}',
        min_length=1,
        description="Stream selector that all lines of nodes match, and no job's.",
    )


class WatchSettings(Section):
    """How job output is read; the limits of hangs, stragglers and incidents are policy: `recovery policy show`."""

    poll_s: Seconds = Field(default=0.1, description="Seconds between two looks at a file that had nothing new.")
    packs: Annotated[tuple[Folder, ...], BeforeValidator(_split)] = Field(
        default=(), description="Folders with signature and format packs of the site, read after the shipped ones."
    )
    time_zone: TimeZone = Field(
        default="", description="Zone of timestamps that name none, such as Europe/Berlin; empty: this machine's."
    )
    clock_skew_s: Annotated[float, Field(ge=0, le=3600)] = Field(
        default=2, description="Seconds by which the clocks of nodes, the scheduler and this machine may differ."
    )
    hold_back_s: Seconds = Field(
        default=60, description="Seconds that a line waits for the news whose it is, before it is parked."
    )
    missing_after_s: Seconds = Field(
        default=120,
        description="Seconds after which output of a running attempt that can't be read (absent, denied, its source"
        " down, labels off) is an alarm.",
    )
    unknown_after_s: Seconds = Field(
        default=600,
        description="Seconds of growing output without a known line of progress, after which it is an alarm.",
    )
    arm_on_proposed: bool = Field(
        default=False,
        description="What of such output seems to count steps is always told; true: it is taken for the attempt's steps"
        " from then on, so that a hang is seen, until the attempt ends.",
    )
    kafka: KafkaSourceSettings = KafkaSourceSettings()
    victorialogs: VictoriaLogsSettings = VictoriaLogsSettings()
    loki: LokiSettings = LokiSettings()


class NodesSettings(Section):
    """What the nodes themselves say: their kernel and system logs, and their metrics."""

    log_paths: Annotated[tuple[Annotated[str, AfterValidator(_node_log)], ...], BeforeValidator(_split)] = Field(
        default=(),
        description="Kernel and syslog files that watch can read, such as /var/log/nodes/{node}/kern.log. {node} is the"
        " node as Slurm names it; a path without it is a file in which each line names its host. * is allowed."
        " {host}:/var/log/kern.log is this machine's own, where each machine has a watch and such a file.",
    )
    log_poll_s: Seconds = Field(default=0.5, description="Seconds between two looks at the node logs.")
    kafka: NodeKafkaSettings = NodeKafkaSettings()
    victorialogs: NodeVictoriaLogsSettings = NodeVictoriaLogsSettings()
    loki: NodeLokiSettings = NodeLokiSettings()
    prometheus_url: HttpUrl | None = Field(
        default=None,
        description="Base of a Prometheus that has the nodes' metrics, user:password@ allowed; none: nobody is asked.",
    )
    metrics_period_s: Seconds = Field(default=15, description="Seconds between two evaluations of each query.")
    queries: Annotated[tuple[NodeQuery, ...], AfterValidator(_distinct)] = Field(
        default=NODE_QUERIES, description="What to ask Prometheus; giving any replaces these."
    )


class GatewaySettings(Section):
    """Where the HTTP interface listens."""

    host: str = Field(default="127.0.0.1", min_length=1, description="Address to listen on.")
    port: Port = Field(default=0, description="Port to listen on; 0 takes a free one, shown by `recovery status`.")


class DecideSettings(Section):
    """How many deciders work side by side."""

    slots: int = Field(
        default=1, ge=1, le=256, description="Workers that `recovery up` starts; slots are 0 to slots - 1."
    )


class AskSettings(Section):
    """Whom to ask for a cause."""

    attribution_url: HttpUrl | None = Field(
        default=None, description="Base of an attribution provider; none: nobody is asked."
    )
    timeout_s: Seconds = Field(default=30, description="Seconds after which a provider counts as silent.")


class MetricsSettings(Section):
    """Where each process serves /healthz, /readyz and /metrics."""

    host: str = Field(default="127.0.0.1", min_length=1, description="Address to listen on.")
    port: Port = Field(
        default=0,
        description="Port of the process; 0 takes a free one, written to the run folder. "
        "Leave it 0 where several processes share a machine.",
    )


class Settings(Section):
    """Everything that can be set. Make it with `load_settings`."""

    data: Folder = Field(
        default=Path(DEFAULT_DATA),
        validate_default=True,
        description="Folder for the local stack and the run files.",
    )
    kafka: KafkaSettings = KafkaSettings()
    registry: RegistrySettings = RegistrySettings()
    postgres: PostgresSettings = PostgresSettings()
    slurm: SlurmSettings = SlurmSettings()
    sac: SacSettings = SacSettings()
    watchdog: WatchdogSettings = WatchdogSettings()
    watch: WatchSettings = WatchSettings()
    nodes: NodesSettings = NodesSettings()
    gateway: GatewaySettings = GatewaySettings()
    decide: DecideSettings = DecideSettings()
    ask: AskSettings = AskSettings()
    metrics: MetricsSettings = MetricsSettings()


def load_settings(config: Path | None = None, environment: Mapping[str, str] | None = None) -> Settings:
    """Read all layers once and check them.

    `config` is the file asked for on the command line; `environment` defaults to the process's own.
    Raises SettingsError, whose text can be shown to the operator as it is.
    """
    environ = os.environ if environment is None else environment
    given = file_layer(config_file(config, environ)) | environment_layer(environ)
    data = given["data"].value if "data" in given else DEFAULT_DATA
    if isinstance(data, str):  # anything else is refused below, with the other errors
        given = endpoints_layer(Path(data).expanduser()) | given
    try:
        return Settings.model_validate(_nested(given))
    except ValidationError as error:
        raise SettingsError("\n".join(_explain(one, given) for one in error.errors())) from error


def _nested(given: Layer) -> dict[str, object]:
    tree: dict[str, object] = {}
    for key, entry in given.items():
        *sections, name = key.split(".")
        table = tree
        for depth, section in enumerate(sections, start=1):
            inner = table.setdefault(section, {})
            if not isinstance(inner, dict):
                path = ".".join(sections[:depth])
                origin = given[path].origin if path in given else entry.origin
                raise SettingsError(f"{origin}: {path} must be a table, [{path}], not {inner!r}")
            table = inner
        table[name] = entry.value
    return tree


def _key_of(error: ErrorDetails) -> tuple[str, type[BaseModel]]:
    """The key that a finding is about, and the table that it stands in."""
    model: type[BaseModel] = Settings
    names: list[str] = []
    for part in error["loc"]:
        names.append(str(part))
        field = model.model_fields.get(str(part))
        inner = None if field is None else field.annotation
        if len(names) == len(error["loc"]) or not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            break
        model = inner
    return ".".join(names), model


def _explain(error: ErrorDetails, given: Layer) -> str:
    """Turn one finding of pydantic into a line: where, key, value, what is allowed."""
    key, model = _key_of(error)
    named = (entry for name, entry in given.items() if name == key or name.startswith(f"{key}."))
    origin = next((entry.origin for entry in named), "settings")
    if error["type"] == "extra_forbidden":
        section, _, name = key.rpartition(".")
        allowed = ", ".join(model.model_fields)
        where = f"[{section}]" if section else "the settings"
        return f"{origin}: there is no key {name!r} in {where}; allowed: {allowed}"
    value = _PASSWORD.sub(r"\1***@", repr(error["input"]))
    message = _PLAIN.get(error["type"]) or error["msg"].removeprefix("Input ").removeprefix("Value error, ")
    return f"{origin}: {key} is {value}; it {message}"
