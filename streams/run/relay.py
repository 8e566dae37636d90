"""The relay: carries to the journal what is decided or intended in transactions, and fires due timers.

Nobody writes to the journal in a transaction (a dead writer's open one would hide every later fact), so what commits
elsewhere is read committed here and written again, at least once; deciders take repetition.
"""

from __future__ import annotations

from recovery.process import ProcessContext, run_process
from recovery.settings import Settings
from recovery.topics import check_topics
from schemas.codec import Codec
from schemas.registry import RegistryIds
from streams.instances import numbered_instance
from streams.membership import membership_watched
from streams.run.relay_loop import GROUP, Relay


def run(settings: Settings) -> int:
    """Run the relay until it is stopped; return the exit code."""
    return run_process("relay", settings, _body)


def _body(context: ProcessContext) -> None:
    bootstrap = context.settings.kafka.bootstrap
    check_topics(bootstrap)
    codec = Codec(RegistryIds(context.settings.registry.url))
    with numbered_instance(context.settings.data, "relay") as instance:
        relay = Relay(bootstrap, codec, instance, context.stop, context.health)
        with membership_watched(bootstrap, GROUP, context.health, relay.partitions, relay.busy):
            relay.run()
