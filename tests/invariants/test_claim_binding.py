"""Claims that are bound together with a pod: which change of a claim is valid, and on which
nodes.
"""

from dataclasses import replace

import pytest

from roadstead.facts.bound_claims import BoundClaims
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.filter_rules import Rules
from roadstead.facts.selectors import LabelSelector
from roadstead.facts.storage import (
    NO_PROVISIONER,
    AttachmentFacts,
    CapacityFacts,
    ClaimReference,
    CsiDriverFacts,
    CsiNodeFacts,
    CsiSource,
    NodeDriverFacts,
    StorageClassFacts,
    VolumeFacts,
)
from roadstead.invariants.checker import check
from roadstead.invariants.claim_binding import binding_errors
from roadstead.invariants.storage import Storage
from roadstead.journal import RecordKind
from tests.builders import GIB, node, require
from tests.invariants.history import History
from tests.storage.world import (
    DRIVER,
    HOST,
    ZONE,
    bound,
    claim,
    storage,
    using,
    volume,
    waiting,
    within,
)

HERE = node("n1", labels={HOST: "n1", ZONE: "a"})
OWN = ClaimReference("default", "c", "uid-c")
SSD = LabelSelector((require("disk", "In", "ssd"),))


def state(*objects):
    found = Storage()
    found.begin(storage(*objects))
    return found


def change(given, asked, **more):
    """The change by which a claim gets a volume; more: the volume's other new fields."""
    after = replace(asked, volume_name=given.name, has_bind_completed=True)
    owner = ClaimReference(asked.namespace, asked.name, asked.uid)
    return BoundClaims((after,), (replace(given, **({"claim": owner, "phase": "Bound"} | more)),))


def wrong(given, asked, *objects, changed=None):
    """Reasons for which a claim may not get an existing volume."""
    facts = state(given, asked, *objects)
    return list(binding_errors(facts, asked, changed or change(given, asked), HERE))


def test_a_change_binds_one_claim_to_one_volume_and_removes_none():
    given, asked = volume("pv"), claim("c")
    right = change(given, asked)
    not_one = ["claim default/c: not one claim with one volume"]

    assert wrong(given, asked) == []
    for off in (
        {"claims": ()},
        {"claims": right.claims * 2},
        {"volumes": ()},
        {"volumes": right.volumes * 2},
        {"removed": ("pv2",)},
    ):
        assert wrong(given, asked, changed=replace(right, **off)) == not_one


@pytest.mark.parametrize(
    "off", [{"has_bind_completed": False}, {"volume_name": "pv2"}, {"requested_bytes": 1}]
)
def test_only_the_volume_of_a_claim_changes(off):
    right = change(volume("pv"), claim("c"))
    (after,) = right.claims
    changed = replace(right, claims=(replace(after, **off),))

    assert wrong(volume("pv"), claim("c"), changed=changed) == [
        "claim default/c is not as it was before, but for its volume pv"
    ]


@pytest.mark.parametrize(
    "owner", [None, replace(OWN, uid=""), replace(OWN, name="d"), replace(OWN, namespace="other")]
)
def test_a_volume_names_its_claim(owner):
    changed = change(volume("pv"), claim("c"), claim=owner)

    assert wrong(volume("pv"), claim("c"), changed=changed) == [
        "volume pv does not name claim default/c"
    ]


def test_only_the_claim_of_a_volume_changes():
    changed = change(volume("pv"), claim("c"), capacity_bytes=11 * GIB)

    assert wrong(volume("pv"), claim("c"), changed=changed) == [
        "volume pv is not as it was before, but for its claim"
    ]


def test_a_volume_belongs_to_one_claim():
    others = (bound("d", "pv2"), claim("e"))

    assert wrong(volume("pv"), claim("c"), *others) == []
    assert wrong(volume("pv"), claim("c"), *others, bound("f", "pv")) == [
        "volume pv is that of claim default/f"
    ]


@pytest.mark.parametrize(
    ("before", "asked", "texts"),
    [
        ({"claim": OWN}, {}, []),
        ({"claim": replace(OWN, uid="")}, {}, []),
        ({"claim": replace(OWN, uid="uid-of-before")}, {}, ["is that of claim default/c"]),
        ({"claim": replace(OWN, name="d")}, {}, ["is that of claim default/d"]),
        ({"claim": replace(OWN, namespace="o", uid="")}, {}, ["is that of claim o/c"]),
        # A volume that was reserved for the claim was not free, and need not have been.
        ({"claim": OWN, "phase": "Bound"}, {"access_modes": ("ReadWriteMany",)}, []),
        ({"phase": ""}, {}, ["is not available"]),
        ({"phase": "Released", "is_terminating": True}, {}, ["is being deleted", "is Released"]),
        ({"access_modes": ("ReadOnlyMany", "ReadWriteOnce")}, {}, []),
        ({"labels": (("disk", "ssd"),)}, {"selector": SSD}, []),
        ({"node_terms": within(ZONE, "a")}, {}, []),
    ],
)
def test_a_bound_volume_was_free_or_reserved_for_the_claim(before, asked, texts):
    given, asked = volume("pv", **before), claim("c", **asked)

    assert wrong(given, asked) == [f"volume pv {text}" for text in texts]


