"""Asks a log store over HTTP: every failure is said as what the store's state is, and no answer is read without end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from streams.sources.lines import SourceProblem, SourceState

CONNECT_S, READ_S = 3.0, 15.0
_SAID_BYTES = 500


@dataclass(frozen=True)
class Address:
    """Where a store is. `url` may carry a user and a password; the token is read anew for each request."""

    url: str
    token_file: Path | None = None
    headers: Mapping[str, str] | None = None

    @property
    def shown(self) -> str:
        """The address without user and password."""
        return str(httpx.URL(self.url).copy_with(username=None, password=None))


class Asking:
    """A client of one store. Safe to use from several threads."""

    def __init__(self, address: Address) -> None:
        self.address = address
        # the environment's proxies are for the way out; a log store is inside
        self._client = httpx.Client(
            base_url=address.url.rstrip("/"),
            timeout=httpx.Timeout(READ_S, connect=CONNECT_S),
            headers=dict(address.headers or {}),
            trust_env=False,
        )

    def close(self) -> None:
        self._client.close()

    @contextmanager
    def answer(self, path: str, parameters: Mapping[str, str], *, post: bool = False) -> Iterator[Iterator[bytes]]:
        """The pieces of the answer to one request. Raises SourceProblem, also while they are read."""
        shown = f"{self.address.shown.rstrip('/')}{path}"
        try:
            method, body, query = ("POST", parameters, None) if post else ("GET", None, parameters)
            with self._client.stream(method, path, data=body, params=query, headers=self._token()) as response:
                if response.status_code != httpx.codes.OK:
                    raise _refused(shown, response.status_code, _said(response))
                yield response.iter_bytes()
        except httpx.HTTPError as error:
            words = str(error) or type(error).__name__
            raise SourceProblem(SourceState.DOWN, f"{shown} does not answer: {words}") from error

    def _token(self) -> dict[str, str]:
        file = self.address.token_file
        if file is None:
            return {}
        try:
            return {"Authorization": f"Bearer {file.read_text().strip()}"}
        except (OSError, UnicodeDecodeError) as error:
            raise SourceProblem(SourceState.DENIED, f"the token in {file} can't be read: {error}") from error


def _refused(shown: str, status: int, said: str) -> SourceProblem:
    if status in (401, 403, 407):
        return SourceProblem(SourceState.DENIED, f"{shown} refuses us with {status}: {said}")
    if status == 429 or status >= 500:
        return SourceProblem(SourceState.DOWN, f"{shown} answers {status}: {said}")
    return SourceProblem(SourceState.BROKEN, f"{shown} does not take our question, {status}: {said}")


def _said(response: httpx.Response) -> str:
    said = b""
    for piece in response.iter_bytes():
        said += piece
        if len(said) >= _SAID_BYTES:
            break
    return " ".join(said[:_SAID_BYTES].decode("utf-8", "replace").split())
