"""The lines of an explanation: which devices match a request, and why they are not free."""

from dataclasses import replace

import pytest

from roadstead.devices.gates import DeviceGates
from roadstead.devices.shortage import shortages
from roadstead.devices.state import DeviceState
from roadstead.facts.devices import (
    ALL_DEVICES,
    AllocatedDevice,
    Allocation,
    ClaimSpec,
    CounterSetFacts,
    DeviceFacts,
    DeviceRequest,
    ExactRequest,
)
from roadstead.facts.taints import Taint, Toleration
from tests.devices.fleet import DRIVER, N1, N2, claim, devices, slice_of

BAD = Taint("bad", "", "NoSchedule")
TOLERATES = (Toleration("bad", "Exists"),)


def lines(*wanted, slices=(), used=(), **gates):
    """Return the lines for a claim. used: names of devices of n1 in use."""
    asked = claim("c", spec=ClaimSpec(tuple(wanted)))
    holders = [
        claim(f"h-{name}", allocation=Allocation((AllocatedDevice("r", DRIVER, "n1", name),)))
        for name in used
    ]
    state = DeviceState(devices(asked, *holders, slices=slices), DeviceGates(**gates))
    return list(shortages(state.allocator, state.allocator.plan((asked,)), (N1, N2)))


def n1_with(**fields):
    return (replace(slice_of("n1"), devices=(DeviceFacts("d0", **fields),)),)


ONE = DeviceRequest("r", "gpu")


def test_a_line_counts_devices_that_match_and_are_in_use():
    slices = slice_of("n1", "d0", "d1"), slice_of("n2", "d0")
    assert lines(replace(ONE, count=2), slices=slices, used=["d1"]) == [
        "default/c, request r (2 devices of class gpu): 3 match, 1 of them in use, "
        "too few free on 2 of 2 nodes"
    ]


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        (
            {"consumes": (CounterSetFacts("s", ()),)},
            "cannot be used without DRAPartitionableDevices: true",
        ),
        (
            {"binding_conditions": ("a",)},
            "cannot be used without DRADeviceBindingConditions: true",
        ),
    ],
)
def test_a_line_names_the_gate_that_hides_devices(fields, why):
    (line,) = lines(ONE, slices=n1_with(**fields))
    assert f"1 match, 1 of them {why}, too few" in line


def test_a_line_counts_devices_with_taints():
    slices = n1_with(taints=(BAD,))
    (line,) = lines(ONE, slices=slices, taints=True)
    assert "1 of them not used because of taints" in line
    for found in (
        lines(replace(ONE, tolerations=TOLERATES), slices=slices, taints=True),
        lines(ONE, slices=slices),
    ):
        assert "1 match, too few free on 1 of 2 nodes, enough free on 1, where" in found[0]


def test_each_alternative_has_a_line():
    forms = ExactRequest("two", "gpu", count=2), ExactRequest("all", "gpu", mode=ALL_DEVICES)
    found = lines(DeviceRequest("r", alternatives=forms), slices=(slice_of("n1", "d0"),))
    assert [each.partition(":")[0] for each in found] == [
        "default/c, request r/two (2 devices of class gpu)",
        "default/c, request r/all (all devices of class gpu)",
    ]


def test_devices_in_use_are_free_for_admins():
    slices, admin = (slice_of("n1", "d0"),), replace(ONE, has_admin_access=True)
    (line,) = lines(admin, slices=slices, used=["d0"])
    assert "1 match, too few free on 1 of 2 nodes" in line
