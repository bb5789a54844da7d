"""Slices that change while claims are allocated: what holds, and that errors would be found."""

from unittest.mock import patch
from weakref import WeakKeyDictionary

import pytest

from roadstead.devices.allocator import Allocator
from roadstead.devices.pools import DevicePools
from tests.simulation.modes import VARIANTS
from tests.simulation.ramble_slices import problems_of
from tests.simulation.scenarios import make


def ramble(seed):
    scenario = VARIANTS["devices"](make(seed), seed)
    return problems_of(scenario.plan, scenario, seed)


def never_forgetting(seen_from):
    """Return a `DevicePools.seen_from` that gives each node the pools that it saw first."""
    first = WeakKeyDictionary()

    def seen(self, node, labels):
        pools = seen_from(self, node, labels)
        return first.setdefault(self, {}).setdefault(node, pools)

    return seen


@pytest.mark.parametrize("seed", range(6))
def test_allocations_fit_the_slices_that_the_binder_knows(seed):
    assert ramble(seed) == []


@pytest.mark.parametrize(
    ("owner", "name", "wrong", "seeds", "text"),
    [
        (Allocator, "repeats", lambda *what: True, (15, 41, 47), "I2 in record"),
        (DevicePools, "seen_from", never_forgetting(DevicePools.seen_from), (0, 2), "nodes for"),
    ],
)
def test_errors_with_changed_slices_are_found(owner, name, wrong, seeds, text):
    with patch.object(owner, name, wrong):
        assert any(text in each for seed in seeds for each in ramble(seed))
