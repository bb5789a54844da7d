"""The checker's rules for what an allocation has to contain, each broken by one allocation."""

from dataclasses import replace

import pytest

from roadstead.facts.bound_claims import BoundClaims
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.devices import (
    ALL_DEVICES,
    AllocatedDevice,
    Allocation,
    AttributeFacts,
    ClaimSpec,
    Consumer,
    CounterSetFacts,
    DeviceCapacity,
    DeviceClassFacts,
    DeviceConstraint,
    DeviceFacts,
    DeviceRequest,
    DevicesFacts,
    DeviceTaintRule,
    ExactRequest,
    Placement,
    RequestPolicy,
    SliceFacts,
)
from roadstead.facts.filter_rules import Rules
from roadstead.facts.taints import Taint, Toleration
from roadstead.journal import RecordKind
from tests.builders import named, node, require, term
from tests.devices.fleet import CLASS, DRIVER, SERVING, asking, left_by, owned, with_template
from tests.invariants.history import History

DEFAULTS = ("DRAPrioritizedList", "DRAAdminAccess")
CONSUMABLE, PARTS, TAINTS = (
    (*DEFAULTS, each)
    for each in ("DRAConsumableCapacity", "DRAPartitionableDevices", "DRADeviceTaints")
)
BAD = Taint("bad", "", "NoSchedule")
TOLERATION = Toleration("bad", "Exists")
N1 = node("n1", labels={"zone": "a"})
HERE = (named("n1"),)
OWN = Placement("n1")
BIG = DeviceClassFacts("big", (f"device.attributes['{DRIVER}'].model == 'big'",))
D0, D1, S = (f"{DRIVER}/n1/{name}" for name in ("d0", "d1", "s"))


def device(name, model="small", numa=0, **fields):
    attributes = (AttributeFacts("model", "string", model), AttributeFacts("numa", "int", numa))
    return DeviceFacts(name, attributes, **fields)


def slice_of(*devices, name="n1", generation=1, slices=1, place=OWN, **fields):
    return SliceFacts(name, DRIVER, "n1", generation, slices, place, devices=devices, **fields)


FLEET = (slice_of(device("d0", "big"), device("d1", numa=1), device("d2")),)


def spec(*requests, constraints=()):
    return ClaimSpec(requests, constraints)


def ask(device_class="gpu", name="r", **fields):
    return DeviceRequest(name, device_class, **fields)


def has(*devices, request="r", **fields):
    return tuple(AllocatedDevice(request, DRIVER, "n1", each, **fields) for each in devices)


def history(asked, *, slices=FLEET, gates=DEFAULTS, rules=()):
    """The records before pod p, which has a claim with a spec, is bound."""
    own = owned("c-p", "p", spec=asked)
    devices = DevicesFacts(tuple(slices), (CLASS, BIG), (own,), rules)
    found = History().add(RecordKind.CLUSTER, subject=ClusterFacts(devices=devices))
    return found.add(RecordKind.CLUSTER, subject=Rules(device_gates=gates)).node(N1)


def bind(found, asked, results, *, terms=HERE, **fields):
    """Bind pod p with the results."""
    allocation = Allocation(tuple(results), node_terms=terms)
    own = owned("c-p", "p", spec=asked, allocation=allocation, **fields)
    facts = with_template("p", "c-p")
    found.accept("p", facts).bind("p", facts=facts)
    own = replace(own, reserved_for=(Consumer("pods", "p", "p"),))
    return found.add(RecordKind.STORAGE, subject=BoundClaims(device_claims=(own,)))


def texts(found):
    """Errors of the claim."""
    broken = found.broken()
    assert {invariant for invariant, _, _ in broken} <= {"I2"}
    assert all(text.startswith("claim default/c-p ") for _, _, text in broken)
    return [text.removeprefix("claim default/c-p ") for _, _, text in broken]


def judged(asked, results, *, terms=HERE, **fields):
    return texts(bind(history(asked, **fields), asked, results, terms=terms))


