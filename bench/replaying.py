"""Replay: deciding history again, beside the same decoding and encoding around an empty decide."""

from __future__ import annotations

import gc

from bench.harness import Figure, Run, cpu, in_turns, paired, peak_mb, timed, wall
from bench.history import MixHistory, mix_history
from bench.stories import POLICIES
from schemas.codec import PREFIX
from streams.replay.verify import verify

SETS = 20
ROUNDS = 25
"""Many short turns: the machine's speed changes within seconds."""


def figures() -> list[Figure]:
    history = mix_history(SETS)
    facts = sum(map(len, history.facts_at))
    decoded = [[history.codec.decode(one.value or b"", one.headers) for one in part] for part in history.decisions_at]
    gc.freeze()  # the history itself is not what is measured

    def replayed() -> Run:
        def work() -> None:
            report = verify(history, history.codec, POLICIES)
            if report.difference is not None or report.facts != facts:
                raise RuntimeError(f"the mix does not verify: {report}")

        return timed(work)

    ours, empty = in_turns(ROUNDS, replayed, lambda: timed(lambda: _empty(history, decoded)))
    rate, base, ratio = facts / cpu(ours), facts / cpu(empty), paired(empty, ours)
    return [
        Figure(
            "replay verify",
            rate,
            "facts/s of one core",
            "the same decoding and encoding around an empty decide",
            ratio,
            f"{facts} facts, {facts / wall(ours):,.0f} facts/s on the clock; empty {base:,.0f}; peak {peak_mb():.0f} MB"
            " with the history in memory",
            ">= 8,000 and ratio >= 0.5",
            rate >= 8_000 and ratio >= 0.5,
        )
    ]


def _empty(history: MixHistory, decoded: list[list[object]]) -> None:
    """Read every fact; encode every decision and compare it. What is decided is known beforehand."""
    codec = history.codec
    for partition in range(history.partitions()):
        for record in history.journal(partition):
            codec.decode(record.value or b"", record.headers)
        for stored, event in zip(history.decisions(partition), decoded[partition], strict=True):
            if (stored.value or b"")[PREFIX.size :] != codec.payload(event):
                raise RuntimeError("the decision differs")
