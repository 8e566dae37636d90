"""A seed is a whole run: what it draws is the same each time, and leaves nothing out."""

from itertools import islice

from hypothesis import given
from hypothesis.strategies import integers

from tests.chaos.jobs import KINDS
from tests.chaos.plan import OURS, PARTS, SAVE_EVERY, Deed, disturbances, jobs

SEEDS = integers(0, 10**6)


@given(SEEDS)
def test_the_same_seed_draws_the_same_jobs_victims_and_moments(seed: int) -> None:
    assert jobs(seed, 25) == jobs(seed, 25)
    assert list(islice(disturbances(seed), 60)) == list(islice(disturbances(seed), 60))


def test_another_seed_draws_another_run() -> None:
    assert jobs(1, 20) != jobs(2, 20)
    assert list(islice(disturbances(1), 20)) != list(islice(disturbances(2), 20))


@given(SEEDS)
def test_a_longer_run_of_a_seed_begins_as_the_shorter_one(seed: int) -> None:
    assert jobs(seed, 30)[:12] == jobs(seed, 12)


@given(SEEDS)
def test_every_kind_of_job_and_every_disturbance_comes_before_one_comes_again(seed: int) -> None:
    assert {job.kind for job in jobs(seed, len(KINDS))} == set(KINDS)
    everything = {(name, deed) for name in OURS for deed in (Deed.KILL, Deed.STOP)}
    everything |= {(name, Deed.RESTART) for name in PARTS}
    assert {(one.victim, one.deed) for one in islice(disturbances(seed), len(everything))} == everything


def test_no_job_can_exclude_all_nodes_of_the_cluster() -> None:
    assert max(kind.restarts for kind in KINDS if kind.excludes) <= 2


@given(SEEDS)
def test_a_job_stops_for_want_of_progress_only_where_it_is_told_to(seed: int) -> None:
    for job in jobs(seed, len(KINDS)):
        assert (job.fault_iteration < SAVE_EVERY) is job.kind.early
