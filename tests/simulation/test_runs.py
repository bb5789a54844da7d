"""Seeds, each with a cluster and faults of its own: no pod is lost, no invariant broken."""

import logging
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from unittest.mock import patch

import pytest

from roadstead.actors.cache.stream import ChangeStream
from tests.simulation import planted_devices  # noqa: F401 (adds to BUGS)
from tests.simulation.planted import BUGS, find
from tests.simulation.simulation import simulate

ROOT = Path(__file__).resolve().parents[2]
NETWORK = ("lost", "duplicated", "slow", "partition", "pause")
CRASHES = ("crash",)
CHUNK = 2
QUICK = ("the binder does not check spread", "acknowledged before the flush", "a lease never ends")


@pytest.fixture(autouse=True)
def _quiet():
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


def problems(seeds, kinds):
    """Seed → violations after it, for the seeds that have any."""
    # Random calls follow one run: they take three times as long as it.
    outcomes = [simulate(seed, kinds, rambles=seed == seeds[0]) for seed in seeds]
    return {each.seed: each.problems for each in outcomes if each.problems}


@pytest.mark.parametrize("start", range(0, 2 * CHUNK, CHUNK))
def test_a_faulty_network_breaks_no_invariant(start):
    assert problems(range(start, start + CHUNK), NETWORK) == {}


@pytest.mark.parametrize("start", range(0, 2 * CHUNK, CHUNK))
def test_crashing_actors_break_no_invariant(start):
    assert problems(range(start, start + CHUNK), CRASHES) == {}


def test_colocated_schedulers_break_no_invariant():
    assert problems(range(1000, 1000 + CHUNK), ()) == {}


def test_faults_of_every_kind_happen():
    missing = {"lost", "duplicated", "slow", "partition", "pause", "crash"}
    # The first two have all of them now.
    for seed in (21, 24, 20, 22, 23, 25):
        missing -= simulate(seed, (*NETWORK, *CRASHES), rambles=False).happened.keys()
        if not missing:
            break
    assert not missing, f"no seed has these faults: {missing}"


def test_a_failed_task_without_a_waiter_is_a_problem():
    async def send(self, *changes):
        raise ZeroDivisionError("nobody awaits this")

    with patch.object(ChangeStream, "_send", send):
        found = simulate(7, (), rambles=False).problems

    assert any("nobody hears that ZeroDivisionError" in each for each in found)


def test_a_seed_replays_its_run_exactly_in_any_process():
    here = simulate(7, NETWORK, rambles=False)
    asked = f"simulate(7, {NETWORK!r}, rambles=False)"
    code = f"from tests.simulation.simulation import simulate; print({asked}.trace)"
    environment = {**os.environ, "PYTHONHASHSEED": "77", "PYTHONPATH": str(ROOT)}

    there = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )

    again, other = (simulate(seed, NETWORK, rambles=False) for seed in (7, 8))
    assert again.trace == here.trace == there.stdout.strip()
    assert other.trace != here.trace


@pytest.mark.parametrize("bug", [each for each in BUGS if each.name in QUICK], ids=lambda b: b.name)
def test_a_planted_bug_is_found(bug):
    # Without random calls: the run itself must find it.
    assert find(bug, partial(simulate, rambles=False)) is not None


@pytest.mark.parametrize("bug", BUGS, ids=lambda b: b.name)
def test_every_method_that_a_planted_bug_replaces_exists(bug):
    replaced = []

    bug.plant(lambda owner, name, *_: replaced.append((owner, name)))

    assert replaced, "the bug changes something"
    missing = [name for owner, name in replaced if not hasattr(owner, name)]
    assert not missing, "renamed, or gone"


def test_every_planted_bug_has_a_unique_name():
    assert len({each.name for each in BUGS}) == len(BUGS) >= 30