ONE, TWO = spec(ask()), spec(ask(count=2))
EVERY = spec(ask(mode=ALL_DEVICES, count=0))
FIRST = spec(
    ask("", alternatives=(ExactRequest("big", "big"), ExactRequest("two", "gpu", count=2)))
)
SAME = spec(ask(count=2), constraints=(DeviceConstraint((), f"{DRIVER}/numa"),))
DISTINCT = spec(ask(), constraints=(DeviceConstraint(("r",), distinct_attribute="serial"),))
ADMIN = spec(ask(has_admin_access=True))
SMALL = spec(ask(selectors=(f"device.attributes['{DRIVER}'].model == 'small'",)))
FAILING = spec(ask(selectors=(f"device.attributes['{DRIVER}'].nothing == 1",)))


@pytest.mark.parametrize(
    ("asked", "results"),
    [
        (ONE, has("d0")),
        (TWO, has("d0", "d1")),
        (EVERY, has("d0", "d1", "d2")),
        (FIRST, has("d0", request="r/big")),
        (FIRST, has("d0", "d1", request="r/two")),
        (SAME, has("d0", "d2")),
        (ADMIN, has("d0", has_admin_access=True)),
        (SMALL, has("d1")),
        (spec(ask(), ask("big", "q")), (*has("d1"), *has("d0", request="q"))),
    ],
)
def test_devices_that_a_claim_requests_break_no_rule(asked, results):
    assert judged(asked, results) == []


@pytest.mark.parametrize(
    ("asked", "results", "expected"),
    [
        (TWO, has("d0"), ["has 1 devices for request r, which asks for 2"]),
        (ONE, has("d0", "d1"), ["has 2 devices for request r, which asks for 1"]),
        (TWO, has("d0", "d0"), [f"has device {D0} 2 times"]),
        (
            ONE,
            (*has("d0"), *has("d1", request="q")),
            [f"has device {D1} for request q, which it does not make"],
        ),
        (
            EVERY,
            has("d0", "d2"),
            [f"does not have device {D1} for request r, which asks for all"],
        ),
        (
            SMALL,
            has("d0"),
            [f"has device {D0} for request r, which does not match selector #0 of the request"],
        ),
        (
            spec(ask("big")),
            has("d1"),
            [f"has device {D1} for request r, which does not match selector #0 of class big"],
        ),
        (
            spec(ask("none")),
            has("d1"),
            [f"has device {D1} for request r, which is to be of class none, which is not there"],
        ),
        (
            FAILING,
            has("d0"),
            [
                f"has device {D0} for request r, which cannot be compared with selector #0: "
                "no such key: nothing of the request"
            ],
        ),
        (
            FIRST,
            has("d1", request="r/big"),
            [f"has device {D1} for request r/big, which does not match selector #0 of class big"],
        ),
        (
            FIRST,
            has("d1", request="r/two"),
            ["has 1 devices for request r/two, which asks for 2"],
        ),
        (
            FIRST,
            (*has("d0", request="r/big"), *has("d1", "d2", request="r/two")),
            ["has devices for r/big, r/two, which are not one way to satisfy request r"],
        ),
        (FIRST, (), ["has 0 devices for request r/big, which asks for 1"]),
        (
            SAME,
            has("d0", "d1"),
            [f"violates constraint #0: devices differ in attribute {DRIVER}/numa"],
        ),
        (
            DISTINCT,
            has("d0"),
            [f"violates constraint #0: device {D0} has no attribute serial"],
        ),
        (ADMIN, has("d0"), [f"has device {D0} for request r, which has no admin access"]),
        (
            ONE,
            has("d0", has_admin_access=True),
            [f"has device {D0} for request r, which has admin access"],
        ),
    ],
)
def test_devices_that_a_claim_does_not_request_are_found(asked, results, expected):
    assert judged(asked, results) == expected


def test_a_claim_has_as_many_devices_as_are_allowed():
    many = [f"d{number}" for number in range(33)]
    asked = spec(ask(count=33))
    slices = (slice_of(*(device(each) for each in many)),)
    assert judged(asked, has(*many), slices=slices) == [
        "has 33 devices, 32 at the most are allowed"
    ]