def test_a_claim_to_be_provisioned_binds_no_existing_volume():
    assert wrong(volume("pv"), claim("c", selected_node="n1")) == [
        "claim default/c waits for a volume to be made"
    ]


@pytest.mark.parametrize(
    ("given", "asked", "what"),
    [
        (volume("pv", storage_class="x"), claim("c"), "class x, claim default/c wants local"),
        (
            volume("pv", volume_mode="Block"),
            claim("c"),
            "mode Block, claim default/c wants Filesystem",
        ),
        (
            volume("pv", attributes_class="gold"),
            claim("c", attributes_class="tin"),
            "attributes class gold, claim default/c wants tin",
        ),
        (volume("pv", 4), claim("c"), f"{4 * GIB} of {5 * GIB} bytes"),
        (volume("pv", 5), claim("c"), ""),
        (volume("pv", 0), replace(claim("c"), requested_bytes=None), ""),
    ],
)
def test_a_volume_has_the_properties_that_the_claim_requests(given, asked, what):
    assert wrong(given, asked) == ([f"volume pv has {what}"] if what else [])


NONE_MADE = ["volume pvc is not there, and its class makes none"]


def made(*objects, provisioner=DRIVER, topologies=(), driver=None, **off):
    """Reasons for which no volume may be provisioned for a claim; off: its wrong fields."""
    asked = claim("c", storage_class="made", selected_node="n1")
    new = VolumeFacts("pvc", "made", 5 * GIB, ("ReadWriteOnce",), csi=CsiSource(DRIVER, "pvc"))
    if driver is not None:
        new = replace(new, csi=CsiSource(driver, "pvc"))
    facts = state(waiting("made", provisioner, topologies), asked, *objects)
    return list(binding_errors(facts, asked, change(replace(new, **off), asked), HERE))


def test_the_provisioner_of_its_class_makes_a_volume():
    ebs = "kubernetes.io/aws-ebs"

    assert made() == []
    assert made(driver="other") == made(csi=None) == [f"volume pvc was not made by {DRIVER}"]
    # Plugins migrated to CSI provision volumes of the CSI driver.
    assert (
        made(provisioner=ebs, driver="ebs.csi.aws.com") == made(provisioner=ebs, driver=ebs) == []
    )
    assert made(provisioner=ebs) == [f"volume pvc was not made by {ebs}"]
    assert made(provisioner="") == made(provisioner=NO_PROVISIONER) == NONE_MADE
    facts, asked = state(), claim("c", storage_class="made")
    new = VolumeFacts("pvc", "made", 5 * GIB, ("ReadWriteOnce",), csi=CsiSource(DRIVER, "pvc"))
    assert list(binding_errors(facts, asked, change(new, asked), HERE)) == NONE_MADE


def test_a_volume_has_the_access_modes_of_its_claim():
    for modes in ((), ("ReadWriteMany",), ("ReadWriteOnce", "ReadWriteMany")):
        assert made(access_modes=modes) == [
            "volume pvc has not the access modes of claim default/c"
        ]


@pytest.mark.parametrize(
    ("topologies", "is_made"),
    [
        ((), True),
        ((((ZONE, ("b", "a")),),), True),
        ((((ZONE, ("b",)),), ((ZONE, ("a",)),)), True),
        ((((ZONE, ("b",)),),), False),
        ((((ZONE, ("a",)), (HOST, ("n2",))),), False),
        (((),), False),
    ],
)
def test_a_volume_is_provisioned_in_an_allowed_topology(topologies, is_made):
    refusal = ["class made makes no volumes for the node"]

    assert made(topologies=topologies) == ([] if is_made else refusal)


def room(limit=5 * GIB, *requirements, storage_class="made", **off):
    facts = CapacityFacts("default", "room", storage_class, LabelSelector(requirements), limit)
    return replace(facts, **off)


IN_A, ON_N2 = require(ZONE, "In", "a"), require(HOST, "In", "n2")


