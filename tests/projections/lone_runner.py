"""A runner in a process of its own, for tests that kill it: bootstrap, journal, decisions, database."""

from __future__ import annotations

import sys

from projections.store import engine_of
from recovery.process import Stop
from tests.projections.parts import Topics, runner_of

if __name__ == "__main__":
    topics, url = Topics(*sys.argv[1:4]), sys.argv[4]
    runner_of(topics, engine_of(url), Stop(), topics.journal).run((topics.journal, topics.decisions))
