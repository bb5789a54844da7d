"""Whole runs place pods alike with the kernel and without."""

import pytest

from roadstead.actors.runs import client
from roadstead.actors.runtime import kernel_loader
from roadstead.kernel.compiled_code import load
from tests.actors import fleets
from tests.actors.world import counts_of, identity, inputs_of, placed, plan_of, run_inline
from tests.builders import pod


@pytest.fixture(autouse=True)
def _kernel_is_near(monkeypatch):
    """Load the kernel in advance, and use it for any batch."""
    load()
    monkeypatch.setattr(kernel_loader, "LOAD_AFTER_PODS", 1)
    monkeypatch.setattr(kernel_loader, "load", lambda report: load())
    monkeypatch.setattr(client, "POLL_S", 0.002)


def test_a_run_with_the_kernel_places_pods_like_one_without():
    nodes = [fleets.host(number, "abc"[number % 3]) for number in range(9)]
    apart = pod(labels={"app": "web"}, pod_anti_affinity=(fleets.near(fleets.apps("web")),))
    kinds = [pod(cpu=500), pod(cpu=700), pod(cpu=5000), apart]
    inputs = inputs_of(nodes, [(identity(f"p{n}"), kinds[n % 4]) for n in range(60)])

    without, _ = run_inline(inputs, plan_of(batch=16))
    with_kernel, actors = run_inline(inputs, plan_of(kernel=True, batch=16))

    assert placed(with_kernel) == placed(without)
    assert counts_of(actors["scheduler-0"])["kernel: pods"] > 0, "the kernel decided some pods"
