"""Devices in use, as bits of the pools that nodes see."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from roadstead.devices import DeviceGates, DevicePools, DevicesInUse
from roadstead.facts.devices import AllocatedDevice, Allocation
from roadstead.protocol.quantity import parse_quantity
from tests.devices.making import GPU, NODE, device, slice_of

NAMES = [f"d{n}" for n in range(6)]


def allocation(*names, **more):
    return Allocation(tuple(AllocatedDevice("r", GPU, "p0", name, **more) for name in names))


def pool():
    pools = DevicePools(DeviceGates())
    pools.put(slice_of(*map(device, NAMES)))
    return pools.seen_from(NODE, ())[0]


def test_devices_are_in_use_until_their_allocation_is_removed():
    in_use = DevicesInUse(DeviceGates())
    in_use.add(allocation("d0", "d3"))
    assert in_use.bits(pool()) == 0b1001
    assert (GPU, "p0", "d3") in in_use
    in_use.remove(allocation("d3"))
    assert in_use.ids() == {(GPU, "p0", "d0")}


def test_two_allocations_of_one_device_count_once_as_upstream():
    in_use = DevicesInUse(DeviceGates())
    in_use.add(allocation("d0"))
    in_use.add(allocation("d0"))
    in_use.remove(allocation("d0"))
    assert in_use.ids() == frozenset()


def test_devices_under_admin_access_are_not_in_use():
    in_use = DevicesInUse(DeviceGates())
    in_use.add(allocation("d0", has_admin_access=True))
    assert in_use.ids() == frozenset()


def test_shared_devices_are_counted_by_consumed_capacity():
    in_use = DevicesInUse(DeviceGates(consumable_capacity=True))
    shared = allocation("d0", share_id="a", consumed=(("memory", "1Gi"),))
    in_use.add(shared)
    in_use.add(shared)
    assert in_use.consumed((GPU, "p0", "d0")) == {"memory": parse_quantity("2Gi")}
    assert in_use.ids() == frozenset()
    in_use.remove(shared)
    assert in_use.consumed((GPU, "p0", "d0")) == {"memory": parse_quantity("1Gi")}
    plain = DevicesInUse(DeviceGates())
    plain.add(shared)
    assert plain.ids() == {(GPU, "p0", "d0")}, "without the gate shares are devices in use"


def test_the_consumption_of_a_pool_counts_devices_that_a_node_does_not_reach():
    """Nodes that reach other devices of the pool have the same key, which changes with each."""
    in_use = DevicesInUse(DeviceGates(consumable_capacity=True))
    reached, other = pool(), replace(pool(), devices=())
    keys = [in_use.consumption_key(other)]
    for _ in range(2):
        in_use.add(allocation("d0", share_id="a", consumed=(("memory", "1Gi"),)))
        # The node that reaches none of the devices is the first to compute the key.
        keys.append(in_use.consumption_key(other))
        assert in_use.consumption_key(reached) == keys[-1]

    assert len(set(keys)) == 3


def test_watchers_receive_the_pool_of_each_device_that_changed():
    in_use = DevicesInUse(DeviceGates())
    changed = []
    in_use.watch(changed.append)
    in_use.add(allocation("d0", "d1"))
    in_use.add(allocation("d0"))
    assert changed == [(GPU, "p0")] * 2


@given(
    st.lists(st.tuples(st.sampled_from([*NAMES, "gone"]), st.booleans()), max_size=40), st.data()
)
def test_updated_bits_equal_newly_computed_ones(changes, data):
    """The bits cached in a pool follow the changes, also of several owners and long ago."""
    kept, owners = pool(), [DevicesInUse(DeviceGates()) for _ in range(2)]
    for name, is_used in changes:
        in_use = data.draw(st.sampled_from(owners))
        change = in_use.add if is_used else in_use.remove
        for _ in range(data.draw(st.sampled_from([1, 1, 1, 700]))):
            in_use.add(allocation("other"))
            in_use.remove(allocation("other"))
        change(allocation(name))
        if data.draw(st.booleans()):
            assert in_use.bits(kept) == in_use.bits(pool())
    for in_use in owners:
        assert in_use.bits(kept) == in_use.bits(pool())
