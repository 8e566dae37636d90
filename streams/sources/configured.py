"""The log sources beside files that the settings name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from recovery.settings import HttpSourceSettings, KafkaSourceSettings, Settings, SettingsError
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
    """Return the sources that are on, not yet connected. Raises SettingsError."""
    return tuple(_sources(settings))


def _sources(settings: Settings) -> Iterator[Configured]:
    watch, own = settings.watch, settings.slurm.cluster
    if watch.kafka.topic:
        kafka = watch.kafka
        fields = Fields(message=kafka.message_field, timestamp=kafka.timestamp_field, **_labels(kafka))
        topic = KafkaTopic(kafka.bootstrap or settings.kafka.bootstrap, kafka.topic, fields)
        yield Configured(topic, kafka.cluster or own, int(kafka.delay_s * 1000))
    if watch.victorialogs.url is not None:
        store = watch.victorialogs
        made = VictoriaLogs(
            store.name,
            _address(store.url or "", store, _victorialogs_tenant(store.tenant)),
            store.search,
            VictoriaLogsFields(**_labels(store)),
            _waits(store),
        )
        yield Configured(made, store.cluster or own, int(store.delay_s * 1000))
    if watch.loki.url is not None:
        loki = watch.loki
        tenant = {"X-Scope-OrgID": loki.tenant} if loki.tenant else {}
        address = _address(loki.url or "", loki, tenant)
        try:
            source = Loki(loki.name, address, loki.search, LokiFields(**_labels(loki)), _waits(loki))
        except ValueError as error:
            raise SettingsError(f"watch.loki.search: {error}") from error
        yield Configured(source, loki.cluster or own, int(loki.delay_s * 1000))


def _address(url: str, store: HttpSourceSettings, headers: dict[str, str]) -> Address:
    return Address(url, store.token_file, headers)


def _victorialogs_tenant(tenant: str) -> dict[str, str]:
    """VictoriaLogs names a tenant by two numbers, `account:project`. Raises SettingsError."""
    if not tenant:
        return {}
    account, colon, project = tenant.partition(":")
    if not (account.isdigit() and (project.isdigit() or not colon)):
        raise SettingsError(f"watch.victorialogs.tenant is {tenant!r}; it must be account:project, such as 12:34")
    return {"AccountID": account, "ProjectID": project or "0"}


def _labels(store: HttpSourceSettings | KafkaSourceSettings) -> dict[str, str]:
    return {
        "job_id": store.job_id_field,
        "filename": store.filename_field,
        "attempt": store.attempt_field,
        "node": store.node_field,
        "rank": store.rank_field,
    }


def _waits(store: HttpSourceSettings) -> Waits:
    return Waits(store.settle_s, store.delay_s, store.poll_s)
