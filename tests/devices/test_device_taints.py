"""Taints of devices must be tolerated by the request; rules add taints to devices."""

import pytest

from roadstead.devices.device_taints import tainted
from roadstead.devices.selectors import SelectorResults
from roadstead.facts.devices import DeviceClassFacts, DeviceTaintRule
from roadstead.facts.taints import Taint, Toleration
from tests.devices.making import (
    GPU,
    allocator,
    claim,
    compile_stub,
    device,
    devices_of,
    driver_is,
    model_is,
    request,
    slice_of,
)

BAD = Taint("bad", "yes", "NoSchedule")
WORSE = Taint("worse", "", "NoExecute")
SLICE = slice_of(device("a", model="x"), device("b"))
CLASSES = {
    "gpu": DeviceClassFacts("gpu", (driver_is(GPU),)),
    "odd": DeviceClassFacts("odd", ("1",)),
}


def tainted_devices(**criteria):
    rule = DeviceTaintRule("rule", BAD, **criteria)
    found = tainted(SLICE, [rule], CLASSES, SelectorResults(compile_stub))
    return None if found is None else [each.name for each in found.devices if each.taints]


@pytest.mark.parametrize(
    ("criteria", "names"),
    [
        ({}, ["a", "b"]),
        ({"driver": GPU}, ["a", "b"]),
        ({"driver": "other"}, []),
        ({"pool": "p1"}, []),
        ({"device": "b"}, ["b"]),
        ({"device_class": "gpu"}, ["a", "b"]),
        ({"device_class": "gone"}, []),
        ({"selectors": (model_is("x"),)}, ["a"]),
        ({"selectors": ("true", driver_is("other"))}, []),
    ],
    ids=str,
)
def test_a_rule_taints_the_devices_that_match_all_its_criteria(criteria, names):
    assert tainted_devices(**criteria) == names


@pytest.mark.parametrize("criteria", [{"selectors": ("1",)}, {"device_class": "odd"}], ids=str)
def test_a_rule_that_does_not_compile_drops_the_slice(criteria):
    assert tainted_devices(**criteria) is None
    assert tainted_devices(device="unknown", **criteria) == []


def test_a_slice_that_no_rule_concerns_stays_itself():
    rule = DeviceTaintRule("rule", BAD, pool="other")
    assert tainted(SLICE, [rule], CLASSES, SelectorResults(compile_stub)) is SLICE


def test_taints_of_several_rules_add_up():
    rules = [DeviceTaintRule("one", BAD), DeviceTaintRule("two", WORSE, device="a")]
    found = tainted(SLICE, rules, CLASSES, SelectorResults(compile_stub))
    assert [each.taints for each in found.devices] == [(BAD, WORSE), (BAD,)]


class TestAllocation:
    FOUND = slice_of(device("a", taints=(BAD, WORSE)), device("b", taints=(BAD,)), device("c"))

    @pytest.mark.parametrize(
        ("tolerations", "chosen"),
        [
            ((), "c"),
            ((Toleration("bad", "Equal", "yes"),), "b"),
            ((Toleration("bad", "Equal", "no"),), "c"),
            ((Toleration("bad", "Exists"), Toleration("worse", "Exists")), "a"),
            ((Toleration(operator="Exists", effect="NoSchedule"),), "b"),
        ],
    )
    def test_every_taint_must_be_tolerated(self, tolerations, chosen):
        made = allocator(self.FOUND, taints=True)
        assert devices_of(made, claim(request(tolerations=tolerations))) == [[("r", chosen)]]

    def test_without_the_gate_taints_are_ignored(self):
        assert devices_of(allocator(self.FOUND), claim(request())) == [[("r", "a")]]
