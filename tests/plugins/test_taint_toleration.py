import pytest
from hypothesis import given

from roadstead.plugins.taint_toleration import TaintToleration
from tests.builders import (
    filter_with,
    hopeless,
    node,
    normalized_with,
    pod,
    score_with,
    table_of,
    taint,
    tolerate,
)
from tests.plugins.upstream import intolerable_soft_taints, normalize, untolerated_taint
from tests.plugins.worlds import (
    assert_filters_alike_through_views,
    assert_scores_alike_through_views,
    both,
)
from tests.strategies import clusters, pods

PLUGIN = TaintToleration()
GPU_TAINT = taint("gpu", "yes")


def soft(key, value=""):
    return taint(key, value, "PreferNoSchedule")


def tainted(*taint_sets):
    return table_of(*(node(f"n{i}", taints=taints) for i, taints in enumerate(taint_sets, 1)))


def tolerating(*tolerations):
    return pod(tolerations=tolerations)


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_a_hard_taint_refuses_pods_and_is_reported_with_its_value(effect):
    table = tainted((taint("gpu", "yes", effect),), (taint("gpu", "", effect),), ())

    assert filter_with(PLUGIN, pod(), table) == [
        hopeless("node(s) had untolerated taint {gpu: yes}"),
        hopeless("node(s) had untolerated taint {gpu: }"),
        None,
    ]


def test_a_soft_taint_refuses_no_pod():
    assert filter_with(PLUGIN, pod(), tainted((soft("gpu"),))) == [None]


def test_the_first_untolerated_taint_is_reported():
    table = tainted((taint("a"), taint("b"), taint("c")))

    assert filter_with(PLUGIN, tolerating(tolerate("a")), table) == [
        hopeless("node(s) had untolerated taint {b: }")
    ]


@pytest.mark.parametrize(
    ("toleration", "passes"),
    [
        (tolerate("gpu", "yes", "NoSchedule"), True),
        (tolerate("gpu", "yes"), True),
        (tolerate("gpu", "yes", operator="Equal"), True),
        (tolerate("gpu", "no"), False),
        (tolerate("gpu", "yes", "NoExecute"), False),
        (tolerate("gpu", operator="Exists"), True),
        (tolerate("gpu", effect="NoExecute", operator="Exists"), False),
        (tolerate(operator="Exists"), True),
        (tolerate("cpu", operator="Exists"), False),
        (tolerate("gpu", "yes", operator="Unknown"), False),
    ],
)
def test_a_toleration_must_match_its_taint(toleration, passes):
    (answer,) = filter_with(PLUGIN, tolerating(toleration), tainted((GPU_TAINT,)))

    assert (answer is None) == passes


def test_every_hard_taint_must_be_tolerated():
    table = tainted((GPU_TAINT, taint("spot")))
    tolerations = (tolerate("gpu", "yes"), tolerate("spot"))

    assert filter_with(PLUGIN, tolerating(*tolerations), table) == [None]
    assert filter_with(PLUGIN, tolerating(*tolerations[:1]), table) != [None]


def test_raw_scores_count_untolerated_soft_taints():
    table = tainted((), (soft("a"),), (soft("a"), soft("b"), GPU_TAINT))

    assert score_with(PLUGIN, pod(), table) == [0, 1, 2]
    assert score_with(PLUGIN, tolerating(tolerate("a", operator="Exists")), table) == [0, 0, 1]


@pytest.mark.parametrize(
    ("effect", "left"), [("", 0), ("PreferNoSchedule", 0), ("NoSchedule", 1), ("NoExecute", 1)]
)
def test_only_tolerations_of_soft_or_every_effect_count_in_scores(effect, left):
    wanted = tolerating(tolerate("a", effect=effect, operator="Exists"))

    assert score_with(PLUGIN, wanted, tainted((soft("a"),))) == [left]


def test_nodes_with_fewer_soft_taints_score_higher():
    table = tainted((), (soft("a"),), (soft("a"), soft("b"), soft("c")))

    assert normalized_with(PLUGIN, pod(), table) == [100, 67, 0]


def test_nodes_without_soft_taints_have_the_highest_score():
    assert normalized_with(PLUGIN, pod(), tainted((), (GPU_TAINT,))) == [100, 100]


def test_taints_of_removed_nodes_do_not_matter():
    table = tainted((GPU_TAINT, soft("a")), ())
    table.remove_node("n1")

    assert filter_with(PLUGIN, pod(), table) == [None]
    assert score_with(PLUGIN, pod(), table) == [0]


@given(clusters, pods)
def test_filtering_equals_upstreams(cluster, wanted):
    table, nodes = both(cluster)

    found = [untolerated_taint(wanted, each) for each in nodes]

    assert filter_with(PLUGIN, wanted, table) == [
        each and hopeless(f"node(s) had untolerated taint {{{each.key}: {each.value}}}")
        for each in found
    ]
    assert_filters_alike_through_views(PLUGIN, wanted, table)


@given(clusters.filter(bool), pods)
def test_scores_equal_upstreams(cluster, wanted):
    table, nodes = both(cluster)

    raw = [intolerable_soft_taints(wanted, each) for each in nodes]

    assert score_with(PLUGIN, wanted, table) == raw
    assert normalized_with(PLUGIN, wanted, table) == normalize(raw, reverse=True)
    assert_scores_alike_through_views(PLUGIN, wanted, table)
