"""A small Prometheus: it answers instant queries as the documented HTTP API does, from series told to it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs, urlparse

_LOOK_BACK = re.compile(r"last_over_time\(\(\n(?P<query>.*)\n\)\[(?P<ms>\d+)ms:(?P<step>\d+)ms\]\)")
Samples = list[tuple[int, float | None]]


def _value(samples: Samples, at_ms: int) -> float | None:
    return next((value for since_ms, value in reversed(samples) if since_ms <= at_ms), None)


def _last(samples: Samples, at_ms: int, back_ms: int, step_ms: int) -> float | None:
    """The last value at whole steps of time, as a subquery finds it."""
    moments = range(at_ms // step_ms * step_ms, at_ms - back_ms, -step_ms)
    return next((value for value in (_value(samples, moment) for moment in moments) if value is not None), None)


class FakePrometheus:
    """`samples` holds, for each query and series, (from when, value), in order of time; None: it is missing."""

    def __init__(self) -> None:
        self.samples: dict[str, dict[tuple[tuple[str, str], ...], Samples]] = {}
        self.asked: list[tuple[str, int]] = []
        self.broken: tuple[int, bytes] | None = None
        self.signed: str | None = None
        """What the last question was signed with."""
        self.url = ""

    def tell(self, query: str, at_ms: int, value: float | None, **labels: str) -> None:
        series = tuple(sorted(labels.items()))
        self.samples.setdefault(query, {}).setdefault(series, []).append((at_ms, value))

    def answer(self, query: str, at_ms: int) -> tuple[int, bytes]:
        self.asked.append((query, at_ms))
        if self.broken is not None:
            return self.broken
        back = _LOOK_BACK.fullmatch(query)
        result = []
        for series, samples in self.samples.get(query if back is None else back["query"], {}).items():
            value = (
                _value(samples, at_ms) if back is None else _last(samples, at_ms, int(back["ms"]), int(back["step"]))
            )
            if value is not None:
                result.append({"metric": dict(series), "value": [at_ms / 1000, str(value)]})
        body = {"status": "success", "data": {"resultType": "vector", "result": result}}
        return 200, json.dumps(body).encode()

    @contextmanager
    def serving(self) -> Iterator[FakePrometheus]:
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked = urlparse(self.path)
                fake.signed = self.headers.get("Authorization")
                assert asked.path == "/api/v1/query"
                parameters = parse_qs(asked.query)
                code, body = fake.answer(parameters["query"][0], round(float(parameters["time"][0]) * 1000))
                self.send_response(code)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as it is called
                """Say nothing."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            thread.join()
            server.server_close()
