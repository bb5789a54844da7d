from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.config.plugin_args import (
    NodeResourcesFitArgs,
    RequestedToCapacityRatio,
    ResourceSpec,
    ScoringStrategy,
    ShapePoint,
)
from roadstead.plugins.node_resources_fit import NodeResourcesFit
from roadstead.plugins.resource_scoring import broken_linear, build_scorer
from tests.builders import GIB, GPU, MIB, node, pairs, pod, put, score_with, table_of
from tests.plugins.upstream import (
    allocation_score,
    least_requested_score,
    most_requested_score,
    quotient,
    ratio_score,
)
from tests.plugins.upstream import broken_linear as upstream_broken_linear
from tests.plugins.worlds import assert_scores_alike_through_views, both
from tests.strategies import HUGE, clusters, pods

BIN_PACKING = ((0, 0), (100, 10))
SPREADING = ((0, 10), (100, 0))


def fit(kind="LeastAllocated", resources=(("cpu", 1), ("memory", 1)), shape=None):
    function = None
    if shape is not None:
        function = RequestedToCapacityRatio(tuple(ShapePoint(*point) for point in shape))
    specs = tuple(ResourceSpec(*each) for each in resources)
    return NodeResourcesFit(
        NodeResourcesFitArgs(scoring_strategy=ScoringStrategy(kind, specs, function))
    )


def ratio(shape, resources=(("cpu", 1), ("memory", 1))):
    return fit("RequestedToCapacityRatio", resources, shape)


def scored(plugin, wanted, *on_node, **facts):
    table = table_of(node("n1", **facts))
    put(table, "n1", *on_node)
    (score,) = score_with(plugin, wanted, table)
    return score


def test_least_allocated_averages_the_remaining_shares():
    wanted = pod(cpu=1000, memory=2 * GIB)

    assert scored(fit(), wanted, cpu=4000, memory=4 * GIB) == (75 + 50) // 2
    assert (
        scored(fit(), wanted, pod(cpu=1000, memory=GIB), cpu=4000, memory=4 * GIB) == (50 + 25) // 2
    )


def test_most_allocated_averages_the_used_shares():
    wanted = pod(cpu=1000, memory=2 * GIB)

    assert scored(fit("MostAllocated"), wanted, cpu=4000, memory=4 * GIB) == (25 + 50) // 2


def test_every_division_truncates():
    wanted = pod(cpu=1, memory=1)

    assert scored(fit(), wanted, cpu=3, memory=3) == 66
    assert scored(fit("MostAllocated"), wanted, cpu=3, memory=3) == 33
    assert scored(fit(), wanted, cpu=3, memory=2) == (66 + 50) // 2
    assert scored(fit(), pod(cpu=1, memory=0), cpu=3, memory=1) == (66 + 100) // 2


def test_a_container_without_requests_counts_100m_and_200mi():
    assert scored(fit(), pod(), cpu=1000, memory=1000 * MIB) == (90 + 80) // 2
    assert scored(fit(), pod(), pod(), cpu=1000, memory=1000 * MIB) == (80 + 60) // 2


def test_an_explicit_zero_counts_zero():
    assert scored(fit(), pod(cpu=0, memory=0), cpu=1000, memory=1000 * MIB) == 100


def test_a_pod_that_does_not_fit_has_the_least_and_the_most_allocated_score():
    wanted = pod(cpu=5000, memory=0)

    assert scored(fit(resources=(("cpu", 1),)), wanted, cpu=4000) == 0
    assert scored(fit("MostAllocated", (("cpu", 1),)), wanted, cpu=4000) == 100


def test_weights_multiply_the_scores():
    wanted = pod(cpu=1000, memory=2 * GIB)
    plugin = fit(resources=(("cpu", 3), ("memory", 1)))

    assert scored(plugin, wanted, cpu=4000, memory=4 * GIB) == (3 * 75 + 50) // 4


def test_a_resource_missing_on_the_node_is_left_out_of_both_sums():
    wanted = pod(cpu=1000, memory=2 * GIB)

    for kind, left in (("LeastAllocated", 75), ("MostAllocated", 25)):
        assert scored(fit(kind), wanted, cpu=4000, memory=0) == left
        assert scored(fit(kind), wanted, cpu=0, memory=0) == 0


