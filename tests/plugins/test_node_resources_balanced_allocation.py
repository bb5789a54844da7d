import math

from hypothesis import given
from hypothesis import strategies as st

from roadstead.config.plugin_args import NodeResourcesBalancedAllocationArgs, ResourceSpec
from roadstead.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from tests.builders import GIB, GPU, node, pod, put, score_with, table_of
from tests.plugins.upstream import balanced_score
from tests.plugins.worlds import assert_scores_alike_through_views, both
from tests.strategies import HUGE, clusters, pods


def balanced(*resources):
    specs = tuple(ResourceSpec(name) for name in resources or ("cpu", "memory"))
    return NodeResourcesBalancedAllocation(NodeResourcesBalancedAllocationArgs(specs))


def scored(plugin, wanted, *on_node, **facts):
    table = table_of(node("n1", **facts))
    put(table, "n1", *on_node)
    scores = score_with(plugin, wanted, table)
    return scores and scores[0]


def test_a_balanced_use_has_the_highest_score():
    assert scored(balanced(), pod(cpu=1000, memory=2 * GIB), cpu=4000, memory=8 * GIB) == 100


def test_for_two_fractions_half_the_difference_counts():
    assert scored(balanced(), pod(cpu=3000, memory=2 * GIB), cpu=4000, memory=8 * GIB) == 75


def test_the_result_is_truncated_and_not_rounded():
    wanted = pod(cpu=1, memory=0)

    assert scored(balanced(), wanted, cpu=1000, memory=GIB) == 99
    assert scored(balanced(), wanted, cpu=3, memory=GIB) == 83


def test_pods_on_the_node_count_with_their_real_requests():
    on_node = (pod(cpu=1000), pod())

    assert scored(balanced(), pod(cpu=1000, memory=0), *on_node, cpu=4000, memory=GIB) == 75


def test_a_fraction_is_at_most_one():
    assert scored(balanced(), pod(cpu=9000, memory=GIB), cpu=4000, memory=GIB) == 100


def test_a_resource_that_the_node_lacks_is_left_out():
    wanted = pod(cpu=1000, memory=GIB)

    assert scored(balanced(), wanted, cpu=4000, memory=0) == 100
    assert scored(balanced(), wanted, cpu=0, memory=0) == 100


def test_for_three_fractions_the_standard_deviation_counts():
    wanted = pod(cpu=1000, memory=GIB, others={GPU: 1})
    facts = {"cpu": 4000, "memory": 2 * GIB, "others": {GPU: 1}}

    deviation = math.sqrt(
        ((0.25 - 1.75 / 3) ** 2 + (0.5 - 1.75 / 3) ** 2 + (1 - 1.75 / 3) ** 2) / 3
    )
    assert (
        scored(balanced("cpu", "memory", GPU), wanted, **facts) == int((1 - deviation) * 100) == 68
    )


def test_two_present_ones_of_three_resources_count_as_two():
    plugin = balanced("cpu", "memory", GPU)
    wanted = pod(cpu=3000, memory=2 * GIB, others={GPU: 1})

    assert scored(plugin, wanted, cpu=4000, memory=8 * GIB) == 75
    assert scored(plugin, wanted, cpu=0, memory=8 * GIB, others={GPU: 4}) == 100
    assert scored(plugin, wanted, cpu=4000, memory=0, others={GPU: 4}) == 75


def test_an_extended_resource_counts_only_for_pods_that_request_it():
    plugin = balanced("cpu", GPU)
    facts = {"cpu": 4000, "others": {GPU: 4}}

    assert scored(plugin, pod(cpu=4000), pod(others={GPU: 1}), **facts) == 100
    assert scored(plugin, pod(cpu=4000, others={GPU: 2}), **facts) == 75


def test_a_pod_that_requests_none_of_the_resources_is_skipped():
    assert scored(balanced(), pod()) is None
    assert scored(balanced(), pod(cpu=0, memory=0)) is None
    assert scored(balanced(), pod(others={GPU: 1})) is None
    assert scored(balanced(GPU), pod(others={GPU: 1}), others={GPU: 1}) == 100
    assert scored(balanced(), pod(memory=1)) == 99


def test_without_usable_resources_every_node_is_balanced():
    plugin = balanced(GPU, "cpu")
    table = table_of(node("n1"), node("n2"))

    assert plugin.score(None, table.classes.pod_class(pod()), table).tolist() == [100, 100]
    assert balanced(GPU).score(None, table.classes.pod_class(pod()), table).tolist() == [100, 100]


RESOURCES = st.lists(
    st.sampled_from(["cpu", "memory", "ephemeral-storage", GPU, HUGE]),
    min_size=1,
    max_size=5,
    unique=True,
)


@given(clusters, pods, RESOURCES)
def test_scores_equal_upstreams(cluster, wanted, resources):
    table, nodes = both(cluster)
    plugin = balanced(*resources)
    asks = any(dict(wanted.requests).get(name) for name in resources)

    expected = [balanced_score(wanted, each, resources) for each in nodes] if asks else None
    assert score_with(plugin, wanted, table) == expected
    assert_scores_alike_through_views(plugin, wanted, table)


@given(
    st.lists(st.tuples(st.integers(0, 2**40), st.integers(1, 2**40)), min_size=3, max_size=5),
    st.integers(0, 2**40),
)
def test_scores_of_odd_amounts_are_rounded_like_upstream(lines, first):
    names = [f"example.com/r{index}" for index in range(len(lines))]
    wanted = pod(others={name: used + 1 for name, (used, _) in zip(names, lines, strict=True)})
    others = {name: amount for name, (_, amount) in zip(names, lines, strict=True)}
    on_node = pod(others={names[0]: first})
    table, nodes = both([(node("n1", others=others), [on_node])])

    expected = [balanced_score(wanted, each, names) for each in nodes]
    assert score_with(balanced(*names), wanted, table) == expected
