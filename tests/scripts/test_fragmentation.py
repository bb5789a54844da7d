"""The script behind docs/fragmentation.md, on a fleet of two nodes."""

import json

import numpy as np
import pytest

from roadstead.cycle.batch import CompiledKernel
from roadstead.facts.node import NodeFacts
from roadstead.fleet.openb import GPU_RESOURCE, task_facts
from roadstead.fleet.trace import TraceBuilder
from roadstead.kernel.compiled_code import load
from roadstead.kernel.decision_counts import DecisionCounts


def made_trace():
    builder = TraceBuilder("made", {"default": ()})
    for name, gpu in (("a", 2000), ("b", 2000), ("no-gpu", 0)):
        room = (("cpu", 16_000), ("memory", 1 << 36), *([(GPU_RESOURCE, gpu)] if gpu else []))
        builder.add_node(NodeFacts(name, allocatable=tuple(sorted(room)), allocatable_pods=100))
    for number, gpu in enumerate((1000, 1000, 500, 0)):
        facts = task_facts(
            "default", (), cpu_milli=1000, memory_bytes=1 << 20, gpu_milli=gpu, models=()
        )
        builder.add_pod(f"p{number}", f"p{number}", facts, number, -1)
    return builder.build()


def test_the_trace_is_inflated_to_the_capacity_and_the_seed_determines_it(scripts):
    script = scripts("fragmentation")

    inflated = script.inflate(made_trace(), 4000, seed=1)

    assert {name for name, _ in inflated.pods[:4]} == {"p0", "p1", "p2", "p3"}
    assert 4000 < inflated.arrived[-1] <= 1.3 * 4000
    assert np.all(np.diff(inflated.arrived) >= 0)
    assert inflated.pods == script.inflate(made_trace(), 4000, seed=1).pods
    assert inflated.pods != script.inflate(made_trace(), 4000, seed=2).pods


@pytest.mark.parametrize(
    "policy", ["FGD", "BestFit", "MostAllocated", "DotProd", "Random", "default"]
)
def test_every_policy_is_played_on_the_nodes_with_gpus(scripts, policy):
    script = scripts("fragmentation")
    (chosen,) = [each for each in script.POLICIES if each.name == policy]

    found = script.run(made_trace(), chosen, 1, CompiledKernel(load(), DecisionCounts()))

    assert (found["nodes"], found["gpus"]) == (2, 4.0)
    assert found["allocated"]["130"] > 80
    assert all(0 <= each <= 100 for each in found["fragments"].values())
    json.dumps(found)


@pytest.mark.parametrize("policy", ["FGD", "BestFit"])
def test_as_devices_a_share_lies_on_one_gpu(scripts, policy):
    script = scripts("fragmentation")
    trace, devices = script.as_devices(made_trace())
    (chosen,) = [each for each in script.POLICIES if each.name == policy]
    chosen = script.FGD_OF[script.DEVICES] if policy == "FGD" else chosen

    found = script.run(trace, chosen, 1, CompiledKernel(load(), DecisionCounts()), devices)

    # Sampling asserts that each node has as much free by its devices as by its amount.
    assert found["allocated"]["130"] > 70
    assert all(0 <= each <= 100 for each in found["fragments"].values())


def test_values_between_samples_are_interpolated(scripts):
    script = scripts("fragmentation")
    rows = [(0.0, 0.0, 10.0), (50.0, 40.0, 20.0), (60.0, 40.0, 30.0)]
    curve = script.Curve(None, 1, [], rows)

    assert curve.at(25) == (20.0, 15.0)
    assert curve.at(130) == (40.0, 30.0)


def test_the_table_has_medians_over_seeds(scripts):
    script = scripts("fragmentation")
    rows = [
        {"policy": "P", "allocated": {str(at): value for at in script.SHOWN}}
        for value in (1.0, 2.0, 9.0)
    ]

    *_, row = script.table(rows, "allocated")

    assert row == "| P | " + " | ".join(["2.00"] * len(script.SHOWN)) + " |"
