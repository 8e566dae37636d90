"""A small Loki: the documented shapes of `push`'s store and of `query_range`, with its limits and its refusals.

No Loki can be had where these tests run, so this says what its documentation says: `start` is within a window and
`end` is not, `limit` lines at most and never over 5,000, oldest or newest first, streams by their labels, lines of one
moment in the order in which they came.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

MOST_LINES = 5_000
_MATCHER = re.compile(r'\s*(\w+)\s*(=~|=)\s*("(?:[^"\\]|\\.)*")\s*,?')


@dataclass
class FakeLoki:
    """A server on a port of its own. `token`: what a request must carry; `answer`: said instead of what is asked."""

    token: str = ""
    answer: bytes | None = None
    status: int = 200
    port: int = 0
    asked: int = 0
    _lines: list[tuple[int, dict[str, str], str]] = field(default_factory=list)
    _server: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Listen, after a stop on the same port; the lines are still there."""
        loki = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                status, body = loki.reply(self.path, self.headers.get("Authorization", ""))
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_arguments: object) -> None:
                """Say nothing."""

        ThreadingHTTPServer.allow_reuse_address = True
        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def push(self, lines: Iterable[tuple[int, dict[str, str], str]]) -> None:
        """Take lines: time in nanoseconds, labels, text."""
        self._lines.extend(lines)
        self._lines.sort(key=lambda line: line[0])

    def reply(self, path: str, authorization: str) -> tuple[int, bytes]:
        self.asked += 1
        if self.token and authorization != f"Bearer {self.token}":
            return 401, b"no org id"
        if self.answer is not None or self.status != 200:
            return self.status, self.answer or b""
        split = urlsplit(path)
        if split.path != "/loki/api/v1/query_range":
            return 404, b"404 page not found"
        asked = {name: values[0] for name, values in parse_qs(split.query).items()}
        if int(asked["limit"]) > MOST_LINES:
            return 400, b"max entries limit per query exceeded"
        matchers = _MATCHER.findall(asked["query"].strip()[1:-1])
        found = [
            line
            for line in self._lines
            if int(asked["start"]) <= line[0] < int(asked["end"]) and all(_matches(line[1], one) for one in matchers)
        ]
        if asked.get("direction", "backward") == "backward":
            found.reverse()
        return 200, _body(found[: int(asked["limit"])])


def _matches(labels: dict[str, str], matcher: tuple[str, str, str]) -> bool:
    name, operator, quoted = matcher
    value, wanted = labels.get(name, ""), json.loads(quoted)
    return value == wanted if operator == "=" else re.fullmatch(wanted, value) is not None


def _body(lines: list[tuple[int, dict[str, str], str]]) -> bytes:
    streams: dict[str, tuple[dict[str, str], list[list[str]]]] = {}
    for at_ns, labels, text in lines:
        streams.setdefault(json.dumps(labels), (labels, []))[1].append([str(at_ns), text])
    result = [{"stream": labels, "values": values} for labels, values in streams.values()]
    document = {"status": "success", "data": {"resultType": "streams", "result": result, "stats": {}}}
    return json.dumps(document).encode()
