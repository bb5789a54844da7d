from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.facts.node_list import NodeList
from roadstead.nodes.partitioning import Partitioning, partitioning_over
from tests.builders import node
from tests.strategies import ZONE


def zoned(name, zone):
    return node(name, labels={ZONE: zone} if zone else {})


def fleet(**sizes):
    return [zoned(f"{zone}{i}", zone) for zone, size in sizes.items() for i in range(size)]


def names(parts):
    return [[facts.name for facts in part] for part in parts]


def test_zones_of_equal_size_each_have_their_own_partition():
    dealt = Partitioning(2).assign_first(fleet(a=2, b=2))

    assert names(dealt) == [["a0", "a1"], ["b0", "b1"]]


def test_a_zone_larger_than_a_fair_share_is_divided():
    dealt = Partitioning(2).assign_first(fleet(a=5, b=1))

    assert names(dealt) == [["a0", "a1", "a2"], ["a3", "a4", "b0"]]


def test_small_zones_share_a_shard():
    dealt = Partitioning(2).assign_first(fleet(a=4, b=2, c=2))

    assert sorted(len(part) for part in dealt) == [4, 4]
    assert {facts.zone[-1] for facts in dealt[1]} == {"b", "c"}


def test_an_empty_fleet_gives_empty_shards():
    assert Partitioning(3).assign_first([]) == [[], [], []]


def test_zero_shards_are_refused():
    with pytest.raises(AssertionError, match="at least one partition"):
        Partitioning(0)


def test_a_late_node_joins_the_smallest_shard_with_its_zone_and_space():
    partitioning = Partitioning(3)
    partitioning.assign_first(fleet(a=2, b=2, c=2))

    assert partitioning.assign(zoned("b9", "b")) == partitioning.partition_of("b0")


def test_a_late_node_joins_the_smallest_shard_if_those_of_its_zone_are_full():
    partitioning = Partitioning(2)
    partitioning.assign_first(fleet(a=2, b=1))

    assert partitioning.assign(zoned("a9", "a")) == partitioning.partition_of("b0")
    assert partitioning.sizes == [2, 2]


def test_a_known_node_keeps_its_shard_when_its_facts_change():
    partitioning = Partitioning(2)
    at = partitioning.assign(zoned("n", "a"))

    assert partitioning.assign(zoned("n", "b")) == at
    assert sum(partitioning.sizes) == 1


def test_a_removed_node_is_forgotten_and_frees_its_place():
    partitioning = Partitioning(2)
    partitioning.assign_first(fleet(a=1, b=1))

    at = partitioning.remove("a0")

    assert partitioning.sizes[at] == 0
    with pytest.raises(KeyError):
        partitioning.partition_of("a0")
    with pytest.raises(KeyError):
        partitioning.remove("a0")


@given(st.lists(st.sampled_from(["", "a", "b", "c"]), max_size=30), st.integers(1, 5))
def test_a_plan_assigns_every_node_once_and_evenly(zones, partitions):
    fleet = [zoned(f"n{i}", zone) for i, zone in enumerate(zones)]
    partitioning = Partitioning(partitions)

    dealt = partitioning.assign_first(fleet)

    assert sorted(chain(*names(dealt))) == sorted(facts.name for facts in fleet)
    assert partitioning.sizes == [len(part) for part in dealt]
    assert all(
        facts.name and partitioning.partition_of(facts.name) == at
        for at, part in enumerate(dealt)
        for facts in part
    )
    fair = -(-len(fleet) // partitions)
    assert max(partitioning.sizes) <= 2 * fair


@given(st.integers(1, 3), st.lists(st.sampled_from("abc"), max_size=12), st.integers(0, 12))
def test_nodes_assigned_by_a_plan_are_in_the_returned_shards(partitions, zones, first):
    nodes = NodeList.of(zoned(f"n{place}", zone) for place, zone in enumerate(zones))
    partitioning = partitioning_over(partitions)

    for part in (nodes[:first], nodes[first:]):
        dealt = partitioning.assign_all(part)

        assert sorted(chain.from_iterable(each.tolist() for each in dealt)) == [*range(len(part))]
        for partition, places in enumerate(dealt):
            assert {partitioning.partition_of(part.names[place]) for place in places} <= {partition}


def test_a_single_shard_needs_no_state():
    partitioning = partitioning_over(1)

    assert partitioning.assign_first([zoned("n", "a")]) == [[zoned("n", "a")]]
    assert (
        partitioning.assign(zoned("n", "a"))
        == partitioning.remove("n")
        == partitioning.partition_of("n")
        == 0
    )
