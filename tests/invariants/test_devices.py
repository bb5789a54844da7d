"""The checker's rules for claims of devices, each broken by one record."""

from dataclasses import replace

import pytest

from roadstead.facts.bound_claims import BoundClaims
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.devices import (
    AllocatedDevice,
    Allocation,
    ClaimSpec,
    Consumer,
    CounterSetFacts,
    DeviceCapacity,
    DeviceFacts,
    DeviceRequest,
    DevicesFacts,
    DeviceStatus,
)
from roadstead.facts.filter_rules import Rules
from roadstead.invariants.device_inventory import BINDING_CONDITIONS
from roadstead.journal import RecordKind
from tests.builders import node, require, term
from tests.devices.fleet import CLASS, DRIVER, claim, owned, slice_of, using, with_template
from tests.invariants.history import History

SLOTS = CounterSetFacts("set", (("slots", "2"),))


def half(name):
    return DeviceFacts(name, consumes=(CounterSetFacts("set", (("slots", "1"),)),))


FLEET = replace(
    slice_of("n1", shared_counters=(SLOTS,)),
    devices=(
        *(DeviceFacts("d0"), DeviceFacts("d1"), half("h0"), half("h1"), half("h2")),
        DeviceFacts("s", capacity=(DeviceCapacity("bandwidth", "8"),), allows_several=True),
    ),
)


HERE = (term(fields=(require("metadata.name", "In", "n1"),)),)


def on(*devices, terms=HERE, **more):
    found = (AllocatedDevice("r", DRIVER, "n1", each, **more) for each in devices)
    return Allocation(tuple(found), node_terms=terms)


def history(*claims):
    cluster = ClusterFacts(devices=DevicesFacts((FLEET,), (CLASS,), claims))
    return History().add(RecordKind.CLUSTER, subject=cluster).node(node("n1", cpu=4000, pods=10))


def write(found, *claims, removed=()):
    change = BoundClaims(device_claims=claims, removed_claims=removed)
    return found.add(RecordKind.STORAGE, subject=change)


def bind(found, uid, allocation, *, names=None, **claimed):
    """Bind a pod with a claim of its own; claimed: as of `owned`."""
    facts, own = with_template(uid, f"c-{uid}"), owned(f"c-{uid}", uid, **claimed)
    found.accept(uid, facts).bind(uid, facts=facts)
    consumers = (Consumer("pods", uid, uid),) if names is None else names
    return write(found, replace(own, allocation=allocation, reserved_for=consumers))


def texts(found):
    return [(invariant, text) for invariant, _, text in found.broken()]


def test_claims_with_devices_of_their_own_break_no_rule():
    found = bind(bind(history(owned("c-p", "p"), owned("c-q", "q")), "p", on("d0")), "q", on("d1"))
    assert texts(found) == []


def test_no_device_is_in_two_claims():
    found = bind(bind(history(owned("c-p", "p"), owned("c-q", "q")), "p", on("d0")), "q", on("d0"))
    (broken,) = texts(found)
    assert broken == ("I1", f"device {DRIVER}/n1/d0 is in claims default/c-p and default/c-q")


def test_no_claim_names_more_than_256_pods():
    def bound(others):
        names = [Consumer("pods", f"x{n}", f"x{n}") for n in range(others)]
        shared = claim("shared", allocation=on("d0"), reserved_for=tuple(names))
        found, facts = history(shared), using("p", "shared")
        found.accept("p", facts).bind("p", facts=facts)
        consumers = (*shared.reserved_for, Consumer("pods", "p", "p"))
        return texts(write(found, replace(shared, reserved_for=consumers)))

    assert bound(255) == []
    assert bound(256) == [
        ("I2", "claim default/shared names 257 pods; at most 256 may use it"),
    ]


def test_admins_may_have_devices_of_others():
    admin = on("d0", has_admin_access=True)
    watching = ClaimSpec((DeviceRequest("r", "gpu", has_admin_access=True),))
    found = bind(history(owned("c-p", "p"), owned("c-q", "q", spec=watching)), "p", on("d0"))
    bind(found, "q", admin, spec=watching)
    assert texts(found) == []


def test_a_device_must_exist():
    (broken,) = texts(bind(history(owned("c-p", "p")), "p", on("d7")))
    assert broken == ("I1", f"claim default/c-p has device {DRIVER}/n1/d7, which is not there")


def test_counters_that_devices_share_are_not_overdrawn():
    found = history(owned("c-p", "p", count=2), owned("c-q", "q"))
    bind(found, "p", on("h0", "h1"), count=2)
    assert texts(found) == []
    (broken,) = texts(bind(found, "q", on("h2")))
    assert broken == ("I1", f"counter set/slots of pool {DRIVER}/n1 is overdrawn")


def test_capacities_that_claims_share_are_not_overdrawn():
    found = history(*(owned(f"c-{uid}", uid) for uid in "pq"))
    bind(found, "p", on("s", share_id="1", consumed=(("bandwidth", "6"),)))
    assert texts(found) == []
    (broken,) = texts(bind(found, "q", on("s", share_id="1", consumed=(("bandwidth", "3"),))))
    assert broken == ("I1", f"capacity bandwidth of device {DRIVER}/n1/s is overdrawn")


