"""Asks the application in this process, and fills the tables that it reads."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import httpx
from fastapi import FastAPI
from sqlalchemy import Engine

from projections.records import DECISION, Record
from projections.store import Batch, Source, Store, prepare
from tests.history import History

TOPICS = ("recovery.journal", "recovery.decisions")


@dataclass(frozen=True)
class Api:
    """The interface, asked over ASGI."""

    app: FastAPI

    def ask(self, path: str, **query: Any) -> httpx.Response:
        """GET `path`; a list gives a repeated parameter."""

        async def get() -> httpx.Response:
            transport = httpx.ASGITransport(app=self.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
                return await client.get(path, params=query or None)

        return asyncio.run(get())

    def get(self, path: str, **query: Any) -> Any:
        """The JSON of an answer that must be 200."""
        answer = self.ask(path, **query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def refused(self, path: str, **query: Any) -> str:
        """The message of an answer that must be 400."""
        answer = self.ask(path, **query)
        assert answer.status_code == 400, answer.text
        body = answer.json()
        assert body.keys() == {"code", "message", "details"}
        assert body["code"] == 3
        return str(body["message"])


def fill(engine: Engine, histories: Iterable[History]) -> None:
    """Project histories as the runner would, from topics of one partition."""
    store = Store(engine)
    sources = [Source(topic, 0) for topic in TOPICS]
    places = store.offsets(dict.fromkeys(sources, 0))
    records: dict[Source, list[Record]] = {source: [] for source in sources}
    for history in histories:
        for recorded in history.records:
            record = Record("", 0, 0, recorded.timestamp_ms, recorded.producer, recorded.event)
            source = sources[1 if record.stage == DECISION else 0]
            offset = places[source] + len(records[source])
            records[source].append(
                Record(source.topic, 0, offset, recorded.timestamp_ms, recorded.producer, recorded.event)
            )
    store.apply(prepare([Batch(source, places[source], tuple(own)) for source, own in records.items() if own]))
