"""Devices of a slice share counters; a refused device keeps what it consumed, as upstream."""

from hypothesis import given
from hypothesis import strategies as st

from roadstead.facts.devices import CounterSetFacts, DeviceConstraint, Placement
from roadstead.facts.taints import Taint
from tests.devices.making import (
    GPU,
    HERE,
    NODE,
    allocate,
    allocator,
    claim,
    device,
    devices_of,
    request,
    slice_of,
)


def slots(number, name="set"):
    return (CounterSetFacts(name, (("slots", str(number)),)),)


def partition(name, number, **more):
    return device(name, consumes=slots(number), **more)


def shared(*devices, number=4, **more):
    return slice_of(*devices, shared_counters=slots(number), **more)


def test_a_device_that_consumes_more_than_is_left_is_passed_over():
    made = allocator(
        shared(partition("half", 2), partition("whole", 4), partition("other", 2)),
        partitionable=True,
    )
    assert devices_of(made, claim(request(count=2))) == [[("r", "half"), ("r", "other")]]


def test_devices_in_use_have_consumed_counters():
    made = allocator(shared(partition("half", 2), partition("whole", 4)), partitionable=True)
    (first,) = allocate(made, claim(request()))
    made.in_use.add(first)
    assert allocate(made, claim(request())) is None
    made.in_use.remove(first)
    assert allocate(made, claim(request())) is not None


def test_without_the_gate_such_a_device_is_not_allocated():
    made = allocator(slice_of(partition("a", 1), device("b")))
    assert devices_of(made, claim(request())) == [[("r", "b")]]
    assert devices_of(made, claim(request(mode="All", count=0))) is None


def test_a_counter_that_the_slice_lacks_is_no_limit():
    made = allocator(slice_of(partition("a", 9)), partitionable=True)
    assert devices_of(made, claim(request())) == [[("r", "a")]]


def test_a_device_that_a_taint_refuses_keeps_its_counters():
    tainted = partition("tainted", 3, taints=(Taint("bad", "", "NoSchedule"),))
    found = shared(tainted, partition("good", 2))
    made = allocator(found, partitionable=True, taints=True)
    assert devices_of(made, claim(request())) is None
    assert devices_of(allocator(found, partitionable=True), claim(request(count=1))) is not None


def test_a_device_that_a_constraint_refuses_keeps_its_counters():
    numa = DeviceConstraint(match_attribute=f"{GPU}/numa")
    made = allocator(shared(partition("x", 3), partition("y", 2, numa=0)), partitionable=True)
    assert devices_of(made, claim(request(), constraints=[numa])) is None


def test_a_device_placed_on_its_own_is_used_only_where_it_is_reached():
    made = allocator(
        slice_of(
            device("there", placement=Placement(node_name="n1")),
            device("here", placement=HERE),
            place=Placement(),
            placed_per_device=True,
        ),
        partitionable=True,
    )
    assert devices_of(made, claim(request())) == [[("r", "here")]]
    assert devices_of(made, claim(request()), node="n1") == [[("r", "there")]]


@given(st.data())
def test_counters_are_never_overdrawn_and_no_device_is_given_twice(data):
    """Whatever is allocated and given back, in any order."""
    amounts = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=5))
    devices = [partition(f"d{n}", amount) for n, amount in enumerate(amounts)]
    made = allocator(shared(*devices, number=5), partitionable=True)
    allocated = []
    for _ in range(data.draw(st.integers(1, 12))):
        if allocated and data.draw(st.booleans()):
            index = data.draw(st.integers(0, len(allocated) - 1))
            made.in_use.remove(allocated.pop(index))
            continue
        found = allocate(made, claim(request(count=data.draw(st.integers(1, 2)))), node=NODE)
        if found is not None:
            made.in_use.add(found[0])
            allocated.append(found[0])
        names = [result.device for each in allocated for result in each.results]
        assert len(set(names)) == len(names), "a device was given twice"
        assert sum(amounts[int(name[1:])] for name in names) <= 5, "a counter is overdrawn"
