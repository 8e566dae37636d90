"""Everything beside files that a collector may send lines to: a raw topic, a small Loki, a real VictoriaLogs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from infra.local.endpoints import Endpoints
from infra.local.stack import Stack
from tests.sources.benches import KafkaBench, LokiBench, VictoriaLogsBench
from tests.sources.victorialogs_server import binary

QUICK = {"SETTLE_S": "0.3", "DELAY_S": "2", "POLL_S": "0.1"}


@dataclass(frozen=True)
class Collectors:
    """`victorialogs` is None where there is no Go to build it with."""

    kafka: KafkaBench
    loki: LokiBench
    victorialogs: VictoriaLogsBench | None

    def environment(self, section: str, **more: str) -> dict[str, str]:
        """The settings with which `[section]` follows all of them, and looks often."""
        named = {"KAFKA__TOPIC": self.kafka.topic, "LOKI__SEARCH": '{cluster="local"}'} | more
        stores = {"LOKI": self.loki.server.url}
        if self.victorialogs is not None:
            stores["VICTORIALOGS"] = self.victorialogs.server.url
        for store, url in stores.items():
            named |= {f"{store}__{name}": value for name, value in (QUICK | {"URL": url}).items()}
        return {f"RECOVERY_{section}__{name}": value for name, value in named.items()}


@contextmanager
def collectors(endpoints: Endpoints, stack: Stack, folder: Path) -> Iterator[Collectors]:
    """All of them, with nothing in them yet."""
    program = binary()
    (folder / "victorialogs").mkdir()
    with ExitStack() as opened:
        kafka = opened.enter_context(closing(KafkaBench(endpoints, stack)))
        loki = opened.enter_context(closing(LokiBench()))
        victorialogs = None
        if program is not None:
            victorialogs = opened.enter_context(closing(VictoriaLogsBench(program, folder / "victorialogs")))
        yield Collectors(kafka, loki, victorialogs)
