"""The process that asks. With no provider configured it still answers, that nobody was asked, so no wait runs out."""

from __future__ import annotations

import asyncio
from typing import Any

import faust
from confluent_kafka import TopicPartition

from recovery.process import ProcessContext, run_process
from recovery.settings import AskSettings, Settings
from recovery.topics import check_topics
from schemas.codec import Codec
from schemas.registry import RegistryIds
from schemas.topics import REQUESTS
from streams.ask.agent import GROUP, MOST_AT_ONCE, Attributions, attach, make_app
from streams.ask.provider import HttpProvider, Nobody
from streams.ask.window import Window
from streams.instances import numbered_instance
from streams.membership import membership_watched
from streams.records import Outgoing

STOP_TIMEOUT_S = 10.0


def run(settings: Settings) -> int:
    """Run the asker until it is stopped; return the exit code."""
    return run_process("ask", settings, _body)


def _body(context: ProcessContext) -> None:
    check_topics(context.settings.kafka.bootstrap)
    codec = Codec(RegistryIds(context.settings.registry.url))
    with numbered_instance(context.settings.data, "ask") as instance:
        asyncio.run(_ask(context, codec, instance))


async def _ask(context: ProcessContext, codec: Codec, instance: str) -> None:
    bootstrap = context.settings.kafka.bootstrap
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def wake() -> None:
        loop.call_soon_threadsafe(stop.set)

    context.stop.on_request(wake)
    provider = _provider(context.settings.ask)
    window: Window[Outgoing | None] = Window(MOST_AT_ONCE)
    app = make_app(bootstrap, context.settings.data, instance)
    attach(app, Attributions(codec, provider), window)
    await app.start()
    try:
        with membership_watched(bootstrap, GROUP, context.health, lambda: _assigned(app)):
            await _until_stopped(app, window, stop)
    finally:
        await window.close()
        await asyncio.wait_for(app.stop(), STOP_TIMEOUT_S)
        await provider.close()


async def _until_stopped(app: faust.App, window: Window[Outgoing | None], stop: asyncio.Event) -> None:
    """Return when the process should stop. Raises what an event could not be handled for, and a crash of the app."""
    stopping: asyncio.Future[Any] = asyncio.ensure_future(stop.wait())
    crashed: asyncio.Future[Any] = asyncio.ensure_future(app.wait_until_stopped())
    done, _ = await asyncio.wait([stopping, crashed, window.failed], return_when=asyncio.FIRST_COMPLETED)
    for other in (stopping, crashed):
        other.cancel()
    if window.failed in done:
        await window.failed
    if stopping not in done:
        raise RuntimeError("the stream ended by itself") from app.crash_reason


def _provider(settings: AskSettings) -> HttpProvider | Nobody:
    if settings.attribution_url is None:
        return Nobody()
    return HttpProvider(settings.attribution_url, settings.timeout_s)


def _assigned(app: faust.App) -> list[TopicPartition]:
    return [
        TopicPartition(place.topic, place.partition)
        for place in app.consumer.assignment()
        if place.topic == REQUESTS.name
    ]
