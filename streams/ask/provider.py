"""Asks an attribution provider over HTTP, within a deadline, and turns whatever happens into an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx

from schemas.decisions import RequestMade
from streams.ask.attribution import NOTHING, Attribution, MalformedAnswer, question, read_answer

MOST_BYTES = 1_000_000
PATH = "/v1/attribution"


@dataclass(frozen=True)
class Answer:
    """What came of asking. With an error nothing is attributed."""

    provider: str
    attribution: Attribution
    error: str | None = None


class Nobody:
    """Stands where no provider is configured."""

    async def ask(self, request: RequestMade, trace: Mapping[str, str]) -> Answer:  # noqa: ARG002
        return Answer("none", NOTHING, "no provider is configured: set ask.attribution_url")

    async def close(self) -> None:
        """There is nothing to close."""


class HttpProvider:
    """One provider. Any number of questions at once; `ask` never raises for what the provider does."""

    def __init__(self, url: str, timeout_s: float) -> None:
        self._url = url.rstrip("/") + PATH
        self._timeout_s = timeout_s
        self._name = urlsplit(url).netloc.rpartition("@")[2]
        # one deadline for the whole exchange, below; httpx's own are for each step of it
        self._client = httpx.AsyncClient(timeout=None, limits=httpx.Limits(max_connections=None))

    async def ask(self, request: RequestMade, trace: Mapping[str, str]) -> Answer:
        """Return the answer to `request`; `trace` holds W3C trace headers."""
        allowed_s = min(request.deadline_ms / 1000, self._timeout_s)
        try:
            async with asyncio.timeout(allowed_s):
                return Answer(self._name, await self._exchange(request, trace))
        except TimeoutError:
            error = f"timeout: no answer within {allowed_s:g} s"
        except MalformedAnswer as problem:
            error = f"malformed answer: {problem}"
        except _Refused as problem:
            error = f"refused: {problem}"
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as problem:
            error = f"out of reach: {type(problem).__name__}: {problem}"
        return Answer(self._name, NOTHING, error[:1000])

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def _exchange(self, request: RequestMade, trace: Mapping[str, str]) -> Attribution:
        async with self._client.stream("POST", self._url, json=question(request), headers=dict(trace)) as response:
            body = bytearray()
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > MOST_BYTES:
                    raise MalformedAnswer(f"longer than {MOST_BYTES} bytes")
        if response.status_code != 200:
            raise _Refused(f"{response.status_code} {bytes(body[:200]).decode('utf-8', 'replace')}")
        return read_answer(bytes(body), request)


class _Refused(Exception):
    """The provider answered with another status than 200."""
