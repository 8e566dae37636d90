"""The gateway as a process of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from recovery.run_files import read_run_files
from tests.projections.parts import wait_until

pytestmark = pytest.mark.stack


def test_it_serves_on_the_port_that_it_announces_and_ends_at_sigterm(url: str, tmp_path: Path) -> None:
    settings = {"RECOVERY_DATA": str(tmp_path), "RECOVERY_POSTGRES__URL": url, "RECOVERY_GATEWAY__PORT": "0"}
    command = [sys.executable, "-m", "recovery", "gateway"]
    with subprocess.Popen(command, env=os.environ | settings) as process:
        try:
            wait_until(lambda: any("http" in file.addresses for file in read_run_files(tmp_path)), "its address")
            [run_file] = read_run_files(tmp_path)
            address = run_file.addresses["http"]
            assert httpx.get(f"{address}/v1/jobs/42-0", timeout=10).json()["job"]["jobId"] == "42"
            assert httpx.get(f"{address}/healthz", timeout=10).status_code == 200
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 0
        finally:
            process.kill()
    assert read_run_files(tmp_path) == []


def test_a_port_in_use_is_a_setting_to_correct(url: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        settings = {"RECOVERY_DATA": str(tmp_path), "RECOVERY_POSTGRES__URL": url, "RECOVERY_GATEWAY__PORT": port}
        command = [sys.executable, "-m", "recovery", "gateway"]
        done = subprocess.run(
            command, env=os.environ | settings, capture_output=True, text=True, timeout=60, check=False
        )
    assert done.returncode == 2
    assert f"gateway.port {port}" in done.stderr