def test_an_extended_resource_counts_only_for_pods_that_request_it():
    plugin = fit("MostAllocated", (("cpu", 1), (GPU, 1)))
    facts = {"cpu": 1000, "others": {GPU: 4}}

    assert scored(plugin, pod(cpu=500), pod(cpu=0, others={GPU: 4}), **facts) == 50
    assert scored(plugin, pod(cpu=500, others={GPU: 1}), **facts) == (50 + 25) // 2
    assert scored(plugin, pod(cpu=500, others={GPU: 0}), **facts) == 50


def test_ephemeral_storage_counts_for_pods_that_do_not_request_it_too():
    plugin = fit("MostAllocated", (("ephemeral-storage", 1),))
    facts = {"others": {"ephemeral-storage": 10 * GIB}}

    assert scored(plugin, pod(), pod(others={"ephemeral-storage": GIB}), **facts) == 10


def test_pod_level_requests_do_not_count_for_the_scored_pod():
    own = (("cpu", 500), ("memory", 2 * GIB))
    wanted = replace(pod(cpu=1000, memory=GIB), container_requests=own)

    assert scored(fit(), wanted, cpu=4000, memory=4 * GIB) == (87 + 50) // 2
    assert scored(fit(), pod(cpu=0, memory=0), wanted, cpu=4000, memory=4 * GIB) == (75 + 75) // 2


@pytest.mark.parametrize(
    ("shape", "at", "score"),
    [
        (BIN_PACKING, 0, 0),
        (BIN_PACKING, 37, 37),
        (SPREADING, 37, 63),
        (((0, 10), (70, 0)), 1, 99),
        (((0, 10), (70, 0)), 69, 2),
        (((20, 3), (60, 9)), 0, 30),
        (((20, 3), (60, 9)), 41, 61),
        (((20, 3), (60, 9)), 100, 90),
        (((50, 7),), 3, 70),
    ],
)
def test_a_shape_is_linear_between_its_points_and_constant_outside(shape, at, score):
    assert broken_linear([ShapePoint(*point) for point in shape])[at] == score


@given(
    st.lists(st.integers(0, 100), min_size=1, max_size=5, unique=True).map(sorted),
    st.lists(st.integers(0, 10), min_size=5, max_size=5),
)
def test_a_shape_equals_upstreams_at_every_utilization(utilizations, scores):
    shape = list(zip(utilizations, scores, strict=False))
    points = [(utilization, 10 * score) for utilization, score in shape]

    line = broken_linear([ShapePoint(*point) for point in shape]).tolist()

    assert line == [upstream_broken_linear(points, p) for p in range(101)]


def test_ratio_follows_its_shape():
    wanted = pod(cpu=1000, memory=2 * GIB)
    facts = {"cpu": 4000, "memory": 4 * GIB}

    assert scored(ratio(BIN_PACKING), wanted, **facts) == 38
    assert scored(ratio(SPREADING), wanted, **facts) == 63


def test_ratio_rounds_halves_up_at_the_end():
    assert scored(ratio(BIN_PACKING), pod(cpu=1, memory=2), cpu=100, memory=100) == 2
    assert scored(ratio(BIN_PACKING), pod(cpu=1, memory=1), cpu=100, memory=100) == 1


def test_a_resource_that_scores_zero_is_left_out_of_the_weights_of_ratio():
    wanted = pod(cpu=0, memory=2 * GIB)

    assert scored(ratio(BIN_PACKING), wanted, cpu=4000, memory=4 * GIB) == 50
    assert scored(ratio(BIN_PACKING), pod(cpu=0, memory=0)) == 0


def test_a_pod_that_does_not_fit_counts_as_full_use():
    plugin = ratio(((0, 0), (99, 10), (100, 7)), (("cpu", 1),))

    assert scored(plugin, pod(cpu=5000), cpu=4000) == 70
    assert scored(plugin, pod(cpu=4000), cpu=4000) == 70
    assert scored(plugin, pod(cpu=3999), cpu=4000) == 100