def test_devices_are_those_that_the_node_reaches():
    wrong = [f"has device {D0} for request r, which the node does not reach"]
    d0 = device("d0")
    assert judged(ONE, has("d0"), slices=(slice_of(d0, place=Placement("n2")),)) == wrong
    zones = {zone: Placement(terms=(term(require("zone", "In", zone)),)) for zone in "ab"}
    for zone, found in (("a", []), ("b", wrong)):
        slices = (slice_of(d0, place=zones[zone]),)
        assert (
            judged(ONE, has("d0"), slices=slices, terms=zones[zone].terms if not found else None)
            == found
        )
    for zone, found in (("a", []), ("b", wrong)):
        alone = slice_of(
            replace(d0, placement=zones[zone]),
            device("d1", placement=Placement(all_nodes=True)),
            place=Placement(),
            placed_per_device=True,
        )
        terms = zones[zone].terms if not found else None
        assert judged(ONE, has("d0"), slices=(alone,), gates=PARTS, terms=terms) == found
        assert judged(ONE, has("d0"), slices=(alone,), terms=terms) == wrong


def test_the_node_selector_of_an_allocation_allows_only_nodes_that_reach_the_devices():
    wrong = ["has a node selector that allows nodes which do not reach its devices"]
    assert judged(ONE, has("d0"), terms=None) == wrong
    assert judged(ONE, has("d0"), terms=(named("n1", "n2"),)) == wrong
    zone = term(require("zone", "In", "a"))
    slices = (slice_of(device("d0"), place=Placement(terms=(zone,))),)
    assert judged(ONE, has("d0"), slices=slices, terms=(zone,)) == []
    assert judged(ONE, has("d0"), slices=slices, terms=None) == wrong
    slices = (slice_of(device("d0", binds_to_node=True), place=Placement(all_nodes=True)),)
    assert judged(ONE, has("d0"), slices=slices) == []
    assert judged(ONE, has("d0"), slices=slices, terms=None) == wrong


def test_devices_are_in_the_newest_generation_of_a_valid_pool():
    old = slice_of(device("d0"), name="old")
    new = slice_of(device("d1"), name="new", generation=2)
    assert judged(ONE, has("d1"), slices=(old, new)) == []
    assert judged(ONE, has("d0"), slices=(old, new)) == [
        f"has device {D0} for request r, which is not in generation 2 of its pool"
    ]
    doubled = (slice_of(device("d0"), device("d0"), device("d1")),)
    assert judged(ONE, has("d1"), slices=doubled) == [
        f"has device {D1} for request r, which is in a pool with two devices of one name"
    ]


def test_all_devices_are_not_allocated_while_slices_are_missing():
    slices = (slice_of(device("d0"), slices=2),)
    assert judged(ONE, has("d0"), slices=slices) == []
    assert judged(EVERY, has("d0"), slices=slices) == [
        "has devices for request r, which asks for all, "
        f"while slices of pool {DRIVER}/n1 are missing"
    ]


def test_alternatives_for_all_are_allocated_as_kube_scheduler_mixes_them_up():
    """A device of the alternative, then those of the first one from its second on."""
    first = ExactRequest("two", "gpu", count=2)
    every = ExactRequest("all", "gpu", mode=ALL_DEVICES, count=0)
    mixed = (*has("d0", request="r/all"), *has("d1", request="r/two"))
    assert judged(spec(ask("", alternatives=(first, every))), mixed) == []
    assert judged(spec(ask("", alternatives=(first, every))), mixed[:1]) == [
        "has 0 devices for request r/two, which asks for 1"
    ]
    assert (
        judged(spec(ask("", alternatives=(every, first))), has("d0", "d1", request="r/two")) == []
    )
    # The selectors of the first are used for both.
    alternatives = (replace(every, name="big", device_class="big"), every)
    asked = spec(ask("", alternatives=alternatives))
    assert judged(asked, has("d0", request="r/all")) == []
    assert judged(asked, has("d1", request="r/all")) == [
        f"has device {D1} for request r/all, which does not match selector #0 of class big"
    ]


