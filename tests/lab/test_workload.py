"""Proves the jobs that come in the model, and what is counted of them."""

import numpy as np
import pytest

from roadstead.lab.tally import Tally
from roadstead.lab.workload import BATCH, SERVICE, Job, jobs_of

HOUR_S = 3600.0


def jobs(kind, rate=1.0, horizon_s=50 * HOUR_S, seed=1):
    return list(jobs_of(kind, rate, horizon_s, np.random.default_rng(seed)))


@pytest.mark.parametrize("kind", [BATCH, SERVICE])
def test_jobs_come_as_often_and_are_as_large_and_as_long_as_their_kind_says(kind):
    found = jobs(kind)

    assert len(found) == pytest.approx(50 * HOUR_S / kind.interarrival_s, rel=0.05)
    assert np.mean([job.tasks for job in found]) == pytest.approx(kind.tasks_mean, rel=0.08)
    assert np.mean([job.duration_s for job in found]) == pytest.approx(
        kind.duration_mean_s, rel=0.05
    )


def test_every_job_has_a_task_and_comes_before_the_horizon_in_order():
    found = jobs(SERVICE)
    times = [job.came_s for job in found]

    assert min(job.tasks for job in found) >= 1
    assert times == sorted(times)
    assert times[-1] < 50 * HOUR_S


def test_the_rate_multiplies_arrivals():
    assert len(jobs(BATCH, rate=4.0)) == pytest.approx(4 * len(jobs(BATCH)), rel=0.05)


def test_a_new_job_waits_with_all_its_tasks_since_it_came():
    job = Job(BATCH, 7.0, 3, 10.0)

    assert (job.left, job.queued_s, job.attempts) == (3, 7.0, 0)


def counted(*transactions):
    tally = Tally()
    for accepted, is_retry in transactions:
        tally.transaction(np.array(accepted), 2.0, is_retry=is_retry)
    return tally


def test_conflicts_are_counted_for_each_clean_transaction():
    tally = counted(([True, True], False), ([True, False], False), ([False], True))

    figures = tally.figures("batch", capacity_s=12.0, horizon_s=12.0)

    assert figures["batch_conflict_fraction"] == 2.0
    assert figures["batch_task_conflict_share"] == pytest.approx(2 / 5)
    assert figures["batch_busyness"] == 0.5
    assert figures["batch_wasted_share"] == pytest.approx(4 / 6)
    assert figures["batch_tasks_per_s"] == 0.25


def test_waits_and_retries_are_told_for_each_job():
    tally = counted(([True], False), ([True], True))
    for wait_s in (0.0, 10.0):
        tally.came(5)
        tally.waited(wait_s)
    tally.whole = 1

    figures = tally.figures("service", 1.0, 1.0)

    assert figures["service_jobs"] == 2.0
    assert figures["service_wait_s"] == 5.0
    assert figures["service_wait_p90_s"] == pytest.approx(9.0)
    assert figures["service_retries"] == 0.5
    assert figures["service_scheduled_share"] == 0.5


def test_where_nothing_happened_all_figures_are_zero():
    assert set(Tally().figures("batch", 0.0, 0.0).values()) == {0.0}