def test_claims_of_a_bound_pod_are_allocated_and_name_it():
    assert texts(bind(history(owned("c-p", "p")), "p", None)) == [
        ("I2", "claim default/c-p is not allocated")
    ]
    assert texts(bind(history(owned("c-p", "p")), "p", on("d0"), names=())) == [
        ("I2", "claim default/c-p does not name the pod")
    ]
    facts = with_template("p", None)
    assert texts(history().accept("p", facts).bind("p", facts=facts)) == [
        ("I2", "claim g was not made")
    ]
    facts = using("p", "nothing")
    assert texts(history().accept("p", facts).bind("p", facts=facts)) == [
        ("I2", "claim nothing is not there")
    ]


def test_the_node_reaches_the_devices():
    (here,) = HERE
    away = (term(require("kubernetes.io/hostname", "In", "n2"), fields=here.fields),)
    (broken,) = texts(bind(history(owned("c-p", "p")), "p", on("d0", terms=away)))
    assert broken == ("I2", "the node does not reach the devices of claim default/c-p")


@pytest.mark.parametrize(
    ("gates", "conditions", "is_wrong"),
    [
        ((), {"Broken": "True"}, False),
        ((BINDING_CONDITIONS,), {"Broken": "True"}, True),
        ((BINDING_CONDITIONS,), {"Broken": "False"}, False),
        ((BINDING_CONDITIONS,), {"Attached": "True"}, False),
    ],
)
def test_a_pod_does_not_use_a_device_whose_driver_reported_a_failure(gates, conditions, is_wrong):
    how = {"binding_conditions": ("Attached",), "binding_failure_conditions": ("Broken",)}
    status = DeviceStatus(DRIVER, "n1", "d0", conditions=tuple(conditions.items()))
    shared = claim("c", allocation=on("d0", **how), statuses=(status,))
    found = history(shared).add(RecordKind.CLUSTER, subject=Rules(device_gates=gates))
    facts = using("p", "c")
    found.accept("p", facts).bind("p", facts=facts)
    write(found, replace(shared, reserved_for=(Consumer("pods", "p", "p"),)))

    assert texts(found) == (
        [("I2", f"claim default/c has device {DRIVER}/n1/d0, which reports Broken")]
        if is_wrong
        else []
    )


def test_a_claim_that_was_made_for_a_pod_ends_with_it():
    found = bind(history(owned("c-p", "p")), "p", on("d0")).delete("p", "n1")
    assert texts(found) == [
        ("I5", "claim default/c-p was made for the pod, and does not end with it")
    ]
    write(found, removed=("default/c-p",))
    assert texts(found) == []
    found.accept("q").bind("q")
    assert texts(found) == []


def test_no_claim_names_a_pod_that_ended():
    both = tuple(Consumer("pods", uid, uid) for uid in "pq")
    shared = replace(claim("a"), allocation=on("d0"), reserved_for=both)
    found = history(claim("a"))
    for uid in "pq":
        found.accept(uid, using(uid, "a"))
    for uid in "pq":
        found.bind(uid, facts=using(uid, "a"))
    write(found, shared).delete("p", "n1")
    assert texts(found) == [("I5", "claim default/a names the pod after its end")]
    assert texts(write(found, replace(shared, reserved_for=both[1:]))) == []


def test_devices_of_ended_claims_are_free():
    found = bind(history(owned("c-p", "p"), owned("c-q", "q")), "p", on("d0"))
    write(found.delete("p", "n1"), removed=("default/c-p",))
    assert texts(bind(found, "q", on("d0"))) == []


def published(found, slices, *claims):
    """Add the cluster with other slices."""
    cluster = ClusterFacts(devices=DevicesFacts(slices, (CLASS,), claims))
    return found.add(RecordKind.CLUSTER, subject=cluster)


def test_allocations_are_judged_by_the_slices_of_their_commit():
    """Later slices make no earlier allocation wrong; a later one is judged by the newest."""
    of_p = replace(owned("c-p", "p"), reserved_for=(Consumer("pods", "p", "p"),))
    newer = replace(FLEET, generation=2, devices=(half("h0"), half("h1"), half("h2")))
    less = (CounterSetFacts("set", (("slots", "1"),)),)
    found = bind(history(owned("c-p", "p"), owned("c-q", "q")), "p", on("h0"))
    of_p = replace(of_p, allocation=on("h0"))
    published(found, (FLEET, replace(newer, name="new")), of_p, owned("c-q", "q"))
    assert texts(bind(found, "q", on("h1"))) == []

    found = bind(history(owned("c-p", "p"), owned("c-q", "q")), "p", on("h0"))
    of_p = replace(of_p, allocation=on("h0"))
    published(found, (replace(newer, shared_counters=less),), of_p, owned("c-q", "q"))
    assert texts(bind(found, "q", on("h1"))) == [
        ("I1", f"counter set/slots of pool {DRIVER}/n1 is overdrawn")
    ]


def test_a_claim_is_not_blamed_for_counters_of_others():
    """A new generation has fewer counters than devices in use consume."""
    own = owned("c-p", "p", count=2)
    found = bind(history(own, owned("c-q", "q")), "p", on("h0", "h1"), count=2)
    own = replace(own, allocation=on("h0", "h1"), reserved_for=(Consumer("pods", "p", "p"),))
    less = (CounterSetFacts("set", (("slots", "1"),)),)
    newer = replace(FLEET, generation=2, shared_counters=less)
    published(found, (newer,), own, owned("c-q", "q"))
    assert texts(bind(found, "q", on("d0"))) == []
