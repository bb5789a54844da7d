"""An allocation names devices, their configurations, and the nodes that reach all of them."""

import pytest

from roadstead.devices import AllocationError
from roadstead.facts.devices import DeviceClassFacts, DriverConfig, Placement
from roadstead.facts.selectors import NodeSelectorTerm, Requirement
from tests.devices.making import (
    EVERYWHERE,
    GPU,
    NODE,
    allocate,
    allocator,
    alternative,
    alternatives,
    claim,
    device,
    request,
    slice_of,
)

ZONE = Requirement("zone", "In", ("a", "b"))
LABELS = (("disk", "ssd"), ("zone", "a"))


def config(name, *requests):
    return DriverConfig(GPU, f'{{"name":"{name}"}}', requests)


def selected(*terms):
    return Placement(terms=terms)


def names(configs):
    return [(each.source, each.parameters[9:-2], each.requests) for each in configs]


class TestConfigs:
    CLASSES = (DeviceClassFacts("any", configs=(config("class"),)), DeviceClassFacts("plain"))

    def configs(self, *requests, configs=()):
        made = allocator(slice_of(*(device(f"d{n}") for n in range(4))), classes=self.CLASSES)
        (found,) = allocate(made, claim(*requests, configs=configs))
        return names(found.configs)

    def test_the_class_of_each_request_comes_first_then_the_claim(self):
        found = self.configs(request("a"), request("b"), configs=[config("claim")])
        assert found == [
            ("FromClass", "class", ()),
            ("FromClass", "class", ()),
            ("FromClaim", "claim", ()),
        ]

    def test_a_config_of_the_claim_is_repeated_for_each_of_its_requests(self):
        found = self.configs(
            request("a", "plain"), request("b", "plain"), configs=[config("x", "a", "b", "c")]
        )
        assert found == [("FromClaim", "x", ("a", "b", "c"))] * 2

    @pytest.mark.parametrize(
        ("wanted", "count"), [(("r",), 1), (("r/small",), 1), (("r/big",), 0), (("small",), 0)]
    )
    def test_a_config_may_be_for_an_alternative_if_it_is_chosen(self, wanted, count):
        asked = alternatives("r", alternative("big", count=9), alternative("small", "plain"))
        assert len(self.configs(asked, configs=[config("x", *wanted)])) == count

    def test_the_class_of_the_chosen_alternative_counts(self):
        asked = alternatives("r", alternative("big", "plain", count=9), alternative("small"))
        assert self.configs(asked) == [("FromClass", "class", ())]


class TestNodeSelector:
    def terms(self, *slices, count=1):
        (found,) = allocate(allocator(*slices), claim(request(count=count)), labels=LABELS)
        return found.node_terms

    def test_a_device_of_a_node_restricts_the_claim_to_it(self):
        only_here = (NodeSelectorTerm(fields=(Requirement("metadata.name", "In", (NODE,)),)),)
        network = slice_of(
            device("a"), name="s0", pool="a", place=selected(NodeSelectorTerm((ZONE,)))
        )
        local = slice_of(device("b"), name="s1", pool="b")
        assert self.terms(network, local, count=2) == only_here
        bound = slice_of(device("a", binds_to_node=True), place=EVERYWHERE)
        assert self.terms(bound) == only_here

    def test_devices_for_all_nodes_restrict_nothing(self):
        assert self.terms(slice_of(device("a"), place=EVERYWHERE)) is None

    def test_requirements_of_several_slices_are_joined_without_repetition(self):
        swapped = Requirement("zone", "In", ("b", "a"))
        disk = Requirement("disk", "Exists")
        slices = [
            slice_of(device(f"d{n}"), name=f"s{n}", pool=f"p{n}", place=selected(term))
            for n, term in enumerate([NodeSelectorTerm((ZONE,)), NodeSelectorTerm((swapped, disk))])
        ]
        assert self.terms(*slices, count=2) == (NodeSelectorTerm((ZONE, disk)),)

    def test_a_selector_of_several_terms_is_an_error(self):
        place = selected(NodeSelectorTerm((ZONE,)), NodeSelectorTerm((ZONE,)))
        text = (
            "create NodeSelector for claim c: unsupported ResourceSlice.NodeSelector with 2 terms"
        )
        with pytest.raises(AllocationError, match=text):
            self.terms(slice_of(device("a"), place=place))


CONDITIONS = {"binding_conditions": ("Ready",), "binding_failure_conditions": ("Failed",)}


class TestResults:
    def test_binding_conditions_are_repeated_with_their_gate(self):
        made = allocator(slice_of(device("a", **CONDITIONS)), binding_conditions=True)
        (found,) = allocate(made, claim(request()))
        result = found.results[0]
        assert (result.binding_conditions, result.binding_failure_conditions) == (
            ("Ready",),
            ("Failed",),
        )

    def test_without_the_gate_such_a_device_is_left_out(self):
        made = allocator(slice_of(device("a", **CONDITIONS), device("b")))
        (found,) = allocate(made, claim(request(mode="All", count=0)))
        assert [each.device for each in found.results] == ["b"]

    def test_a_claim_without_requests_gets_an_empty_allocation(self):
        (found,) = allocate(allocator(), claim())
        assert (found.results, found.node_terms) == ((), None)
