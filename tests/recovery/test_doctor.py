"""`recovery doctor logs` on the real stack: what it says of a job, and with which exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from infra.local.endpoints import Endpoints
from tests.watch.test_process import STEP, Bench

pytestmark = pytest.mark.stack


@pytest.fixture
def bench(stack: Endpoints, tmp_path: Path) -> Iterator[Bench]:
    with closing(Bench(stack, tmp_path)) as bench:
        yield bench


def doctor(bench: Bench, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {
        "RECOVERY_DATA": str(bench.data),
        "RECOVERY_KAFKA__BOOTSTRAP": bench.endpoints.kafka,
        "RECOVERY_REGISTRY__URL": bench.endpoints.registry,
    }
    command = [sys.executable, "-m", "recovery", "doctor", "logs", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_it_says_what_is_wrong_and_exits_with_1_until_it_is_mended(bench: Bench) -> None:
    unknown = doctor(bench, "--job", "999999999")
    assert unknown.returncode == 2
    assert "no job 999999999 is known" in unknown.stderr
    bench.publish(bench.view())
    broken = doctor(bench, "--job", bench.job_id)
    assert broken.returncode == 1
    assert str(bench.path) in broken.stdout
    assert "do: mount" in broken.stdout
    bench.append(STEP.format(n=7))
    well = doctor(bench, "--job", bench.job_id, "--json")
    assert well.returncode == 0, well.stdout + well.stderr
    document = json.loads(well.stdout)
    assert (document["job"], document["attempt"], document["blind"]) == (bench.job_id, 0, [])
    assert any("step 7" in check["found"] for check in document["checks"])
    missing = doctor(bench, "--job", bench.job_id, "--attempt", "5")
    assert missing.returncode == 2
    assert "no attempt 5" in missing.stderr
