"""The log sources beside files that the settings name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from recovery.settings import (
    KafkaSourceSettings,
    LabelSettings,
    LokiSettings,
    NodeKafkaSettings,
    NodeLabelSettings,
    NodeLokiSettings,
    NodeVictoriaLogsSettings,
    Settings,
    SettingsError,
    StoreSettings,
    VictoriaLogsSettings,
)
from streams.sources.http import Address
from streams.sources.kafka_topic import KafkaTopic
from streams.sources.lines import LogSource
from streams.sources.loki import Loki, LokiFields
from streams.sources.records import Fields
from streams.sources.victorialogs import VictoriaLogs, VictoriaLogsFields
from streams.sources.windows import Waits


@dataclass(frozen=True)
class Configured:
    """A source, the one cluster that its raw job ids belong to, and how late output may reach it."""

    source: LogSource
    cluster: str
    delay_ms: int


def sources_of(settings: Settings) -> tuple[Configured, ...]:
    """Return the sources of job output that are on, not yet connected. Raises SettingsError."""
    watch = settings.watch
    return tuple(_on(settings, "watch", watch.kafka, watch.victorialogs, watch.loki))


def node_sources_of(settings: Settings) -> tuple[Configured, ...]:
    """Return the sources of node logs that are on, not yet connected. Raises SettingsError.

    None of them may be one of job output: what a job prints is no witness of its node.
    """
    nodes = settings.nodes
    found = tuple(_on(settings, "nodes", nodes.kafka, nodes.victorialogs, nodes.loki))
    jobs = {one.source.name for one in sources_of(settings)}
    for one in found:
        if one.source.name in jobs:
            raise SettingsError(
                f"[nodes] and [watch] both read {one.source.name}; give node logs a topic or name of their own"
            )
    return found


def _on(
    settings: Settings,
    section: str,
    kafka: KafkaSourceSettings | NodeKafkaSettings,
    victorialogs: VictoriaLogsSettings | NodeVictoriaLogsSettings,
    loki: LokiSettings | NodeLokiSettings,
) -> Iterator[Configured]:
    if kafka.topic:
        fields = Fields(message=kafka.message_field, timestamp=kafka.timestamp_field, **_labels(kafka))
        topic = KafkaTopic(kafka.bootstrap or settings.kafka.bootstrap, kafka.topic, fields)
        yield _configured(topic, settings, kafka, kafka.delay_s)
    if victorialogs.url is not None:
        made = VictoriaLogs(
            victorialogs.name,
            _address(victorialogs.url, victorialogs, _victorialogs_tenant(section, victorialogs.tenant)),
            victorialogs.search,
            VictoriaLogsFields(**_labels(victorialogs)),
            _waits(victorialogs),
        )
        yield _configured(made, settings, victorialogs, victorialogs.delay_s)
    if loki.url is not None:
        address = _address(loki.url, loki, {"X-Scope-OrgID": loki.tenant} if loki.tenant else {})
        try:
            source = Loki(loki.name, address, loki.search, LokiFields(**_labels(loki)), _waits(loki))
        except ValueError as error:
            raise SettingsError(f"{section}.loki.search: {error}") from error
        yield _configured(source, settings, loki, loki.delay_s)


def _configured(
    source: LogSource, settings: Settings, labels: LabelSettings | NodeLabelSettings, delay_s: float
) -> Configured:
    cluster = labels.cluster if isinstance(labels, LabelSettings) else ""
    return Configured(source, cluster or settings.slurm.cluster, int(delay_s * 1000))


def _address(url: str, store: StoreSettings, headers: dict[str, str]) -> Address:
    return Address(url, store.token_file, headers)


def _victorialogs_tenant(section: str, tenant: str) -> dict[str, str]:
    """VictoriaLogs names a tenant by two numbers, `account:project`. Raises SettingsError."""
    if not tenant:
        return {}
    account, colon, project = tenant.partition(":")
    if not (account.isdigit() and (project.isdigit() or not colon)):
        raise SettingsError(f"{section}.victorialogs.tenant is {tenant!r}; it must be account:project, such as 12:34")
    return {"AccountID": account, "ProjectID": project or "0"}


def _labels(labels: LabelSettings | NodeLabelSettings) -> dict[str, str]:
    """The names of fields. A node's line has no job, attempt or rank, whatever its record says."""
    return {
        "job_id": labels.job_id_field if isinstance(labels, LabelSettings) else "",
        "filename": labels.filename_field,
        "attempt": labels.attempt_field if isinstance(labels, LabelSettings) else "",
        "node": labels.node_field,
        "rank": labels.rank_field if isinstance(labels, LabelSettings) else "",
    }


def _waits(store: StoreSettings) -> Waits:
    return Waits(store.settle_s, store.delay_s, store.poll_s)
