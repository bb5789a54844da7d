"""Generated fleets: equal for equal seeds, with openb's statistics and work for all plugins."""

import hashlib
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from roadstead.facts.taints import tolerated
from roadstead.fleet import generate
from roadstead.fleet.generate import generate_fleet
from roadstead.fleet.openb import GPU_RESOURCE, MODEL_LABEL
from roadstead.fleet.sizes import NODE_SIZES, POD_SIZES
from roadstead.fleet.ten_classes import TEN_CLASSES
from tests.ten_shapes import ten_shapes


def fingerprint(trace):
    hashed = hashlib.sha256(repr((trace.nodes(), list(trace.pods()))).encode())
    hashed.update(repr((trace.creation_s.tolist(), trace.deletion_s.tolist())).encode())
    return hashed.hexdigest()[:16]


def total(trace, resource):
    offered = sum(dict(node.allocatable).get(resource, 0) for node in trace.nodes())
    asked = sum(dict(facts.requests).get(resource, 0) for _, facts in trace.pods())
    return asked / offered


@pytest.mark.parametrize("make", [generate_fleet, ten_shapes])
def test_equal_seeds_give_equal_traces_and_other_seeds_others(make):
    assert fingerprint(make(30, 200, 7)) == fingerprint(make(30, 200, 7))
    assert fingerprint(make(30, 200, 7)) != fingerprint(make(30, 200, 8))


def test_draws_are_equal_on_every_platform_and_version():
    assert generate_fleet(5, 8, 1).creation_s.tolist() == [
        18,
        477,
        687,
        992,
        1301,
        1312,
        1336,
        1507,
    ]
    apps = [facts.labels[0][1] for _, facts in ten_shapes(1, 10, 1).pods()]
    assert apps[:5] == ["api", "cache", "cron", "front", "web"]


def test_more_nodes_do_not_change_the_pods():
    few, many = generate_fleet(10, 100, 3), generate_fleet(50, 100, 3)
    assert list(few.pods()) == list(many.pods())


def test_the_demo_fleet_is_about_as_full_as_openb():
    trace = generate_fleet(2000, 10_000, 0)
    assert 0.85 < total(trace, GPU_RESOURCE) < 1.0
    assert 0.55 < total(trace, "cpu") < 0.75
    assert 0.40 < total(trace, "memory") < 0.55


def test_the_demo_mixes_sizes_models_and_qos_classes():
    trace = generate_fleet(2000, 10_000, 0)
    models = {dict(node.labels).get(MODEL_LABEL) for node in trace.nodes()}
    qos = Counter(dict(facts.labels)["qos"] for _, facts in trace.pods())
    constrained = sum(facts.required_node_terms is not None for _, facts in trace.pods())
    assert models == {shape.model or None for shape in NODE_SIZES}
    assert set(qos) == {"LS", "BE", "Burstable", "Guaranteed"}
    assert qos.most_common()[0][0] == "LS"
    assert 0.2 < constrained / 10_000 < 0.4
    assert len({facts.requests for facts in trace.pod_classes}) == len(
        {(s.cpu_milli, s.memory_mib, s.gpus * s.gpu_milli) for s in POD_SIZES}
    )


def test_only_pods_of_one_gpu_are_bound_to_models():
    trace = generate_fleet(10, 10_000, 0)
    large = [
        facts for facts in trace.pod_classes if dict(facts.requests).get(GPU_RESOURCE, 0) > 1000
    ]
    assert large
    assert all(facts.required_node_terms is None for facts in large)


def test_pods_arrive_in_order_and_are_deleted_later():
    trace = generate_fleet(10, 1000, 0)
    assert (trace.creation_s[1:] >= trace.creation_s[:-1]).all()
    assert (trace.deletion_s > trace.creation_s).all()


def test_the_zones_can_be_set():
    trace = generate_fleet(12, 500, 0, zones=6)
    assert len({node.zone for node in trace.nodes()}) == 6


def test_an_empty_fleet_and_no_pods_are_a_trace_too():
    trace = generate_fleet(0, 0, 0)
    assert (trace.nodes(), list(trace.pods())) == ([], [])


@pytest.mark.parametrize(
    "arguments",
    [{"nodes": -1}, {"pods": -1}, {"nodes": 10**9}, {"zones": 0}],
)
def test_counts_out_of_range_are_refused(arguments):
    with pytest.raises(ValueError, match=r"is -?\d+, want|out of range"):
        generate_fleet(**({"nodes": 1, "pods": 1, "seed": 0} | arguments))


def test_ten_shapes_are_equally_frequent_in_a_mixed_order():
    trace = ten_shapes(100, 1000, 0)
    counts = Counter(trace.pod_class.tolist())
    assert sorted(counts.values()) == [100] * 10
    assert len(set(trace.pod_class[:30].tolist())) > 5


def test_ten_shapes_give_every_stateless_plugin_work():
    shapes = TEN_CLASSES
    assert any(facts.host_ports for facts in shapes)
    assert any(facts.node_selector for facts in shapes)
    assert any(facts.required_node_terms for facts in shapes)
    assert any(facts.preferred_node_terms for facts in shapes)
    assert any(not facts.requests for facts in shapes)
    images = {name for node in ten_shapes(30, 0, 0).nodes() for name, _ in node.images}
    assert images & {image for facts in shapes for image in facts.images}


def test_each_of_the_ten_shapes_has_suitable_nodes():
    nodes = ten_shapes(100, 0, 0).nodes()
    for facts in TEN_CLASSES:
        assert any(suits(facts, node) for node in nodes)
        assert facts.labels[0][1] in {"web", "front", "cron", "agent"} or not all(
            suits(facts, node) for node in nodes
        )


def suits(facts, node):
    labels, allocatable = dict(node.labels), dict(node.allocatable)
    terms = facts.required_node_terms
    return (
        all(labels.get(key) == value for key, value in facts.node_selector)
        and (terms is None or any(term.matches(labels, node.name) for term in terms))
        and all(amount <= allocatable.get(name, 0) for name, amount in facts.requests)
        and all(
            tolerated(taint, facts.tolerations)
            for taint in node.taints
            if taint.effect != "PreferNoSchedule"
        )
    )


def test_every_zone_of_the_ten_shapes_fleet_has_every_pool():
    nodes = ten_shapes(100, 0, 0).nodes()
    found = {(node.zone, dict(node.labels)["pool"]) for node in nodes}
    assert len(found) == 5 * 3


def test_shapes_are_as_frequent_as_their_weights(monkeypatch):
    one, none, three = (
        replace(generate.NODE_SIZES[0], cpu_milli=cpu, weight=weight)
        for cpu, weight in ((1000, 1), (2000, 0), (3000, 3))
    )
    monkeypatch.setattr(generate, "NODE_SIZES", (one, none, three))

    nodes = generate_fleet(4000, 0, 0).nodes()

    counts = Counter(dict(node.allocatable)["cpu"] for node in nodes)
    assert set(counts) == {1000, 3000}
    assert 2800 < counts[3000] < 3200


def test_times_between_arrivals_are_between_their_quantiles(monkeypatch):
    monkeypatch.setattr(generate, "ARRIVAL_GAPS_S", (0, 0, 10))

    drawn = np.diff(generate_fleet(1, 4001, 0).creation_s)

    assert (drawn.min(), drawn.max()) == (0, 10)
    assert 1900 < (drawn == 0).sum() < 2400
