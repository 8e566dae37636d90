"""The process `recovery gateway`."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

import uvicorn

from gateway.app import create_app
from gateway.database import engine_of
from recovery.process import ProcessContext, run_process
from recovery.settings import Settings, SettingsError

GRACE_S = 5
"""How long a request may still take once the process should stop."""


def run(settings: Settings) -> int:
    """Serve until told to stop; returns the exit code."""
    return run_process("gateway", settings, _body)


class _Server(uvicorn.Server):
    """Signals are the harness's business."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _body(context: ProcessContext) -> None:
    engine = engine_of(context.settings.postgres.url)
    config = uvicorn.Config(
        create_app(engine), log_config=None, access_log=False, timeout_graceful_shutdown=GRACE_S, lifespan="off"
    )
    server = _Server(config)

    def stop() -> None:
        server.should_exit = True

    with _listener(context.settings.gateway.host, context.settings.gateway.port) as listener:
        host, port = listener.getsockname()[:2]
        context.announce("http", f"http://{_in_url(host)}:{port}")
        context.health.ready()
        context.stop.on_request(stop)
        server.run(sockets=[listener])
    engine.dispose()


def _listener(host: str, port: int) -> socket.socket:
    """A listening socket of our own, so that its port is known also where it was 0. Raises SettingsError."""
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise SettingsError(
            f"cannot listen on gateway.host {host!r}, gateway.port {port}: {error.strerror}; choose another port, or 0"
        ) from error


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host
