"""Replay: deciding history again, beside the same decoding, encoding and comparing around an empty decide."""

from __future__ import annotations

import gc
from typing import Any

from bench.harness import Figure, Run, cpu, in_turns, paired, peak_mb, timed, wall
from bench.history import MixHistory, mix_history
from bench.stories import POLICIES
from streams.decide.decide import conclude, park
from streams.replay.verify import Outcome, Report, Rules, verify, verify_by

SETS = 20
ROUNDS = 25
"""Many short turns: the machine's speed changes within seconds."""


def figures() -> list[Figure]:
    history = mix_history(SETS)
    facts = sum(map(len, history.facts_at))
    known = _known(history)
    gc.freeze()  # the history itself is not what is measured

    def turn(report: Report) -> None:
        if report.difference is not None or report.facts != facts:
            raise RuntimeError(f"the mix does not verify: {report}")

    def ours() -> Run:
        return timed(lambda: turn(verify(history, history.codec, POLICIES)))

    def empty() -> Run:
        outcomes = iter(known)
        rules = Rules(lambda *_: next(outcomes), park, gapless=True)
        return timed(lambda: turn(verify_by(rules, history, history.codec)))

    own, base = in_turns(ROUNDS, ours, empty)
    rate, of_base, ratio = facts / cpu(own), facts / cpu(base), paired(base, own)
    return [
        Figure(
            "replay verify",
            rate,
            "facts/s of one core",
            "the same decoding, encoding and comparing around an empty decide",
            ratio,
            f"{facts} facts, {facts / wall(own):,.0f} facts/s on the clock; empty {of_base:,.0f};"
            f" peak {peak_mb():.0f} MB with the history in memory",
            ">= 8,000 and ratio >= 0.5",
            rate >= 8_000 and ratio >= 0.5,
        )
    ]


def _known(history: MixHistory) -> list[Outcome]:
    """What each fact leads to, in the order in which verify decides them."""
    known: list[Outcome] = []

    def decide(state: Any, fact: Any, recorded_ms: int) -> Outcome:
        known.append(conclude(state, fact, recorded_ms, POLICIES))
        return known[-1]

    verify_by(Rules(decide, park, gapless=True), history, history.codec)
    return known
