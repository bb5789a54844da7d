"""Proves the arrival of jobs in the model, and their statistics."""

import numpy as np
import pytest

from roadstead.lab.cell_types import CELLS, EXAMPLE, TRACE
from roadstead.lab.tally import Tally
from roadstead.lab.workload import Constant, JobType, LabJob, LogNormal, jobs_of

HOUR_S = 3600.0
BATCH, SERVICE = EXAMPLE.batch, EXAMPLE.service


def jobs(kind, rate=1.0, horizon_s=50 * HOUR_S, seed=1):
    return list(jobs_of(kind, rate, horizon_s, np.random.default_rng(seed)))


@pytest.mark.parametrize("kind", [BATCH, SERVICE])
def test_jobs_have_the_rate_size_and_duration_of_their_kind(kind):
    found = jobs(kind)

    assert len(found) == pytest.approx(50 * HOUR_S / kind.interarrival_s, rel=0.05)
    assert np.mean([job.tasks for job in found]) == pytest.approx(kind.tasks.mean, rel=0.08)
    assert np.mean([job.duration_s for job in found]) == pytest.approx(
        kind.duration_s.mean, rel=0.05
    )


def test_every_job_has_a_task_and_arrives_before_the_horizon_in_order():
    found = jobs(SERVICE)
    times = [job.arrived_s for job in found]

    assert min(job.tasks for job in found) >= 1
    assert times == sorted(times)
    assert times[-1] < 50 * HOUR_S


def test_the_rate_multiplies_arrivals():
    assert len(jobs(BATCH, rate=4.0)) == pytest.approx(4 * len(jobs(BATCH)), rel=0.05)


def test_a_new_job_waits_with_all_its_tasks_since_its_arrival():
    job = LabJob(BATCH, 7.0, 3, 10.0, np.array([1000, 2048]))

    assert (job.left, job.queued_s, job.attempts) == (3, 7.0, 0)


def test_all_tasks_of_the_public_example_are_equal():
    assert {tuple(job.request.tolist()) for job in jobs(BATCH)} == {(1000, 2048)}


def test_a_request_has_at_least_one_of_each_resource():
    tiny = JobType("tiny", 1.0, Constant(1.0), Constant(1.0), Constant(0.2), Constant(0.0))

    assert tiny.request(np.random.default_rng(0)).tolist() == [1, 1]


def test_a_log_normal_draw_has_its_median_deviation_and_maximum():
    random, draw = np.random.default_rng(1), LogNormal(10.0, 1.5, 400.0)

    drawn = np.array([draw.sample(random) for _ in range(20_000)])

    assert drawn.max() <= 400.0
    assert np.median(drawn) == pytest.approx(10.0, rel=0.05)
    assert np.percentile(drawn, 90) == pytest.approx(10.0 * np.exp(1.2816 * 1.5), rel=0.1)


def test_a_log_normal_draw_that_is_mostly_rejected_is_an_error():
    with pytest.raises(AssertionError, match="drawn again"):
        LogNormal(10.0, 1.0, 5.0)


def test_jobs_of_the_trace_have_the_published_sizes_and_are_mostly_small():
    found = jobs(TRACE.batch, horizon_s=100 * HOUR_S) + jobs(TRACE.service, horizon_s=100 * HOUR_S)
    tasks = np.array([job.tasks for job in found])

    assert len(found) == pytest.approx(672_003 * 100 * HOUR_S / (29 * 24 * HOUR_S), rel=0.03)
    assert np.median(tasks) <= 2
    assert tasks.mean() == pytest.approx(37.9, rel=0.2)


@pytest.mark.parametrize("name", CELLS)
def test_a_cell_of_any_size_has_its_shapes_in_proportion(name):
    shapes = CELLS[name].shapes
    whole = sum(number for number, _, _ in shapes)

    capacity = CELLS[name].capacity(2 * int(whole))

    for number, cpu_milli, memory_mib in shapes:
        alike = (capacity == (cpu_milli, memory_mib)).all(axis=1)
        assert alike.sum() == 2 * number


def counted(*transactions):
    tally = Tally()
    for accepted, is_retry in transactions:
        tally.transaction(np.array(accepted), 2.0, is_retry=is_retry)
    return tally


def test_conflicts_are_counted_for_each_clean_transaction():
    tally = counted(([True, True], False), ([True, False], False), ([False], True))

    metrics = tally.metrics("batch", capacity_s=12.0, horizon_s=12.0)

    assert metrics["batch_conflict_fraction"] == 2.0
    assert metrics["batch_task_conflict_share"] == pytest.approx(2 / 5)
    assert metrics["batch_busyness"] == 0.5
    assert metrics["batch_wasted_share"] == pytest.approx(4 / 6)
    assert metrics["batch_tasks_per_s"] == 0.25


def test_waits_and_retries_are_counted_for_each_job():
    tally = counted(([True], False), ([True], True))
    for wait_s in (0.0, 10.0):
        tally.arrived(5)
        tally.waited(wait_s)
    tally.complete = 1

    metrics = tally.metrics("service", 1.0, 1.0)

    assert metrics["service_jobs"] == 2.0
    assert metrics["service_wait_s"] == 5.0
    assert metrics["service_wait_p90_s"] == pytest.approx(9.0)
    assert metrics["service_retries"] == 0.5
    assert metrics["service_scheduled_share"] == 0.5


def test_without_events_all_figures_are_zero():
    assert set(Tally().metrics("batch", 0.0, 0.0).values()) == {0.0}
