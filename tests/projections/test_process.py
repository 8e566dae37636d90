"""The projector as a process of its own, on the real topics and the real registry."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import urlopen

import pytest
from sqlalchemy import Engine, select

from infra.local.endpoints import Endpoints
from projections.store import engine_of
from projections.tables import OFFSETS
from recovery.run_files import read_run_files
from recovery.topics import create_topics
from schemas.topics import DECISION_LOG, JOURNAL
from tests.projections.parts import database, wait_until

pytestmark = pytest.mark.stack


def test_it_migrates_reads_all_partitions_says_so_and_ends_at_sigterm(stack: Endpoints, tmp_path: Path) -> None:
    create_topics(stack.kafka)
    with database(stack.postgres) as url:
        engine = engine_of(url)
        with start(stack, url, tmp_path) as process:
            try:
                wait_until(lambda: ready(tmp_path), "its readiness")
                wait_until(lambda: looked(engine) == JOURNAL.partitions + DECISION_LOG.partitions, "a look at each")
                process.send_signal(signal.SIGTERM)
                assert process.wait(20) == 0
            finally:
                process.kill()
                engine.dispose()


def start(stack: Endpoints, url: str, data: Path) -> subprocess.Popen[bytes]:
    settings = {
        "RECOVERY_DATA": str(data),
        "RECOVERY_KAFKA__BOOTSTRAP": stack.kafka,
        "RECOVERY_REGISTRY__URL": stack.registry,
        "RECOVERY_POSTGRES__URL": url,
    }
    return subprocess.Popen([sys.executable, "-m", "recovery", "project"], env=os.environ | settings)


def ready(data: Path) -> bool:
    for file in read_run_files(data):
        try:
            with urlopen(f"{file.url}/readyz", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False
    return False


def looked(engine: Engine) -> int:
    """Partitions that the runner looked at within the last ten seconds."""
    with engine.connect() as connection:
        times = connection.execute(select(OFFSETS.c.looked_ms)).scalars().all()
    return sum(1 for at in times if at is not None and at > (time.time() - 10) * 1000)
