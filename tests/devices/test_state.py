"""DeviceState: changes of claims are idempotent and undone; devices in use follow allocations."""

from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.devices.state import (
    FINALIZER,
    DeviceState,
    deallocated,
    is_reachable,
    released,
    reserved,
    without_consumers,
)
from roadstead.facts.devices import (
    AllocatedDevice,
    Allocation,
    Consumer,
    DeviceClaimFacts,
    DeviceClassFacts,
)
from roadstead.facts.selectors import NodeSelectorTerm, Requirement
from tests.devices.fleet import DRIVER, claim, devices, owned, slice_of

D0, D1 = ((DRIVER, "n1", name) for name in ("d0", "d1"))
P, Q = Consumer("pods", "p", "p"), Consumer("pods", "q", "q")


def on(*names, **fields):
    return Allocation(tuple(AllocatedDevice("r", DRIVER, "n1", name, **fields) for name in names))


def in_use(state):
    return state.allocator.in_use.ids()


def test_devices_of_allocated_claims_are_in_use():
    state = DeviceState(devices(claim("a", allocation=on("d0")), claim("b")))
    assert in_use(state) == {D0}
    state.validate()


def test_the_change_that_apply_returns_undoes_the_applied_one():
    state = DeviceState(devices(claim("a"), claim("b")))
    before = dict(state.claims)

    undo = state.apply([claim("a", allocation=on("d0")), claim("c")], ["default/b"])
    assert in_use(state) == {D0}
    assert set(state.claims) == {"default/a", "default/c"}
    state.apply(*undo)

    assert state.claims == before
    assert in_use(state) == frozenset()
    state.validate()


def test_the_same_change_twice_changes_nothing_more():
    state = DeviceState(devices(claim("a")))
    for _ in range(2):
        state.apply([claim("a", allocation=on("d0"))])
    state.apply([claim("a")])
    assert in_use(state) == frozenset()


def test_only_a_new_or_a_removed_allocation_changes_devices_in_use():
    state = DeviceState(devices(claim("a", allocation=on("d0"))))
    state.apply([claim("a", allocation=on("d1"))])
    assert in_use(state) == {D0}, "as upstream, which follows nil and not nil"


def test_the_version_grows_with_changes_and_not_without():
    state = DeviceState(devices(claim("a")))
    version = state.version
    state.apply([])
    assert state.version == version
    state.apply([claim("a")])
    assert state.version > version


def test_slices_and_classes_change_the_allocation():
    state = DeviceState(devices(claim("a"), slices=()))
    wanted = (state.claims["default/a"],)
    allocate = state.allocator.allocate

    assert allocate(state.allocator.plan(wanted), "n1", ()) is None
    state.put_slice(slice_of("n1", "d0"))
    assert allocate(state.allocator.plan(wanted), "n1", ()) is not None
    state.set_classes([DeviceClassFacts("gpu", ("false",))])
    assert allocate(state.allocator.plan(wanted), "n1", ()) is None
    state.remove_slice("n1")
    state.remove_slice("n1")
    assert not state.slices


def test_free_devices_are_unused_and_wanted_once():
    state = DeviceState(devices(claim("a", allocation=on("d0"))))
    wants = [claim(name, allocation=on("d1")) for name in ("b", "c")]

    assert state.are_free(wants[:1])
    assert not state.are_free(wants)
    assert not state.are_free([claim("b", allocation=on("d0"))])
    assert state.are_free([claim("b", allocation=on("d0", has_admin_access=True))])


def test_a_reserved_claim_names_the_pod_once_and_is_protected():
    found = reserved(claim("a", allocation=on("d0"), is_in_flight=True), P)
    assert (found.reserved_for, found.finalizers, found.is_in_flight) == ((P,), (FINALIZER,), False)
    assert reserved(found, P) == found
    assert reserved(found, Q).reserved_for == (P, Q)


def test_a_claim_without_consumers_loses_its_allocation():
    shared = reserved(reserved(claim("a", allocation=on("d0")), P), Q)
    assert deallocated(without_consumers(shared, frozenset({"p"}))).allocation is not None
    assert deallocated(without_consumers(shared, frozenset({"p", "q"}))) == claim("a")


def test_a_claim_in_flight_keeps_its_allocation_as_its_last_consumer_ends():
    # A manifest may name a consumer of a claim that has no allocation yet.
    state = DeviceState(devices(replace(claim("a"), reserved_for=(P,))))
    state.apply([state.claims["default/a"].assumed_with(on("d0"))])

    state.apply(*released(state, ["p"]))

    assert in_use(state) == {D0}
    state.validate()


def test_claims_end_with_the_pod_for_which_they_were_made():
    shared = reserved(claim("shared", allocation=on("d0")), P)
    own = reserved(owned("own", "p", allocation=on("d1")), P)
    state = DeviceState(devices(shared, own, claim("free")))

    changed, removed = released(state, ["p", "unknown"])
    state.apply(changed, removed)

    assert (changed, removed) == ((claim("shared"),), ("default/own",))
    assert in_use(state) == frozenset()
    assert released(state, ["p"]) == ((), ())


def test_a_node_selector_reads_fields_and_labels():
    by_name = (NodeSelectorTerm(fields=(Requirement("metadata.name", "In", ("n1",)),)),)
    by_label = (NodeSelectorTerm((Requirement("zone", "In", ("a",)),)),)
    assert is_reachable(None, "n9", ())
    assert is_reachable(by_name, "n1", ())
    assert not is_reachable(by_name, "n2", ())
    assert is_reachable(by_label, "n2", (("zone", "a"),))
    assert not is_reachable(by_label, "n2", ())


def test_validate_finds_a_claim_in_flight_without_allocation():
    state = DeviceState(devices(claim("a")))
    state.apply([replace(claim("a"), is_in_flight=True)])
    with pytest.raises(AssertionError, match="in flight without an allocation"):
        state.validate()


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["free", "on its device", "gone"])))
)
def test_undoing_all_changes_restores_the_state(steps):
    state = DeviceState(devices(claim("a"), claim("b")))
    before, undos = dict(state.claims), []
    for name, wanted in steps:
        own = on("d0" if name == "a" else "d1") if wanted == "on its device" else None
        found = claim(name, allocation=own)
        gone = wanted == "gone"
        undos.append(state.apply([], [found.key]) if gone else state.apply([found]))
        state.validate()
    for undo in reversed(undos):
        state.apply(*undo)
    assert state.claims == before
    assert in_use(state) == frozenset()


def test_a_claim_in_another_use_keeps_all_other_fields():
    everything = {
        each.name: object() for each in fields(DeviceClaimFacts) if each.name != "is_in_flight"
    }
    one = DeviceClaimFacts(**everything)
    use = {"allocation": Allocation(), "reserved_for": (), "finalizers": ("f",)}

    assert one.with_use(**use, is_in_flight=True) == replace(one, **use, is_in_flight=True)
    assert one.assumed_with(Allocation()) == replace(
        one, allocation=Allocation(), is_in_flight=True
    )
