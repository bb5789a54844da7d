"""The binder's check of devices that are shared: counters of a slice, capacities of a device."""

from dataclasses import replace

from roadstead.devices.gates import DeviceGates
from roadstead.devices.state import DeviceState
from roadstead.facts.devices import (
    AllocatedDevice,
    Allocation,
    CounterSetFacts,
    DeviceCapacity,
    DeviceFacts,
)
from tests.devices.fleet import DRIVER, claim, devices, slice_of

GATES = DeviceGates(partitionable=True, consumable_capacity=True)
SLOTS = CounterSetFacts("set", (("slots", "4"),))


def partition(name, slots):
    return DeviceFacts(name, consumes=(CounterSetFacts("set", (("slots", str(slots)),)),))


def state(*facts, gates=GATES):
    """The state of one node's slice, whose devices share four slots."""
    whole = replace(slice_of("n1", shared_counters=(SLOTS,)), devices=facts)
    return DeviceState(devices(slices=[whole]), gates)


def allocated(name, *results):
    return claim(name, allocation=Allocation(tuple(results)))


def on(device, **more):
    return AllocatedDevice("r", DRIVER, "n1", device, **more)


def share(amount, number):
    return on("s", share_id=f"share-{number}", consumed=(("bandwidth", str(amount)),))


def test_partitions_of_two_claims_may_use_all_slots_and_not_more():
    found = state(partition("half", 2), partition("other", 2), partition("small", 1))
    found.apply([allocated("a", on("half"))])

    assert found.are_free([allocated("b", on("other"))])
    assert not found.are_free([allocated("b", on("other"), on("small"))]), "five of four slots"
    found.apply([allocated("b", on("other"))])
    assert not found.are_free([allocated("c", on("small"))])
    assert found.are_free([allocated("c", on("small", has_admin_access=True))])


def test_shares_of_a_device_may_consume_its_capacity_and_not_more():
    device = DeviceFacts("s", capacity=(DeviceCapacity("bandwidth", "8"),), allows_several=True)
    found = state(device)
    found.apply([allocated("a", share(5, 1))])

    assert found.are_free([allocated("b", share(3, 1))])
    assert not found.are_free([allocated("b", share(4, 1))])
    assert not found.are_free([allocated("b", share(2, 1)), allocated("c", share(2, 1))])
    found.apply([], ["default/a"])
    assert found.are_free([allocated("b", share(8, 1))])


def test_a_capacity_or_a_device_that_does_not_exist_has_no_room():
    device = DeviceFacts("s", allows_several=True)
    found = state(device)

    assert not found.are_free([allocated("b", share(1, 1))])
    assert not found.are_free([allocated("b", on("nothing"))])


def test_only_the_newest_generation_of_a_pool_counts():
    old = replace(slice_of("n1", "gone"), name="old")
    new = replace(slice_of("n1", "here"), generation=2)
    found = DeviceState(devices(slices=[old, new]), GATES)

    assert found.are_free([allocated("a", on("here"))])
    assert not found.are_free([allocated("a", on("gone"))])


def test_without_the_gates_devices_alone_are_compared():
    found = state(partition("half", 4), partition("other", 4), gates=DeviceGates())
    found.apply([allocated("a", on("half"))])

    assert found.are_free([allocated("b", on("other"))])
