"""Slices of a node by pool, of the newest generation, in upstream's fixed order."""

import pytest

from roadstead.devices import AllocationError, DeviceGates, DevicePools
from roadstead.facts.devices import Placement
from roadstead.facts.selectors import NodeSelectorTerm, Requirement
from tests.devices.making import EVERYWHERE, HERE, NODE, device, slice_of
from tests.inside import objects_in

ELSEWHERE = Placement(node_name="n1")
ZONE_A = Placement(terms=(NodeSelectorTerm((Requirement("zone", "In", ("a",)),)),))
BROKEN = Placement(terms=(NodeSelectorTerm(error="bad", errors=("bad",)),))


def pools_of(*slices, **gates):
    pools = DevicePools(DeviceGates(**gates))
    pools.replace(slices)
    return pools


def seen(pools, node=NODE, labels=()):
    """Return the names of devices by pool."""
    return {
        str(pool): [each.facts.name for each in pool.devices]
        for pool in pools.seen_from(node, labels)
    }


def test_a_node_sees_its_own_slices_and_those_that_all_or_matching_nodes_reach():
    pools = pools_of(
        slice_of(device("here"), name="a", pool="p0"),
        slice_of(device("there"), name="b", pool="p1", place=ELSEWHERE),
        slice_of(device("all"), name="c", pool="p2", place=EVERYWHERE),
        slice_of(device("zone"), name="d", pool="p3", place=ZONE_A),
        slice_of(device("nowhere"), name="e", pool="p4", place=Placement()),
    )
    assert set(seen(pools)) == {"gpu.example.com/p0", "gpu.example.com/p2"}
    assert set(seen(pools, "n1", (("zone", "a"),))) == {
        "gpu.example.com/p1",
        "gpu.example.com/p2",
        "gpu.example.com/p3",
    }


def test_pools_are_ordered_by_driver_and_name_and_slices_by_name():
    pools = pools_of(
        slice_of(device("d2"), name="s2", driver="b", pool="p", slices_in_pool=2),
        slice_of(device("d1"), name="s1", driver="b", pool="p", slices_in_pool=2),
        slice_of(device("x"), name="s0", driver="b", pool="o"),
        slice_of(device("y"), name="s9", driver="a", pool="z"),
    )
    assert list(seen(pools).items()) == [("a/z", ["y"]), ("b/o", ["x"]), ("b/p", ["d1", "d2"])]


def test_pools_with_binding_conditions_are_last():
    slow = device("slow", binding_conditions=("Ready",))
    pools = pools_of(
        slice_of(slow, name="s0", pool="a", slices_in_pool=2),
        slice_of(device("fast"), name="s1", pool="a", slices_in_pool=2),
        slice_of(device("other"), name="s2", pool="b"),
    )
    assert list(seen(pools).values()) == [["other"], ["fast", "slow"]]


class TestGenerations:
    def test_the_newest_generation_replaces_older_ones(self):
        pools = pools_of(
            slice_of(device("old"), name="s0"),
            slice_of(device("new"), name="s1", generation=2),
            slice_of(device("older"), name="s2"),
        )
        assert list(seen(pools).values()) == [["new"]]

    def test_an_old_slice_that_is_seen_alone_is_current(self):
        pools = pools_of(
            slice_of(device("old"), name="s0"),
            slice_of(device("new"), name="s1", generation=2, place=ELSEWHERE),
        )
        assert list(seen(pools).values()) == [["old"]]

    def test_a_pool_is_complete_if_the_node_sees_as_many_slices_as_it_has(self):
        pools = pools_of(
            slice_of(device("a"), name="s0", slices_in_pool=2),
            slice_of(device("b"), name="s1", slices_in_pool=2, place=ELSEWHERE),
        )
        assert [pool.is_incomplete for pool in pools.seen_from(NODE, ())] == [True]

    def test_a_device_name_that_occurs_twice_makes_a_pool_invalid(self):
        pools = pools_of(slice_of(device("a"), device("b"), device("a"), device("b")))
        assert [pool.invalid for pool in pools.seen_from(NODE, ())] == ["duplicate device name a"]


class TestPlacementOfDevices:
    SLICE = slice_of(
        device("mine", placement=HERE),
        device("other", placement=ELSEWHERE),
        place=Placement(),
        placed_per_device=True,
    )

    def test_a_slice_is_seen_if_any_of_its_devices_is_reached(self):
        pools = pools_of(self.SLICE, partitionable=True)
        assert list(seen(pools).values()) == [["mine", "other"]]
        assert seen(pools, "n2") == {}

    @pytest.mark.parametrize("value", [True, False])
    def test_without_the_gate_the_slice_is_ignored(self, value):
        place = EVERYWHERE if value is False else Placement()
        found = slice_of(device("a"), place=place, placed_per_device=value)
        assert seen(pools_of(found)) == {}

    def test_a_node_selector_that_does_not_parse_is_an_error_of_the_node(self):
        pools = pools_of(slice_of(device("a"), place=BROKEN, name="s7"))
        text = "gather pool information: failed to perform node selection for slice s7: "
        with pytest.raises(AllocationError, match=text):
            pools.seen_from(NODE, ())


class TestChanges:
    def test_pools_are_gathered_again_only_after_a_change_that_the_node_may_see(self):
        pools = pools_of(
            slice_of(device("a"), name="s0", pool="p0"),
            slice_of(device("b"), name="s1", pool="p1", place=ELSEWHERE),
        )
        mine, theirs = pools.seen_from(NODE, ()), pools.seen_from("n1", ())
        pools.put(slice_of(device("c"), name="s1", pool="p1", place=ELSEWHERE))
        assert pools.seen_from(NODE, ()) is mine
        assert pools.seen_from("n1", ()) is not theirs
        pools.put(slice_of(device("d"), name="s2", pool="p2", place=EVERYWHERE))
        assert pools.seen_from(NODE, ()) is not mine

    def test_removed_slices_and_nodes_are_not_remembered(self):
        pools = pools_of()
        for number in range(3):
            node = f"n{number}"
            pools.put(slice_of(device("a"), name=f"s{number}", place=Placement(node_name=node)))
            pools.seen_from(node, ())
            pools.remove(f"s{number}")
            pools.seen_from(node, ())
            pools.forget_node(node)
        # The slices' devices stay for a time, up to a bound.
        assert [each for each in objects_in(pools, str) if each[:1] in ("n", "s")] == []

    def test_an_equal_slice_changes_nothing(self):
        pools = pools_of(slice_of(device("a")))
        before = pools.seen_from(NODE, ())
        pools.replace([slice_of(device("a"))])
        assert pools.seen_from(NODE, ()) is before

    def test_other_labels_of_a_node_are_noticed(self):
        pools = pools_of(slice_of(device("a"), place=ZONE_A))
        assert seen(pools, labels=(("zone", "b"),)) == {}
        assert list(seen(pools, labels=(("zone", "a"),)).values()) == [["a"]]

    def test_nodes_that_see_the_same_slices_share_the_pool(self):
        pools = pools_of(slice_of(device("a"), place=EVERYWHERE))
        assert pools.seen_from("n1", ())[0] is pools.seen_from("n2", ())[0]

    def test_watchers_receive_the_only_node_that_sees_a_change(self):
        pools = pools_of()
        nodes = []
        pools.watch(nodes.append)
        pools.put(slice_of(device("a"), name="s0"))
        pools.put(slice_of(device("a"), name="s1", place=EVERYWHERE))
        pools.remove("s0")
        pools.remove("unknown")
        assert nodes == [NODE, None, NODE]
