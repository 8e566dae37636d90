"""A small attribution provider on a port of its own; each test says how it answers."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[dict[str, Any]], tuple[int, bytes]]
"""Given the question, the status and the body. It may take its time."""


@dataclass
class Asked:
    body: dict[str, Any]
    headers: dict[str, str]


@dataclass
class Provider:
    """What was asked, and how to answer from now on."""

    url: str
    answer: Answer
    asked: list[Asked] = field(default_factory=list)


def naming(node: str, confidence: Any = 0.8, **changes: Any) -> dict[str, Any]:
    """An attribution that we accept, but for the changes."""
    entry = {"fault_class": "nvlink", "scope": "node", "nodes": [node], "explanation": "A tray is bad."}
    return entry | {"confidence": confidence} | changes


def body(*entries: Any) -> bytes:
    return json.dumps({"attributions": list(entries)}).encode()


@contextmanager
def provider(answer: Answer) -> Iterator[Provider]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            one.asked.append(Asked(question, {name.lower(): value for name, value in self.headers.items()}))
            status, text = one.answer(question)
            try:
                self.send_response(status if self.path == "/v1/attribution" else 404)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True  # who asked has given up

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is http.server's
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

    with Server(("127.0.0.1", 0), Handler) as server:
        one = Provider(f"http://127.0.0.1:{server.server_address[1]}", answer)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield one
        finally:
            server.shutdown()
            thread.join(5)
