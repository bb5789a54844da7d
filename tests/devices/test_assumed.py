"""AssumedDevices: claims in flight belong to one pod, and end with its commit or its end."""

from dataclasses import replace

import pytest

from roadstead.devices.assumed import AssumedDevices
from roadstead.devices.state import DeviceState
from roadstead.facts.devices import (
    ALL_DEVICES,
    ClaimSpec,
    DeviceClassFacts,
    DeviceRequest,
    Placement,
)
from tests.builders import node, require, term
from tests.devices.fleet import N1, N2, claim, devices, slice_of, using


def over(*claims, slices=None):
    return AssumedDevices(DeviceState(devices(*claims, slices=slices)))


def names(claims):
    return [result.device for each in claims for result in each.allocation.results]


def test_claims_are_allocated_and_in_flight_until_the_commit():
    found = over(claim("a"), claim("b"))

    in_flight = found.assume("p", using("p", "a"), N1)
    assert names(in_flight) == ["d0"]
    assert found.devices.claims["default/a"].is_in_flight
    assert found.assume("p", using("p", "a"), N1) == in_flight, "it may be repeated"
    (written,) = found.confirm("p")

    assert (written.is_in_flight, [e.uid for e in written.reserved_for]) == (False, ["p"])
    assert found.confirm("p") == ()
    found.validate()


def test_a_claim_in_flight_is_for_one_pod():
    found = over(claim("a"))
    found.assume("p", using("p", "a"), N1)

    assert found.assume("q", using("q", "a"), N1) is None
    found.confirm("p")
    assert found.assume("q", using("q", "a"), N1) == (), "it is allocated and may be shared"
    (shared,) = found.confirm("q")
    assert [each.uid for each in shared.reserved_for] == ["p", "q"]


def test_a_forgotten_pod_frees_its_devices():
    found = over(claim("a"), claim("b", 2))
    found.assume("p", using("p", "a"), N1)
    assert found.assume("q", using("q", "b"), N1) is None

    assert found.forget("p") == ((claim("a"),), ())
    assert found.forget("p") == ((), ())
    assert names(found.assume("q", using("q", "b"), N1)) == ["d0", "d1"]
    assert found.holders() == ("q",)
    assert found.keys_of("q") == ("default/b",)


@pytest.mark.parametrize(
    ("facts", "node"),
    [(using("p", "no"), N1), (using("p", "a"), N2), (using("p", "wrong"), N1)],
    ids=["missing claim", "node without devices", "class that does not exist"],
)
def test_a_refused_allocation_changes_nothing(facts, node):
    wrong = claim("wrong")
    (request,) = wrong.spec.requests
    spec = replace(wrong.spec, requests=(replace(request, device_class="no"),))
    found = over(claim("a"), replace(wrong, spec=spec))
    before = dict(found.devices.claims)

    assert found.assume("p", facts, node) is None
    assert (found.devices.claims, found.holders()) == (before, ())


def test_an_allocated_claim_must_be_reachable():
    found = over(claim("a"), slices=[slice_of("n1", "d0"), slice_of("n2", "d0")])
    found.assume("p", using("p", "a"), N1)
    found.confirm("p")
    assert found.assume("q", using("q", "a"), N2) is None


def test_a_claim_named_twice_keeps_its_first_allocation():
    found = over(claim("a"))
    assert names(found.assume("p", using("p", "a", "a"), N1)) == ["d0"]


def test_a_pod_without_claims_reserves_nothing():
    found = over()
    assert found.assume("p", using("p"), N1) == ()
    assert found.holders() == ()


