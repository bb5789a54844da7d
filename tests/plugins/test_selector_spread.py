import pytest

from roadstead.facts.cluster import ClusterFacts, SelectsPods
from roadstead.facts.pod import Owner, SpreadConstraint
from roadstead.facts.selectors import LabelSelector
from roadstead.framework.plugin import Handle, Reads
from roadstead.nodes.pod_class import PodClasses
from roadstead.plugins.selector_spread import CountsByZone, SelectorSpread
from tests.builders import (
    found_before_score,
    is_affected,
    node,
    pod,
    put,
    require,
    score_with,
    table_of,
)

ZONE = "topology.kubernetes.io/zone"
WEB = LabelSelector((require("app", "In", "web"),))
SERVICE = SelectsPods("Service", "default", "web", WEB)
OWN = SpreadConstraint("rack", 1, "ScheduleAnyway", WEB, 1, "Honor", "Ignore", ())


def web(**facts):
    return pod(labels={"app": "web"}, **facts)


def spread_over(*counts, zones=()):
    """Return a table whose nodes n1, n2 … have these numbers of the service's pods."""
    zones = zones or (None,) * len(counts)
    names = [f"n{number + 1}" for number in range(len(counts))]
    table = table_of(
        *(
            node(name, labels={ZONE: zone} if zone else {})
            for name, zone in zip(names, zones, strict=True)
        )
    )
    for name, count in zip(names, counts, strict=True):
        put(table, name, *[web()] * count)
    return table


def plugin(*selecting):
    return SelectorSpread(Handle(PodClasses(), ClusterFacts((), selecting or (SERVICE,))))


def scored(facts, table, *selecting):
    return score_with(plugin(*selecting), facts, table)


@pytest.mark.parametrize(
    ("counts", "scores"),
    [
        ((0, 0), [100, 100]),
        ((1, 0), [0, 100]),
        ((1, 1), [0, 0]),
        ((2, 1), [0, 50]),
        ((3, 1, 0), [0, 66, 100]),
    ],
)
def test_without_zones_the_fullest_node_scores_zero(counts, scores):
    assert scored(web(), spread_over(*counts)) == scores


@pytest.mark.parametrize(
    ("counts", "zones", "scores"),
    [
        ((0, 0, 0), "abc", [100, 100, 100]),
        ((1, 0, 0), "abc", [0, 100, 100]),
        ((1, 0, 0), "aab", [0, 33, 100]),
        ((2, 2, 0), "abb", [0, 0, 33]),
        ((1, 1, 2, 0), "aabb", [16, 16, 0, 33]),
    ],
)
def test_the_zone_has_two_thirds_of_the_weight_and_the_node_one(counts, zones, scores):
    assert scored(web(), spread_over(*counts, zones=tuple(zones))) == scores


def test_a_node_without_a_zone_is_scored_alone():
    table = spread_over(2, 1, 1, zones=("a", None, "b"))

    assert scored(web(), table) == [0, 50, 50]


def test_only_non_terminating_pods_of_the_namespace_are_counted():
    table = spread_over(0, 0)
    put(table, "n1", web(namespace="other"), web(is_terminating=True), pod())
    put(table, "n2", web())

    assert scored(web(), table) == [100, 0]


def test_all_nodes_score_equally_for_a_pod_without_a_selector():
    assert scored(pod(), spread_over(2, 1)) == [100, 100]


def test_pods_of_controllers_are_spread_too():
    owner = Owner("ReplicationController", "rc", "u", "v1")
    controller = SelectsPods("ReplicationController", "default", "rc", WEB)

    assert scored(pod(owner=owner), spread_over(1, 0), controller) == [0, 100]


def test_a_pod_with_its_own_spread_constraints_is_skipped():
    assert scored(web(spread_constraints=(OWN,)), spread_over(1, 0)) is None


def test_only_pods_on_feasible_nodes_are_counted():
    table = spread_over(0, 0)
    spread = plugin()
    pod_class = table.classes.pod_class(web())

    put(table, "n1", web())

    assert found_before_score(spread, pod_class, table) == CountsByZone(1, {})
    assert found_before_score(spread, pod_class, table, table.pod_count == 0) == CountsByZone(0, {})


def test_any_placement_affects_a_spread_pod():
    spread, pod_class = plugin(), PodClasses().pod_class

    assert is_affected(spread, pod_class(web()), pod_class(pod()))
    assert not is_affected(spread, pod_class(pod()), pod_class(web()))
    assert not is_affected(spread, pod_class(web(spread_constraints=(OWN,))), pod_class(web()))


def test_the_signature_is_the_selector_and_the_namespace():
    sign = plugin().sign

    assert sign(web()) == sign(web(cpu=7, priority=3))
    assert sign(pod()) == sign(pod(namespace="other", labels={"app": "db"}))
    assert len({sign(web()), sign(pod()), sign(web(spread_constraints=(OWN,)))}) == 3
    assert plugin().reads is Reads.CLUSTER
