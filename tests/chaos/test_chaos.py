"""Twenty jobs that fail in known ways, on a real stack on which everything is killed, stopped and started again."""

from __future__ import annotations

import pytest

from tests.chaos.plan import OURS, PARTS
from tests.chaos.run import Run
from tests.chaos.world import world

pytestmark = [pytest.mark.stack, pytest.mark.slurm, pytest.mark.chaos, pytest.mark.timeout(900)]

SEED = 1
JOBS = 20


def test_every_attempt_ends_right_and_no_action_is_done_twice_whatever_is_killed() -> None:
    with world(print) as here:
        outcome = Run(here, SEED, JOBS, print).go()
    print(outcome.text())
    assert not outcome.violations, outcome.text()
    victims = {what.partition(":")[0] for what in outcome.disturbances}
    assert victims == {*OURS, *PARTS}, "the run was too short for all of the plan"