def test_taints_of_devices_and_of_rules_are_tolerated():
    wrong = [f"has device {D0} for request r, which has the taint bad, which is not tolerated"]
    slices = (slice_of(device("d0", "big", taints=(BAD,))),)
    tolerant = spec(ask(tolerations=(TOLERATION,)))
    assert judged(ONE, has("d0"), slices=slices) == []
    assert judged(ONE, has("d0"), slices=slices, gates=TAINTS) == wrong
    assert judged(tolerant, has("d0"), slices=slices, gates=TAINTS) == []
    rule = DeviceTaintRule("rule", BAD)
    big = f"device.attributes['{DRIVER}'].model == 'big'"
    for chosen, found in (
        (rule, wrong),
        (replace(rule, driver=DRIVER, pool="n1", device="d0"), wrong),
        (replace(rule, device_class="big", selectors=(big,)), wrong),
        (replace(rule, device="d1"), []),
        (replace(rule, pool="n2"), []),
        (replace(rule, driver="other"), []),
        (replace(rule, device_class="none"), []),
        (replace(rule, selectors=("false",)), []),
    ):
        assert judged(ONE, has("d0"), gates=TAINTS, rules=(chosen,)) == found


def test_devices_that_need_a_gate_are_not_allocated_while_it_is_off():
    where = f"has device {D0} for request r, which"
    for fields, needed in (
        ({"consumes": (CounterSetFacts("set", ()),)}, "DRAPartitionableDevices"),
        ({"binding_conditions": ("ready",)}, "DRADeviceBindingConditions"),
    ):
        slices = (slice_of(device("d0", **fields)),)
        what = "consumes counters" if "consumes" in fields else "has binding conditions"
        assert judged(ONE, has("d0"), slices=slices) == [f"{where} {what}, which needs {needed}"]
        assert judged(ONE, has("d0"), slices=slices, gates=(*DEFAULTS, needed)) == []
    shared = has("d0", share_id="1")
    assert judged(ONE, shared) == [f"{where} is shared, which needs DRAConsumableCapacity"]
    for asked, results, gate in (
        (FIRST, has("d0", request="r/big"), "DRAPrioritizedList"),
        (ADMIN, has("d0", has_admin_access=True), "DRAAdminAccess"),
        (spec(ask(capacity=())), has("d0"), "DRAConsumableCapacity"),
    ):
        needs = f"has devices for request r, which needs {gate}"
        assert judged(asked, results, gates=()) == [needs]


def sharing(policy=None, *, requested="3", consumed="3", share_id="1", allows_several=True):
    """Return the violations of a request for bandwidth of a device that has 8 of it."""
    capacity = DeviceCapacity("bandwidth", "8", policy)
    slices = (slice_of(device("s", capacity=(capacity,), allows_several=allows_several)),)
    amounts = None if consumed is None else (("bandwidth", consumed),)
    asked = spec(ask(capacity=None if requested is None else (("bandwidth", requested),)))
    results = has("s", share_id=share_id, consumed=amounts)
    found = judged(asked, results, slices=slices, gates=CONSUMABLE)
    return [text.removeprefix(f"has device {S} for request r, which ") for text in found]


def test_as_much_capacity_is_consumed_as_was_requested():
    less = ["is consumed by 2 of capacity bandwidth, 3 is requested"]
    assert sharing() == []
    assert sharing(consumed="4") == []
    assert sharing(consumed="2") == less
    assert sharing(consumed=None) == ["has a capacity bandwidth, of which nothing is consumed"]
    assert sharing(requested=None, consumed="8") == []
    assert sharing(requested=None) == ["is consumed by 3 of capacity bandwidth, 8 is requested"]
    assert sharing(RequestPolicy("3"), requested=None) == []
    assert sharing(RequestPolicy("3"), requested=None, consumed="2") == less
    assert sharing(share_id=None) == ["is one of several claims, and has no share"]