def test_ratio_ignores_resources_missing_on_node_or_pod():
    plugin = ratio(SPREADING, (("cpu", 1), ("memory", 1), (GPU, 5)))

    assert scored(plugin, pod(cpu=1000, memory=0), cpu=4000, memory=0, others={GPU: 1}) == 75


def test_ratio_without_a_shape_can_not_be_built():
    with pytest.raises(AssertionError, match="requires a shape"):
        build_scorer(ScoringStrategy("RequestedToCapacityRatio"))


RESOURCES = st.lists(
    st.tuples(
        st.sampled_from(["cpu", "memory", "ephemeral-storage", GPU, HUGE, "unheard-of"]),
        st.integers(1, 100),
    ),
    min_size=1,
    max_size=4,
    unique_by=lambda each: each[0],
)


@given(clusters, pods, RESOURCES, st.booleans())
def test_allocation_scores_equal_upstreams(cluster, wanted, resources, most):
    table, nodes = both(cluster)
    plugin = fit("MostAllocated" if most else "LeastAllocated", resources)
    scorer = most_requested_score if most else least_requested_score

    assert score_with(plugin, wanted, table) == [
        allocation_score(wanted, each, resources, scorer) for each in nodes
    ]
    assert_scores_alike_through_views(plugin, wanted, table)


@given(
    clusters,
    pods,
    RESOURCES,
    st.lists(st.integers(0, 100), min_size=1, max_size=4, unique=True).map(sorted),
    st.lists(st.integers(0, 10), min_size=4, max_size=4),
)
def test_ratio_scores_equal_upstreams(cluster, wanted, resources, utilizations, scores):
    table, nodes = both(cluster)
    shape = tuple(zip(utilizations, scores, strict=False))
    plugin = ratio(shape, resources)

    assert score_with(plugin, wanted, table) == [
        ratio_score(wanted, each, resources, shape) for each in nodes
    ]
    assert_scores_alike_through_views(plugin, wanted, table)


OWN_REQUESTS = st.dictionaries(st.sampled_from(["cpu", "memory", GPU]), st.integers(0, 5000))


@given(clusters, pods, OWN_REQUESTS)
def test_scores_of_pods_with_pod_level_requests_equal_upstreams(cluster, wanted, own):
    wanted = replace(wanted, container_requests=pairs(own))
    resources = (("cpu", 1), ("memory", 2), (GPU, 3))
    table, nodes = both(cluster)

    assert score_with(fit(resources=resources), wanted, table) == [
        allocation_score(wanted, each, resources, least_requested_score) for each in nodes
    ]


INT64 = 2**64
INT64_MAX = 2**63 - 1
EDGES = [0, 1, 99, 2**52, INT64_MAX // 100, INT64_MAX // 100 + 1, INT64_MAX // 2, INT64_MAX]


def wrapped(number):
    """Go's int64 after an overflow."""
    return (number + 2**63) % INT64 - 2**63


@given(st.sampled_from(EDGES), st.sampled_from(EDGES), st.sampled_from(EDGES), st.booleans())
def test_products_beyond_int64_wrap_and_are_divided_towards_zero(capacity, first, second, most):
    requested = wrapped(first + second)
    used = min(requested, capacity)
    product = wrapped((used if most else wrapped(capacity - used)) * 100)
    wanted = quotient(product, capacity) if capacity else 0
    plugin = fit("MostAllocated" if most else "LeastAllocated", ((GPU, 1),))

    # A pod that requests none of an extended resource is not scored by it.
    if second and capacity:
        found = scored(
            plugin, pod(others={GPU: second}), pod(others={GPU: first}), others={GPU: capacity}
        )
        assert found == wanted, "the score in Go's int64"


@given(st.sampled_from(EDGES[1:]), st.sampled_from(EDGES), st.sampled_from(EDGES[1:]))
def test_a_share_that_wrapped_below_zero_is_scored_as_zero(capacity, first, second):
    requested = wrapped(first + second)
    share = quotient(wrapped(max(requested, 0) * 100), capacity)
    wanted = 0 if requested > capacity else 100 - max(share, 0)

    found = scored(
        ratio(SPREADING, ((GPU, 1),)),
        pod(others={GPU: second}),
        pod(others={GPU: first}),
        others={GPU: capacity},
    )

    assert found == wanted, "the value of the falling line at the share"
