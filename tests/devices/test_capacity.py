"""Capacity of shared devices that requests consume; upstream's reads of the wrong device."""

import pytest

from roadstead.devices import AllocatorPanic
from roadstead.devices.capacity import Consumed, consumption, fits, parsed
from roadstead.facts.devices import DeviceCapacity, DeviceFacts, RequestPolicy
from roadstead.protocol.quantity import parse_quantity
from tests.devices.making import allocate, allocator, claim, devices_of, request, slice_of

RANGE = RequestPolicy(minimum="2Gi", maximum="8Gi", step="2Gi", default="4Gi")
VALID = RequestPolicy(valid_amounts=("1Gi", "4Gi"), default="1Gi")


def shared(name="d", amount="10Gi", policy=None, *, allows_several=True):
    capacity = (DeviceCapacity("memory", amount, policy),)
    return DeviceFacts(name, capacity=capacity, allows_several=allows_several)


def memory(amount):
    return None if amount is None else (("memory", amount),)


@pytest.mark.parametrize(
    ("policy", "wanted", "consumed"),
    [
        (None, None, "10Gi"),
        (None, "3Gi", "3Gi"),
        (RANGE, None, "4Gi"),
        (RANGE, "1Gi", "2Gi"),
        (RANGE, "3Gi", "4Gi"),
        (RANGE, "4Gi", "4Gi"),
        (RequestPolicy(minimum="1Gi"), "1500Mi", "1500Mi"),
        (RequestPolicy(default="2Gi"), "3Gi", "3Gi"),
        (VALID, "2Gi", "4Gi"),
        (VALID, "5Gi", "5Gi"),
    ],
)
def test_a_policy_rounds_the_consumed_capacity(policy, wanted, consumed):
    found = consumption(shared(policy=policy), memory(wanted))
    assert found == {"memory": parse_quantity(consumed)}


@pytest.mark.parametrize(
    ("policy", "wanted", "does_fit"),
    [
        (None, "10Gi", True),
        (None, "11Gi", False),
        (RANGE, "8Gi", True),
        (RANGE, "9Gi", False),
        (VALID, "5Gi", False),
        (RequestPolicy(minimum="1Gi", maximum="2Gi", default="3Gi"), None, True),
        (RequestPolicy(maximum="2Gi", step="1Gi"), "1500Mi", False),
    ],
)
def test_a_request_fits_a_device_if_it_keeps_to_the_policy(policy, wanted, does_fit):
    assert fits(shared(policy=policy), memory(wanted), {}, {}) is does_fit


def test_capacity_consumed_by_allocations_and_the_search_is_added():
    half = {"memory": parse_quantity("4Gi")}
    assert fits(shared(), memory("2Gi"), half, half)
    assert not fits(shared(), memory("3Gi"), half, half)


def test_a_capacity_that_the_device_lacks_does_not_fit():
    assert not fits(shared(), (("cores", "1"),), {}, {})


def test_a_step_of_zero_crashes_the_real_scheduler():
    with pytest.raises(AllocatorPanic, match="integer divide by zero"):
        consumption(shared(policy=RequestPolicy(minimum="1", step="0")), memory("2"))


def test_consumed_amounts_add_up_and_unknown_names_are_not_subtracted():
    consumed = Consumed()
    consumed.add(parsed((("memory", "1Gi"),)))
    consumed.add(parsed((("memory", "1Gi"),)))
    consumed.subtract(parsed((("memory", "512Mi"), ("cores", "1"))))
    assert consumed == {"memory": parse_quantity("1536Mi")}


class TestAllocation:
    def test_claims_share_a_device_up_to_its_capacity(self):
        made = allocator(slice_of(shared()), consumable_capacity=True)
        asked = claim(request(capacity=memory("4Gi")))
        for _ in range(2):
            (found,) = allocate(made, asked)
            result = found.results[0]
            assert (result.share_id, result.consumed) == ("share-1", memory("4Gi"))
            made.in_use.add(found)
        assert allocate(made, asked) is None
        made.in_use.remove(found)
        assert allocate(made, asked) is not None

    def test_one_claim_may_get_a_device_several_times(self):
        made = allocator(slice_of(shared(), shared("e")), consumable_capacity=True)
        asked = claim(request(capacity=memory("4Gi"), count=2))
        (found,) = allocate(made, asked, new_share_id=iter("ab").__next__)
        assert [(each.device, each.share_id) for each in found.results] == [("d", "a"), ("d", "b")]

    def test_a_device_that_is_not_shared_consumes_nothing(self):
        made = allocator(slice_of(shared(allows_several=False)), consumable_capacity=True)
        (found,) = allocate(made, claim(request(capacity=memory("4Gi"))))
        assert (found.results[0].share_id, found.results[0].consumed) == (None, None)

    def test_without_the_gate_a_device_is_not_shared(self):
        made = allocator(slice_of(shared()))
        (found,) = allocate(made, claim(request()))
        made.in_use.add(found)
        assert allocate(made, claim(request())) is None

    def test_the_device_at_the_number_within_the_request_is_compared(self):
        large, small = shared("large", amount="9Gi"), shared("small", amount="1Gi")
        made = allocator(slice_of(large, small), consumable_capacity=True)
        asked = claim(request(capacity=memory("2Gi"), count=2))
        # For the second device of the request the second of the slice is looked at.
        assert devices_of(made, asked) is None

    def test_beyond_the_end_of_the_slice_the_real_scheduler_crashes(self):
        made = allocator(slice_of(shared()), consumable_capacity=True)
        with pytest.raises(AllocatorPanic, match=r"index out of range \[1\] with length 1"):
            allocate(made, claim(request(capacity=memory("1Gi"), count=2)))
