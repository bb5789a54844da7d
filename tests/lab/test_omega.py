"""Proves the model of schedulers on one shared cell."""

import math
from dataclasses import replace

import numpy as np
import pytest

from roadstead.lab import omega
from roadstead.lab.cell_types import EXAMPLE, TRACE, CellType
from roadstead.lab.omega import OmegaModel, OmegaRun, simulate
from roadstead.lab.omega_cell import Cell
from roadstead.lab.placement import first_fit
from roadstead.lab.workload import Constant, Exponential, JobType

SMALL = OmegaModel(
    machines=200,
    horizon_s=2000.0,
    cell=CellType(
        EXAMPLE.shapes,
        JobType("batch", 5.0, Exponential(10.0), Exponential(20.0)),
        JobType("service", 20.0, Exponential(5.0), Exponential(40.0)),
    ),
)
CROWDED = replace(SMALL, load=0.7, service_job_s=8.0, placement="pack")


def test_the_same_seed_gives_the_same_figures():
    assert simulate(CROWDED, 3) == simulate(CROWDED, 3)
    assert simulate(CROWDED, 3) != simulate(CROWDED, 4)


def test_fast_decisions_rarely_conflict_and_slow_ones_often():
    quick = simulate(replace(CROWDED, service_job_s=0.01), 1)
    slow = simulate(CROWDED, 1)

    assert quick["service_conflict_fraction"] < slow["service_conflict_fraction"]
    assert quick["service_busyness"] < slow["service_busyness"]
    assert quick["service_wait_s"] < slow["service_wait_s"]


def test_version_has_at_least_the_conflicts_of_fit_and_gangs_those_of_increments():
    fit = simulate(CROWDED, 2)["service_conflict_fraction"]
    version = simulate(replace(CROWDED, conflicts="version"), 2)["service_conflict_fraction"]
    gang = simulate(replace(CROWDED, transaction="all-or-nothing"), 2)["service_conflict_fraction"]

    assert version >= fit
    assert gang >= fit


def test_a_single_scheduler_has_no_conflict():
    alone = replace(SMALL, service_rate=1e-6, job_s=5.0)

    metrics = simulate(alone, 1)

    assert metrics["batch_conflict_fraction"] == 0.0
    assert metrics["batch_tasks_per_s"] > 0.0


def test_more_schedulers_share_the_work():
    busy = replace(SMALL, job_s=4.0)

    sample = simulate(busy, 1)
    four = simulate(replace(busy, batch_schedulers=4), 1)

    assert four["batch_busyness"] < sample["batch_busyness"] / 2
    assert four["batch_wait_s"] < sample["batch_wait_s"]


def test_older_views_conflict_more():
    stale = simulate(replace(CROWDED, service_job_s=0.1, staleness_s=120.0), 1)
    fresh = simulate(replace(CROWDED, service_job_s=0.1), 1)

    assert stale["service_conflict_fraction"] > fresh["service_conflict_fraction"]


def test_many_jobs_decided_on_one_view_conflict_more():
    busy = replace(CROWDED, batch_rate=2.0, task_s=0.2, batch_schedulers=2, batch=1)

    together = simulate(replace(busy, batch=16), 1)

    assert together["batch_conflict_fraction"] > simulate(busy, 1)["batch_conflict_fraction"]


def test_a_job_that_never_fits_is_abandoned_after_a_number_of_attempts():
    full = replace(SMALL, load=1.0, job_s=0.0, task_s=0.0, service_rate=1e-6)

    metrics = simulate(full, 1)

    assert metrics["batch_tasks_per_s"] == 0.0
    assert metrics["batch_abandoned"] > 0
    assert metrics["batch_score_regret"] == 0.0


def test_a_job_that_never_fits_completely_is_abandoned_in_the_end(monkeypatch):
    full = replace(SMALL, load=1.0, job_s=0.0, task_s=0.0, service_rate=1e-6)
    # So no job is abandoned because none of its tasks was placed.
    monkeypatch.setattr(omega, "FRUITLESS_ATTEMPTS", 10_000)
    monkeypatch.setattr(omega, "ATTEMPTS", 2)

    assert simulate(full, 1)["batch_abandoned"] > 0


def test_regret_is_smallest_for_schedulers_that_use_the_score():
    calm = replace(SMALL, load=0.3)

    by_score = simulate(replace(calm, placement="spread"), 1)["batch_score_regret"]

    assert by_score < simulate(calm, 1)["batch_score_regret"]


@pytest.mark.parametrize("cell", [EXAMPLE, TRACE])
@pytest.mark.parametrize("load", [0.0, 0.6])
def test_the_cell_is_initially_filled_to_its_load(load, cell):
    run = OmegaRun(replace(SMALL, machines=2000, load=load, cell=cell), 1)

    assert run.cell.used_fraction() == pytest.approx(load, abs=0.02)


def test_a_cell_that_can_not_be_filled_to_its_load_is_filled_as_far_as_tasks_fit():
    large = JobType("service", 20.0, Exponential(5.0), Exponential(40.0), Constant(3000))
    run = OmegaRun(replace(SMALL, load=0.99, cell=replace(SMALL.cell, service=large)), 1)

    assert run.cell.used_fraction() == 0.75


def test_fewer_scored_machines_cause_fewer_conflicts():
    all_scored = simulate(CROWDED, 1)["service_conflict_fraction"]
    few_scored = simulate(replace(CROWDED, sample=3), 1)["service_conflict_fraction"]
    none_scored = simulate(replace(CROWDED, placement="first-fit"), 1)["service_conflict_fraction"]

    assert none_scored < few_scored < all_scored


def test_conflicts_of_uniform_choices_match_the_probability_of_taken_slots():
    machines, others, tasks, repeats = 200, 40, 5, 600
    random, sample = np.random.default_rng(1), np.array([1])
    clean = 0
    for _ in range(repeats):
        cell = Cell(machines, sample)
        seen = cell.view(0.0)
        cell.claim(first_fit(cell.free, cell.capacity, sample, others, random), sample)
        mine = first_fit(seen.free, cell.capacity, sample, tasks, random)
        clean += bool(cell.commit(mine, sample, seen, "fit", "incremental").all())

    expected = math.comb(machines - others, tasks) / math.comb(machines, tasks)
    assert clean / repeats == pytest.approx(expected, abs=0.07)
