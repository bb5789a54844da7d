"""Many schedulers in every mode, under the same faults: every invariant holds in commit order."""

import logging
from collections import Counter

import pytest

from tests.simulation.modes import in_some_mode
from tests.simulation.scenarios import make
from tests.simulation.simulation import simulate

NETWORK = ("lost", "duplicated", "slow", "partition", "pause")
CHUNK = 2


@pytest.fixture(autouse=True)
def _quietly():
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


def problems(seeds, kinds):
    # Random calls follow one run: they take three times as long as it.
    outcomes = [simulate(seed, kinds, among="modes", rambles=seed == seeds[0]) for seed in seeds]
    return {each.seed: each.problems for each in outcomes if each.problems}


@pytest.mark.parametrize("start", range(2000, 2000 + 2 * CHUNK, CHUNK))
def test_no_mode_breaks_an_invariant(start):
    assert problems(range(start, start + CHUNK), ()) == {}


@pytest.mark.parametrize("start", range(3000, 3000 + 2 * CHUNK, CHUNK))
def test_no_mode_breaks_an_invariant_on_a_faulty_network(start):
    assert problems(range(start, start + CHUNK), NETWORK) == {}


def test_seeds_vary_every_setting():
    turned = Counter()
    for seed in range(2000, 2024):
        settings = in_some_mode(make(seed), seed).plan.settings
        turned.update(
            [
                settings.concurrency,
                settings.conflicts,
                settings.transaction,
                settings.staleness_s,
                settings.partition_policy,
                settings.decision_time.is_positive,
            ]
        )

    assert {"shared", "partitioned", "fit", "version", "incremental", "all-or-nothing"} <= (
        turned.keys()
    )
    assert {None, 0.0, 0.2, 2.0, "quality-first", "adaptive", True} <= turned.keys()
