"""Utilization is the sum of pods' requests on their nodes."""

from roadstead.facts.node import NodeFacts, zone_text
from roadstead.facts.pod import PodFacts
from roadstead.report.node_use import node_use

SMALL = PodFacts(requests=(("cpu", 100), ("memory", 10)))


def node(name, **resources):
    return NodeFacts(name=name, allocatable=tuple(sorted(resources.items())), allocatable_pods=5)


def test_resources_are_cpu_memory_others_by_name_and_pods():
    use = node_use([node("a", zoo=1, cpu=2), node("b", air=3)], [], [])
    assert use.resources == ("cpu", "memory", "air", "zoo", "pods")
    assert use.allocatable.tolist() == [[2, 0, 0, 1, 5], [0, 0, 3, 0, 5]]


def test_running_pods_count_before_and_after_and_placed_ones_only_after():
    use = node_use([node("a"), node("b")], [("a", SMALL)], [("a", SMALL), ("b", SMALL)])
    assert use.before.tolist() == [[100, 10, 1], [0, 0, 0]]
    assert use.after.tolist() == [[200, 20, 2], [100, 10, 1]]


def test_pods_on_unknown_nodes_are_not_counted():
    use = node_use([node("a")], [("gone", SMALL)], [("elsewhere", SMALL)])
    assert use.after.tolist() == [[0, 0, 0]]


def test_a_resource_of_no_node_is_not_counted():
    odd = PodFacts(requests=(("cpu", 1), ("example.com/odd", 9)))
    assert node_use([node("a")], [], [("a", odd)]).after.tolist() == [[1, 0, 1]]


def test_zones_are_named_with_their_region_if_known():
    def zone_of(*labels):
        return zone_text(NodeFacts(name="n", labels=labels).zone)

    zone, region = ("topology.kubernetes.io/zone", "z"), ("topology.kubernetes.io/region", "r")
    assert zone_of(zone) == "z"
    assert zone_of(region, zone) == "r/z"
    assert zone_of(region) == "r"
    assert zone_of() == ""
