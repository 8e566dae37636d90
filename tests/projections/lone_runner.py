"""A runner in a process of its own, for tests that kill it: bootstrap, journal, decisions, database.

Each has a group of its own, as Kafka would keep the partitions for a killed one until its session ends.
"""

from __future__ import annotations

import sys
from uuid import uuid4

from projections.store import engine_of
from recovery.process import Stop
from tests.projections.parts import Topics, runner_of

if __name__ == "__main__":
    topics, url = Topics(*sys.argv[1:4]), sys.argv[4]
    runner_of(topics, engine_of(url), Stop(), uuid4().hex).run((topics.journal, topics.decisions))
