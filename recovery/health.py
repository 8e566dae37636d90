"""How a process says that it lives and that it is ready, and the small HTTP server that others ask.

`/healthz`: should it be restarted? `/readyz`: does it do its work now? Both answer 200 or 503 with one plain line.
`/metrics`: Prometheus' text format.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from recovery.metrics import exposition
from recovery.settings import SettingsError


class Health:
    """What a process says about itself. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._not_ready: str | None = "starting"
        self._beat_at = time.monotonic()
        self._limit_s: float | None = None

    def ready(self) -> None:
        """Say that the process does its work."""
        with self._lock:
            self._not_ready = None

    def not_ready(self, reason: str) -> None:
        """Say in plain words why the process does not do its work now."""
        with self._lock:
            self._not_ready = reason

    def beat(self, limit_s: float) -> None:
        """Say that the main loop turns, and will say so again within `limit_s` seconds.

        A process that never beats counts as living as long as it answers.
        """
        with self._lock:
            self._beat_at, self._limit_s = time.monotonic(), limit_s

    def readiness(self) -> str | None:
        """Return why the process is not ready, or None when it is."""
        with self._lock:
            return self._not_ready

    def illness(self) -> str | None:
        """Return why the process should be restarted, or None when it is well."""
        with self._lock:
            age = time.monotonic() - self._beat_at
            if self._limit_s is None or age <= self._limit_s:
                return None
            return f"the main loop has not turned for {age:.0f} s; its limit is {self._limit_s:g} s"


class _Handler(BaseHTTPRequestHandler):
    server: "_Server"
    timeout = 5  # seconds for a client to send its request

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == "/metrics":
            self._send(HTTPStatus.OK, exposition(), "text/plain; version=0.0.4; charset=utf-8")
        elif path == "/healthz":
            self._verdict(self.server.health.illness(), "alive")
        elif path == "/readyz":
            self._verdict(self.server.health.readiness(), "ready")
        else:
            self._send(HTTPStatus.NOT_FOUND, b"not found; there are /healthz, /readyz and /metrics\n")

    def _verdict(self, reason: str | None, well: str) -> None:
        status = HTTPStatus.OK if reason is None else HTTPStatus.SERVICE_UNAVAILABLE
        self._send(status, f"{well if reason is None else reason}\n".encode())

    def _send(self, status: HTTPStatus, body: bytes, kind: str = "text/plain; charset=utf-8") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is http.server's
        """Say nothing: probes come every few seconds."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], health: Health) -> None:
        self.health = health
        super().__init__(address, _Handler)


@contextmanager
def serve_health(health: Health, host: str, port: int) -> Iterator[int]:
    """Serve in a thread of its own until the block ends; gives the port, which differs from `port` when that is 0.

    Raises SettingsError when it cannot listen there.
    """
    try:
        server = _Server((host, port), health)
    except OSError as error:
        raise SettingsError(
            f"cannot listen on metrics.host {host!r}, metrics.port {port}: {error.strerror}; "
            "choose another port, or 0 for a free one"
        ) from error
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, name="health", daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=5)
