"""The claim for extended resources of a pod: which nodes need it, and its life with the pod."""

from dataclasses import replace

import pytest

from roadstead.devices.assumed import AssumedDevices
from roadstead.devices.claims import PodClaimError
from roadstead.devices.gates import DeviceGates
from roadstead.devices.own_claims import allocatable_names, may_need_claim, own_claim_on
from roadstead.devices.state import DeviceState, released
from roadstead.facts.pod import UNWRITTEN_CLAIM_NAME
from tests.builders import node, pod
from tests.devices.fleet import GPU, N1, N2, SERVING, asking, claim, devices, left_by, slice_of

ON = DeviceGates(extended_resource=True)
PLUGIN = node("n1", others={GPU: 4})
"""A node whose device plugin serves the resource."""


def state(*claims, gates=ON, slices=None, classes=(SERVING,)):
    return DeviceState(devices(*claims, slices=slices, classes=classes), gates)


def over(*claims, **how):
    return AssumedDevices(state(*claims, **how))


def taken(claims):
    return [
        (result.request, result.device) for each in claims for result in each.allocation.results
    ]


def own_on(found, facts, node_facts, *, has_claims=False):
    return own_claim_on(found, facts, allocatable_names(node_facts), has_claims=has_claims)


class TestOnANode:
    def test_it_has_a_request_for_each_container(self):
        own = own_on(state(), asking("p", 2, 1), N1)

        assert (own.key, own.is_for_extended_resources) == (f"default/{UNWRITTEN_CLAIM_NAME}", True)
        assert [(each.name, each.device_class, each.count) for each in own.spec.requests] == [
            ("container-0-request-0", "gpu", 2),
            ("container-1-request-0", "gpu", 1),
        ]

    def test_a_device_plugin_makes_it_unnecessary_unless_the_pod_has_claims(self):
        assert own_on(state(), asking("p", 1), PLUGIN) is None
        assert own_on(state(), asking("p", 1), PLUGIN, has_claims=True) is not None

    def test_an_amount_of_0_is_offered_as_well(self):
        assert own_on(state(), asking("p", 1), node("n1", others={GPU: 0})) is None

    def test_a_resource_that_nothing_serves_does_not_fit(self):
        facts = asking("p", 1)
        other = replace(facts, requests=(*facts.requests, ("example.org/other", 1)))
        with pytest.raises(PodClaimError, match="cannot fit resource"):
            own_on(state(), other, N1)

    def test_the_claim_of_an_earlier_attempt_is_in_the_way(self):
        found = state(left_by("p"), left_by("q"))
        with pytest.raises(PodClaimError, match="cannot schedule extended resource claim"):
            own_on(found, asking("p", 1), N1)
        assert own_on(found, asking("r", 1), N1) is not None

    @pytest.mark.parametrize(
        ("found", "facts"),
        [
            (state(gates=DeviceGates()), asking("p", 1)),
            (state(classes=()), asking("p", 1)),
            (state(), pod(others={GPU: 1})),
        ],
        ids=["gate off", "no class serves it", "containers unknown"],
    )
    def test_other_pods_get_none(self, found, facts):
        assert not may_need_claim(found, facts)
        assert own_on(found, facts, N1) is None


class TestItsLife:
    def test_it_is_made_with_the_assumption_and_reserved_with_the_commit(self):
        found = over()

        (made,) = found.assume("p", asking("p", 1, 1), N1)
        assert taken([made]) == [("container-0-request-0", "d0"), ("container-1-request-0", "d1")]
        assert (made.owner_uid, made.owner_kind, made.is_in_flight) == ("p", "Pod", True)
        assert made.name.startswith("p-extended-resources-")
        assert found.keys_of("p") == (made.key,)
        found.validate()

        (written,) = found.confirm("p")
        assert [each.uid for each in written.reserved_for] == ["p"]
        assert found.devices.claims == {made.key: written}
        assert released(found.devices, ["p"]) == ((), (made.key,)), "it ends with its pod"

    def test_it_is_gone_when_the_pod_is_forgotten(self):
        found = over()
        (made,) = found.assume("p", asking("p", 2), N1)
        assert found.assume("q", asking("q", 1), N1) is None

        assert found.forget("p") == ((), (made.key,))
        assert found.devices.claims == {}
        assert len(found.assume("q", asking("q", 1), N1)) == 1

    def test_a_device_plugin_serves_the_pod_without_one(self):
        found = over()
        assert found.assume("p", asking("p", 1), PLUGIN) == ()
        assert found.confirm("p") == ()
        assert found.devices.claims == {}

    def test_it_is_allocated_behind_the_claims_of_the_pod(self):
        found = over(claim("a"))
        facts = asking("p", 1, claims=("a",))
        assert taken(found.assume("p", facts, N1)) == [("r", "d0"), ("container-0-request-0", "d1")]
        assert [len(each.reserved_for) for each in found.confirm("p")] == [1, 1]

    def test_its_name_is_free_and_short_enough(self):
        name = "p" * 100
        first = over()
        (made,) = first.assume(name, asking(name, 1), N1)
        assert len(made.name) == 63
        other = over(claim(made.name))
        (again,) = other.assume(name, asking(name, 1), N1)
        assert again.name != made.name


class TestTryOut:
    """A binder tries out what a cache assumed."""

    def asked(self, facts, node_facts=N1, **how):
        return over(**how).assume("p", facts, node_facts)

    def test_it_is_written_with_the_consumer_and_undone_as_a_whole(self):
        facts = asking("p", 1)
        binder = over()

        undo, (after,) = binder.try_out(self.asked(facts), facts, N1)

        assert [each.uid for each in after.reserved_for] == ["p"]
        assert undo == ((), (after.key,))
        binder.devices.apply(*undo)
        assert binder.devices.claims == {}
        assert not binder.devices.allocator.in_use.ids()

    def test_a_missing_or_different_claim_is_refused(self):
        facts = asking("p", 1)
        asked = self.asked(facts)
        (made,) = asked
        more = replace(made, spec=self.asked(asking("p", 1, 1))[0].spec)
        assert over().try_out((), facts, N1) is None, "the claim is missing"
        assert over().try_out((more,), facts, N1) is None, "it asks for more"
        assert over().try_out((replace(made, owner_uid="q"),), facts, N1) is None
        assert over(left_by("p")).try_out(asked, facts, N1) is None

    def test_a_device_or_name_in_use_is_refused(self):
        facts = asking("p", 1)
        asked = self.asked(facts)
        busy = over()
        busy.assume("q", asking("q", 1), N1)
        assert busy.try_out(asked, facts, N1) is None
        assert over(claim(asked[0].name)).try_out(asked, facts, N1) is None

    def test_other_nodes_have_other_devices(self):
        both = [slice_of("n1", "d0"), slice_of("n2", "d0")]
        facts = asking("p", 1)
        asked = self.asked(facts, N2, slices=both)
        assert over(slices=both).try_out(asked, facts, N2) is not None
