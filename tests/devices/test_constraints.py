"""Constraints compare attributes of devices as upstream does."""

import pytest

from roadstead.devices.constraints import DistinctAttribute, MatchAttribute, constraint_of
from roadstead.devices.pools import PoolDevice
from roadstead.facts.devices import AttributeFacts, DeviceConstraint, DeviceFacts
from tests.devices.making import GPU, slice_of


def pool_device(*attributes: tuple[str, str, object], name="d", driver=GPU) -> PoolDevice:
    facts = DeviceFacts(name, tuple(AttributeFacts(*each) for each in attributes))
    return PoolDevice((driver, "p", name), facts, slice_of(facts, driver=driver))


def match(name=f"{GPU}/numa", requests=()):
    return constraint_of(DeviceConstraint(requests, match_attribute=name))


def add_all(constraint, *devices, request="r", alternative=""):
    return [constraint.add(request, alternative, each) for each in devices]


class TestMatchAttribute:
    def test_all_devices_need_the_value_of_the_first(self):
        one, same, other = (pool_device(("numa", "int", value)) for value in (1, 1, 2))
        assert add_all(match(), one, same, other, one) == [True, True, False, True]

    def test_values_of_different_types_differ(self):
        one, yes = pool_device(("numa", "int", 1)), pool_device(("numa", "bool", True))
        assert add_all(match(), one, yes) == [True, False]

    def test_versions_are_compared_as_texts(self):
        plain = pool_device(("numa", "version", "1.0.0"))
        built = pool_device(("numa", "version", "1.0.0+b"))
        assert add_all(match(), plain, built) == [True, False]

    def test_a_qualified_name_comes_before_the_bare_name_in_the_domain_of_the_driver(self):
        both = pool_device((f"{GPU}/numa", "int", 1), ("numa", "int", 2))
        assert add_all(match(), both, pool_device(("numa", "int", 1))) == [True, True]

    def test_a_bare_name_belongs_to_the_domain_of_the_driver_only(self):
        assert add_all(match("other/numa"), pool_device(("numa", "int", 1))) == [False]
        assert add_all(match("numa"), pool_device(("numa", "int", 1))) == [True]

    def test_a_missing_attribute_never_matches(self):
        assert add_all(match(), pool_device()) == [False]

    def test_an_attribute_without_value_may_only_be_the_first(self):
        empty = pool_device(("numa", "", ""))
        assert add_all(match(), empty, empty) == [True, False]

    def test_without_devices_any_value_is_accepted_again(self):
        constraint = match()
        one, two = (pool_device(("numa", "int", value)) for value in (1, 2))
        assert constraint.add("r", "", one)
        constraint.remove("r", "", one)
        assert constraint.add("r", "", two)


@pytest.mark.parametrize(
    ("requests", "concerned"),
    [((), True), (("r",), True), (("r/alt",), True), (("other",), False), (("r/more",), False)],
)
def test_requests_are_named_with_or_without_their_alternative(requests, concerned):
    constraint = match(requests=requests)
    assert add_all(constraint, pool_device(), request="r", alternative="alt") == [not concerned]


class TestDistinctAttribute:
    def distinct(self):
        return constraint_of(DeviceConstraint(distinct_attribute=f"{GPU}/numa"))

    def test_only_the_same_device_has_an_equal_value(self):
        constraint = self.distinct()
        one, same = (pool_device(("numa", "int", 1), name=name) for name in "ab")
        assert add_all(constraint, one, same) == [True, True]
        assert not constraint.add("other", "", same)

    def test_only_the_last_device_of_a_request_is_remembered(self):
        constraint = self.distinct()
        one, two = (pool_device(("numa", "int", 1), name=name) for name in "ab")
        assert add_all(constraint, one, two, one) == [True, True, True]

    def test_the_attribute_must_exist(self):
        assert add_all(self.distinct(), pool_device()) == [False]

    def test_a_removed_device_may_be_added_again(self):
        constraint = self.distinct()
        one = pool_device(("numa", "int", 1))
        assert constraint.add("r", "", one)
        constraint.remove("r", "", one)
        assert constraint.add("r", "", one)


def test_a_constraint_names_the_attribute_that_it_compares():
    assert isinstance(match(), MatchAttribute)
    distinct = constraint_of(DeviceConstraint(distinct_attribute="a"))
    assert isinstance(distinct, DistinctAttribute)
    assert constraint_of(DeviceConstraint()) is None
