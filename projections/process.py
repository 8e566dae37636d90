"""The process `recovery project`."""

from __future__ import annotations

import structlog
from sqlalchemy.exc import OperationalError

from projections import migrate
from projections.reading import consumer
from projections.runner import FIRST_BACK_OFF_S, GROUP, LAST_BACK_OFF_S, Runner, switch_often
from projections.store import Store, engine_of
from recovery.garbage import collect_rarely
from recovery.hidden import hidden_watched
from recovery.process import ProcessContext, Stop, run_process
from recovery.settings import Settings
from recovery.topics import check_topics
from schemas.codec import Codec
from schemas.registry import RegistryIds
from schemas.topics import CATALOGUE, DECISION_LOG, JOURNAL

TOPICS = (JOURNAL, DECISION_LOG)

log = structlog.get_logger(__name__)


def run(settings: Settings) -> int:
    """Keep the tables in step until told to stop; returns the exit code."""
    return run_process("project", settings, _body)


def _body(context: ProcessContext) -> None:
    settings = context.settings
    if not _migrated(settings.postgres.url, context.stop):
        return
    check_topics(settings.kafka.bootstrap, TOPICS)
    codec = Codec(RegistryIds(settings.registry.url))
    engine = engine_of(settings.postgres.url)
    switch_often()
    collect_rarely()
    try:
        runner = Runner(consumer(settings.kafka.bootstrap, GROUP), codec, Store(engine), context.stop, context.health)
        with hidden_watched(settings.kafka.bootstrap, CATALOGUE):
            runner.run(topic.name for topic in TOPICS)
    finally:
        engine.dispose()


def _migrated(url: str, stop: Stop) -> bool:
    """Bring the tables to this version, waiting for PostgreSQL; false when the process should stop instead."""
    pause = FIRST_BACK_OFF_S
    while True:
        try:
            migrate.upgrade(url)
        except OperationalError as error:
            log.warning("PostgreSQL does not answer", error=str(error.orig), next=f"again in {pause:g} s")
            if stop.wait(pause):
                return False
            pause = min(pause * 2, LAST_BACK_OFF_S)
        else:
            return True