@pytest.mark.parametrize(
    ("capacities", "has_room"),
    [
        ((), False),
        ((room(),), True),
        ((room(5 * GIB, IN_A),), True),
        ((room(5 * GIB - 1),), False),
        ((room(None),), False),
        ((room(selector=None),), False),
        ((room(storage_class="other"),), False),
        ((room(5 * GIB, IN_A, ON_N2),), False),
        ((room(1), room(name="more")), True),
    ],
)
def test_a_tracked_volume_is_provisioned_where_its_class_has_capacity(capacities, has_room):
    tracked = CsiDriverFacts(DRIVER, tracks_capacity=True)
    refusal = ["no storage of class made has room for claim default/c near the node"]

    assert made(tracked, *capacities) == ([] if has_room else refusal)
    assert made(CsiDriverFacts(DRIVER), *capacities) == made(*capacities) == []


def test_a_claim_without_a_size_fits_everywhere():
    asked = claim("c", None, storage_class="made")
    new = VolumeFacts("pvc", "made", 0, ("ReadWriteOnce",), csi=CsiSource(DRIVER, "pvc"))
    facts = state(waiting("made", DRIVER), asked, CsiDriverFacts(DRIVER, tracks_capacity=True))

    assert list(binding_errors(facts, asked, change(new, asked), HERE)) == []


class Commits(History):
    """A history on one node with this storage."""

    def __init__(self, *objects, filters=None, attachments=()):
        super().__init__()
        facts = replace(storage(waiting("local"), *objects), attachments=attachments)
        self.add(RecordKind.CLUSTER, subject=ClusterFacts(storage=facts)).node(HERE)
        if filters is not None:
            self.add(RecordKind.CLUSTER, subject=Rules((("default-scheduler", filters),)))

    def bound(self, given, asked):
        return self.add(RecordKind.STORAGE, subject=change(given, asked))

    def before_the_snapshot(self):
        """Take the number from the last record, as in a snapshot."""
        self.records[-1] = self.records[-1]._replace(lsn=0)
        return self

    def violations(self):
        return [text for _, _, text in self.broken()]


V1, V2, C, D = volume("v1"), volume("v2"), claim("c"), claim("d")


def test_a_commit_binds_the_claims_of_all_its_pods():
    one = Commits(V1, V2, C, D).bind("a", facts=using("c", "d")).bound(V1, C).bound(V2, D)
    two = Commits(V1, V2, C, D).bind("a", facts=using("c")).bind("b", facts=using("d"))
    two.bound(V1, C).bound(V2, D)

    for history in (one, two):
        assert history.violations() == []
        assert check(history.records).counts == {"claims_bound": 2}
        assert history.bind("z", facts=using("c", "d")).violations() == []


def test_a_claim_bound_before_the_commit_of_its_pod_was_unused():
    history = Commits(V1, V2, C, D).bind("a", facts=using("c")).bound(V1, C).bound(V2, D)

    assert history.bind("b", facts=using("d")).violations() == [
        "claim default/d is bound, and no pod of the commit waited for it"
    ]


def test_claims_of_a_snapshot_were_bound_in_earlier_commits():
    history = Commits(V1, C).bound(V1, C).before_the_snapshot().bind("a", facts=using("c"))

    assert history.violations() == []
    assert check(history.records).counts == {}


def test_a_volume_that_a_change_removes_does_not_exist():
    history = Commits(V1, bound("c", "v1"))
    history.add(RecordKind.STORAGE, subject=BoundClaims((), (), ("v1", "v9")))

    assert "volume v1 of claim default/c is not there" in (
        history.before_the_snapshot().bind("a", facts=using("c")).violations()
    )


FAR = volume("far", node_terms=within(HOST, "n2"), labels=((ZONE, "b"),))
UNREACHED = "the node does not reach volume far of claim default/f"
TOO_MANY = f"volumes of {DRIVER}: 1 + 1 of 1"
ELSEWHERE = f"volume far is in {ZONE} b, the node is not"
UNBOUND = "claim default/c was not bound with the pod"


@pytest.mark.parametrize(
    ("filters", "texts"),
    [
        (None, [UNREACHED, TOO_MANY, ELSEWHERE, UNBOUND]),
        (("VolumeBinding",), [UNREACHED, UNBOUND]),
        (("NodeVolumeLimits",), [TOO_MANY]),
        (("VolumeZone",), [ELSEWHERE]),
        ((), []),
    ],
)
def test_volume_rules_follow_the_filters_of_the_profile(filters, texts):
    full = CsiNodeFacts("n1", (NodeDriverFacts(DRIVER, 1),))
    attached = (AttachmentFacts("at", "n1", DRIVER, "v2"),)
    objects = (V2, FAR, C, bound("f", "far"), full)
    history = Commits(*objects, filters=filters, attachments=attached)

    assert history.bind("a", facts=using("f", "c")).violations() == texts


def test_a_class_without_delayed_binding_binds_no_claim_with_a_pod():
    at_once = StorageClassFacts("now", DRIVER, "Immediate")
    history = Commits(at_once, claim("c", storage_class="now")).bind("a", facts=using("c"))

    assert UNBOUND not in history.violations()
