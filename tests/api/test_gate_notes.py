"""Notes on devices and claims of which parts are not used, because a feature gate is off."""

from dataclasses import replace

import pytest

from roadstead.api.gate_notes import gate_notes
from roadstead.devices.gates import GATE_NAMES, gates_of
from roadstead.facts.devices import (
    ClaimSpec,
    CounterSetFacts,
    DeviceClassFacts,
    DeviceFacts,
    DeviceRequest,
    DeviceTaintRule,
    ExactRequest,
)
from roadstead.facts.taints import Taint
from tests.devices.fleet import claim, devices, slice_of

BAD = Taint("bad", "", "NoSchedule")
ALL_ON = gates_of((name, True) for name in GATE_NAMES)


def of_device(**fields):
    return devices(slices=[replace(slice_of("s"), devices=(DeviceFacts("d", **fields),))])


def of_claim(**fields):
    return devices(claim("c", spec=ClaimSpec((DeviceRequest("r", "gpu", **fields),))))


NEEDS = [
    ("DRAPrioritizedList", of_claim(alternatives=(ExactRequest("a", "gpu"),)), "firstAvailable: 1"),
    ("DRAAdminAccess", of_claim(has_admin_access=True), "adminAccess: 1"),
    ("DRAConsumableCapacity", of_claim(capacity=(("m", "1"),)), "part of a capacity: 1"),
    ("DRAConsumableCapacity", of_device(allows_several=True), "several claims may share: 1"),
    ("DRAPartitionableDevices", of_device(consumes=(CounterSetFacts("s", ()),)), "counters: 1"),
    (
        "DRAPartitionableDevices",
        devices(slices=[slice_of("s", placed_per_device=True)]),
        "perDeviceNodeSelection: 1",
    ),
    ("DRADeviceTaints", of_device(taints=(BAD,)), "devices with taints: 1"),
    (
        "DRADeviceTaints",
        replace(devices(), taint_rules=(DeviceTaintRule("t", BAD),)),
        "DeviceTaintRules: 1",
    ),
    (
        "DRAExtendedResource",
        devices(classes=[DeviceClassFacts("gpu", extended_resource="example.com/gpu")]),
        "extendedResourceName: 1",
    ),
    ("DRADeviceBindingConditions", of_device(binding_conditions=("a",)), "bindingConditions: 1"),
]


@pytest.mark.parametrize(("gate", "facts", "text"), NEEDS, ids=[text for _, _, text in NEEDS])
def test_a_note_names_the_gate_without_which_a_field_is_not_used(gate, facts, text):
    (note,) = gate_notes(facts, gates_of([(gate, False)]))
    assert note.startswith("featureGates: ")
    assert text in note
    assert f"Without {gate}: true, " in note
    assert list(gate_notes(facts, ALL_ON)) == []


def test_devices_without_such_fields_have_no_note():
    gates = gates_of((name, False) for name in GATE_NAMES)
    assert list(gate_notes(devices(claim("c")), gates)) == []
    allocated = replace(of_claim(has_admin_access=True).claims[0], allocation=object())
    assert list(gate_notes(devices(allocated), gates)) == []