class TestTryOut:
    def asked(self, *wanted):
        """Return the claims that a cache has in flight for a pod, and the pod."""
        cache = over(*(claim(name) for name in "abc"))
        facts = using("p", *wanted)
        return cache.assume("p", facts, N1), facts

    def test_assumptions_of_a_cache_are_committed_with_the_consumer(self):
        asked, facts = self.asked("b")
        found = over(*(claim(name) for name in "abc"))

        undo, (after,) = found.try_out(asked, facts, N1)

        assert undo == ((claim("b"),), ())
        assert [each.uid for each in after.reserved_for] == ["p"]
        assert found.devices.claims["default/b"] == after
        found.devices.apply(*undo)
        assert not found.devices.allocator.in_use.ids()

    def test_a_device_in_use_is_refused(self):
        asked, facts = self.asked("b")
        found = over(*(claim(name) for name in "abc"))
        found.devices.apply(over(claim("a")).assume("q", using("q", "a"), N1))
        before = dict(found.devices.claims)

        assert found.try_out(asked, facts, N1) is None
        assert found.devices.claims == before

    def test_every_claim_must_be_covered(self):
        _, facts = self.asked("a")
        found = over(claim("a"))
        assert found.try_out((), facts, N1) is None
        assert found.try_out((), using("p", "no"), N1) is None

    def test_a_proposal_for_an_earlier_claim_of_the_name_is_refused(self):
        earlier = over(claim("a", uid="u-1")).assume("p", using("p", "a"), N1)
        found = over(claim("a", uid="u-2"))
        assert found.try_out(earlier, using("p", "a"), N1) is None
        assert over(claim("a", uid="u-1")).try_out(earlier, using("p", "a"), N1) is not None

    def test_an_allocated_claim_only_gets_a_consumer(self):
        asked, facts = self.asked("a")
        found = over(claim("a"))
        found.try_out(asked, facts, N1)

        _, (after,) = found.try_out((), using("q", "a"), N1)

        assert [each.uid for each in after.reserved_for] == ["p", "q"]
        assert found.try_out((), using("q", "a"), N2) is None, "another node"


class TestChangedSlices:
    """A proposal of another process is compared with slices and classes that have changed here."""

    def proposed(self, found):
        return over(found).assume("p", using("p", "a"), N1)

    def test_a_proposal_that_the_slices_still_allow_is_committed(self):
        found = over(claim("a"))
        found.devices.put_slice(replace(slice_of("n1", "d2", "d0"), generation=2))
        _, (after,) = found.try_out(self.proposed(claim("a")), using("p", "a"), N1)
        assert names((after,)) == ["d0"]

    @pytest.mark.parametrize(
        "change",
        [
            lambda state: state.remove_slice("n1"),
            lambda state: state.put_slice(slice_of("n1", "d1")),
            lambda state: state.put_slice(slice_of("n1", "d0", "d0")),
            lambda state: state.put_slice(replace(slice_of("n1", "d1"), name="x", generation=2)),
            lambda state: state.set_classes([DeviceClassFacts("gpu", ("false",))]),
            lambda state: state.set_classes([]),
        ],
        ids=["no slice", "no device", "invalid pool", "newer slice", "other class", "no class"],
    )
    def test_a_proposal_that_the_slices_no_longer_allow_is_refused(self, change):
        found = over(claim("a"))
        change(found.devices)
        assert found.try_out(self.proposed(claim("a")), using("p", "a"), N1) is None
        assert found.devices.claims["default/a"] == claim("a")

    def test_a_request_for_all_devices_needs_the_new_ones_too(self):
        every = ClaimSpec((DeviceRequest("r", "gpu", mode=ALL_DEVICES, count=0),))
        found = over(claim("a", spec=every))
        found.devices.put_slice(slice_of("n1", "d0", "d1", "d2"))
        assert found.try_out(self.proposed(claim("a", spec=every)), using("p", "a"), N1) is None
        found.devices.put_slice(slice_of("n1", "d0", "d1"))
        assert found.try_out(self.proposed(claim("a", spec=every)), using("p", "a"), N1)


def test_a_proposal_for_devices_that_the_node_no_longer_reaches_is_refused():
    zone = Placement(terms=(term(require("zone", "In", "a")),))
    slices = (replace(slice_of("s", "d0"), placement=zone),)
    asked, facts = using("p", "a"), node("n1", labels={"zone": "a"})
    proposed = over(claim("a"), slices=slices).assume("p", asked, facts)
    found = over(claim("a"), slices=slices)
    assert found.try_out(proposed, asked, node("n1", labels={"zone": "b"})) is None
    assert found.try_out(proposed, asked, facts)
