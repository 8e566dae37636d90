"""What `recovery status` makes of the metrics of several processes."""

from __future__ import annotations

import math

from recovery.figures import Figures, Lag, Milestone, figures, together

DECIDER = """
# TYPE recovery_facts_decided_total counter
recovery_facts_decided_total 120
# TYPE recovery_parked_total counter
recovery_parked_total{topic="recovery.journal"} 2
# TYPE recovery_lag_records gauge
recovery_lag_records{group="recovery-decide",topic="recovery.journal"} 7
"""
PROJECTOR = """
# TYPE recovery_since_line_seconds histogram
recovery_since_line_seconds_bucket{le="0.1",milestone="anomaly"} 6
recovery_since_line_seconds_bucket{le="0.25",milestone="anomaly"} 9
recovery_since_line_seconds_bucket{le="+Inf",milestone="anomaly"} 10
recovery_since_line_seconds_bucket{le="+Inf",milestone="convergence"} 0
"""


def test_the_figures_of_processes_add_up() -> None:
    found = together([figures(DECIDER), figures(DECIDER), figures(PROJECTOR)])
    assert (found.decided, found.parked, found.intents) == (240, 4, None)
    assert found.lag == (Lag("recovery.journal", "recovery-decide", 7),) * 2
    assert found.milestone("anomaly") == Milestone(10, 0.1, math.inf)


def test_two_projectors_are_one_distribution() -> None:
    found = together([figures(PROJECTOR), figures(PROJECTOR)])
    assert found.milestone("anomaly") == Milestone(20, 0.1, math.inf)


def test_a_milestone_that_never_came_is_none_not_nothing() -> None:
    assert figures(PROJECTOR).milestone("convergence") is None
    assert figures(PROJECTOR).milestone("advice") is None


def test_open_intents_are_unknown_until_a_controller_says_how_many() -> None:
    assert together([Figures(), Figures()]).intents is None
    text = "# TYPE recovery_sac_intents_open gauge\nrecovery_sac_intents_open 0\n"
    assert together([figures(text), Figures()]).intents == 0


def test_what_is_hidden_is_told_once_by_however_many_that_look() -> None:
    text = """
# TYPE recovery_hidden_records gauge
recovery_hidden_records{topic="recovery.jobs"} 0
recovery_hidden_records{topic="recovery.decisions"} 12
"""
    assert together([figures(text), figures(text), Figures()]).hidden == {"recovery.decisions": 12}