def test_policies_allow_the_amounts_that_are_consumed():
    forbidden = ["is consumed by 3 of capacity bandwidth, which its policy forbids"]
    assert sharing(RequestPolicy(valid_amounts=("1", "3"))) == []
    assert sharing(RequestPolicy(valid_amounts=("1", "4"))) == forbidden
    assert sharing(RequestPolicy("3", valid_amounts=("1", "4"))) == []
    assert sharing(RequestPolicy(minimum="1", maximum="5", step="2")) == []
    assert sharing(RequestPolicy(minimum="4")) == forbidden
    assert sharing(RequestPolicy(minimum="1", maximum="2")) == forbidden
    assert sharing(RequestPolicy(minimum="0", step="2")) == forbidden


def test_a_device_of_one_claim_has_the_capacity_that_is_requested():
    whole = {"share_id": None, "consumed": None, "allows_several": False}
    assert sharing(**whole) == []
    assert sharing(requested="9", **whole) == ["has less of capacity bandwidth than is requested"]
    asked = spec(ask(capacity=(("memory", "1"),)))
    assert judged(asked, has("d0"), gates=CONSUMABLE) == [
        f"has device {D0} for request r, which has no capacity memory, which is requested"
    ]


def test_a_claim_changes_only_in_its_use():
    found = history(ONE)
    bind(found, TWO, has("d0", "d1"))
    assert texts(found) == ["is not as it was before, but for its devices and pods"]
    bind(found := history(ONE), ONE, has("d0"))
    bind(found, ONE, has("d1"))
    assert "has other devices than before" in [
        text.removeprefix("claim default/c-p ") for _, _, text in found.broken()
    ]


def test_a_claim_is_made_before_it_is_allocated_and_allocated_with_a_pod():
    made = owned("c-q", "q", allocation=Allocation(has("d0"), node_terms=HERE))
    found = history(ONE).add(RecordKind.STORAGE, subject=BoundClaims(device_claims=(made,)))
    assert [text for _, _, text in found.broken()] == [
        "claim default/c-q did not exist before",
        "claim default/c-q is allocated, and no pod of the commit uses it",
    ]


@pytest.mark.parametrize(
    ("count", "device_class", "is_right"), [(1, "gpu", True), (2, "gpu", False), (1, "big", False)]
)
def test_the_claim_for_extended_resources_has_the_requests_of_the_containers(
    count, device_class, is_right
):
    devices = DevicesFacts(FLEET, (SERVING, BIG), ())
    found = History().add(RecordKind.CLUSTER, subject=ClusterFacts(devices=devices))
    rules = Rules(extended_resource=True, device_gates=DEFAULTS)
    facts = asking("p", 1)
    found.add(RecordKind.CLUSTER, subject=rules).node(N1).accept("p", facts).bind("p", facts=facts)
    name = "container-0-request-0"
    own = left_by(
        "p",
        spec=spec(ask(device_class, name, count=count)),
        allocation=Allocation(has("d0", "d1", request=name)[:count], node_terms=HERE),
        reserved_for=(Consumer("pods", "p", "p"),),
    )
    found.add(RecordKind.STORAGE, subject=BoundClaims(device_claims=(own,)))
    wrong = "claim default/p-left does not request what the containers request"
    assert (wrong not in [text for _, _, text in found.broken()]) == is_right
    assert not is_right or not found.broken()


def test_a_journal_without_gates_is_not_judged_by_them():
    """The form that earlier releases wrote."""
    consuming = device("d0", consumes=(CounterSetFacts("set", ()),), taints=(BAD,))
    for asked, results in (
        (ONE, has("d0")),
        (EVERY, has("d0")),
        (FIRST, has("d0", request="r/big")),
    ):
        slices = (
            slice_of(replace(consuming, attributes=device("d0", "big").attributes), device("d1")),
        )
        assert judged(asked, results, slices=slices, gates=None) == []
