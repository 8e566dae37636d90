"""A real VictoriaLogs, built once from its Go module and kept in the cache."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import httpx

MODULE = "github.com/VictoriaMetrics/VictoriaLogs/app/victoria-logs@latest"
BUILD_S, START_S = 600, 30


def binary() -> Path | None:
    """The program, built where Go is present; None where it is not there and can't be built."""
    folder = Path(os.environ.get("XDG_CACHE_HOME", "") or Path.home() / ".cache") / "recovery" / "bin"
    program = folder / "victoria-logs"
    if program.is_file():
        return program
    go = shutil.which("go")
    if go is None:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as own:  # two builds at once must not meet
        subprocess.run([go, "install", MODULE], env=os.environ | {"GOBIN": own}, check=True, timeout=BUILD_S)
        (Path(own) / program.name).rename(program)
    return program


class Server:
    """One server with a folder and a port of its own."""

    def __init__(self, program: Path, folder: Path) -> None:
        self._program = program
        self._folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    str(self._program),
                    f"-storageDataPath={self._folder / 'data'}",
                    f"-httpListenAddr=127.0.0.1:{self.port}",
                    "-retentionPeriod=100y",
                    "-memory.allowedBytes=200MB",
                ],
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + START_S
        while not self._is_up():
            assert self._process.poll() is None, (self._folder / "log").read_text()
            assert time.monotonic() < deadline, f"VictoriaLogs did not answer within {START_S} s"
            time.sleep(0.02)

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(START_S)
            self._process = None

    def push(self, lines: bytes) -> None:
        """Take records, one JSON object a line, and wait until they can be found."""
        answer = httpx.post(
            f"{self.url}/insert/jsonline?_stream_fields=job_id,filename,node",
            content=lines,
            headers={"Content-Type": "application/stream+json"},
            trust_env=False,
        )
        answer.raise_for_status()
        httpx.get(f"{self.url}/internal/force_flush", trust_env=False).raise_for_status()

    def _is_up(self) -> bool:
        try:
            return httpx.get(f"{self.url}/health", trust_env=False).status_code == httpx.codes.OK
        except httpx.TransportError:
            return False
