"""Rules for volumes that are bound already, case by case: node affinity, zones and limits."""

from dataclasses import replace

import pytest

from roadstead.facts.bound_claims import BoundClaims
from roadstead.facts.pod import Volume
from roadstead.facts.storage import (
    AttachmentFacts,
    CsiNodeFacts,
    CsiSource,
    NodeDriverFacts,
    StorageClassFacts,
)
from roadstead.invariants.storage import Storage, another_zone, reaches, unusable_claim
from roadstead.invariants.volume_limits import too_many_volumes
from roadstead.storage.state import StorageChange, StorageState
from tests.builders import named, node, pod, require, term
from tests.storage.world import (
    DRIVER,
    HOST,
    ZONE,
    bound,
    claim,
    disk,
    immediate,
    storage,
    using,
    volume,
    waiting,
    within,
)

HERE = node("n1", labels={HOST: "n1", ZONE: "a"})
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
EBS, EBS_DRIVER = "kubernetes.io/aws-ebs", "ebs.csi.aws.com"
VSPHERE, VSPHERE_DRIVER = "kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com"


def state(*objects, attachments=()):
    found = Storage()
    found.begin(replace(storage(*objects), attachments=attachments))
    return found


def made_for(name, uid):
    """An ephemeral volume of the pod with this UID."""
    return Volume("v", "ephemeral", (("claimName", name), ("podUID", uid)))


IN_A, ON_N2 = require(ZONE, "In", "a"), require(HOST, "In", "n2")


@pytest.mark.parametrize(
    ("terms", "is_reached"),
    [
        (None, True),
        ((), False),
        ((term(IN_A),), True),
        ((term(ON_N2),), False),
        ((term(ON_N2), term(IN_A)), True),
        ((term(IN_A, ON_N2),), False),
        ((term(),), False),
        ((term(IN_A, error="does not parse"),), False),
        # Upstream requires only labels of a node.
        ((named("n2"),), True),
    ],
)
def test_some_term_of_its_affinity_makes_a_volume_reachable(terms, is_reached):
    assert reaches(terms, HERE) is is_reached


@pytest.mark.parametrize(
    ("objects", "texts"),
    [
        ((), ["claim default/c is not there"]),
        ((volume("v"), bound("c", "v")), []),
        ((bound("c", "v"),), ["volume v of claim default/c is not there"]),
        ((bound("c", "v", is_lost=True),), ["claim default/c is lost"]),
        ((bound("c", "v", is_terminating=True),), ["claim default/c is being deleted"]),
        ((waiting("local"), claim("c")), []),
        ((claim("c"),), ["claim default/c is not bound, and does not wait for a pod"]),
        (
            (immediate("local"), claim("c")),
            ["claim default/c is not bound, and does not wait for a pod"],
        ),
        # A volume is reserved for it, and it waits for that one.
        (
            (waiting("local"), claim("c", volume_name="v"), volume("v")),
            ["claim default/c is not bound, and does not wait for a pod"],
        ),
        # The owner of a claim matters only to volumes that are made for one pod.
        ((volume("v"), bound("c", "v", owner_uid="set")), []),
    ],
)
def test_a_claim_must_exist_and_be_usable(objects, texts):
    assert list(unusable_claim(state(*objects), using("c"), HERE)) == texts


def test_volumes_without_claims_are_not_looked_up():
    facts = using(volumes=(disk("configMap"),))

    for rule in (unusable_claim, another_zone):
        assert list(rule(state(), facts, HERE)) == []


@pytest.mark.parametrize(
    ("migrated", "in_tree", "has_moved"),
    [((EBS,), EBS, True), ((), EBS, False), ((EBS,), "", False), ((VSPHERE,), VSPHERE, False)],
)
def test_a_volume_counts_as_csi_where_the_node_has_migrated_its_plugin(
    migrated, in_tree, has_moved
):
    moved, own = within(HOST, "n1"), within(HOST, "n2")
    given = volume("v", node_terms=own, in_tree=in_tree, migrated_terms=moved)
    facts = state(given, bound("c", "v"), CsiNodeFacts("n1", migrated=migrated))

    refusal = ["the node does not reach volume v of claim default/c"]
    assert list(unusable_claim(facts, using("c"), HERE)) == ([] if has_moved else refusal)


@pytest.mark.parametrize(
    ("labels", "on_node", "is_there"),
    [
        ({ZONE: "a"}, {ZONE: "a"}, True),
        ({ZONE: "b"}, {ZONE: "a"}, False),
        ({ZONE: "b__ a"}, {ZONE: "a"}, True),
        # A node without zone and region labels accepts every volume.
        ({ZONE: "b"}, {HOST: "n1"}, True),
        # Labels that do not parse are ignored.
        ({ZONE: "b__"}, {ZONE: "a"}, True),
        ({ZONE: ""}, {ZONE: "a"}, True),
        # The other labels count all the same.
        ({"a": "x", ZONE: "b"}, {ZONE: "a"}, False),
        ({BETA_ZONE: "", ZONE: "b"}, {ZONE: "a"}, False),
        # A new label of a node without the old one satisfies the old label of a volume.
        ({BETA_ZONE: "a"}, {ZONE: "a"}, True),
        ({BETA_ZONE: "a"}, {ZONE: "b", BETA_ZONE: "a"}, True),
        ({BETA_ZONE: "b"}, {ZONE: "b", BETA_ZONE: "a"}, False),
        ({ZONE: "a"}, {BETA_ZONE: "a"}, False),
    ],
)
def test_a_volume_is_used_in_its_zones_only(labels, on_node, is_there):
    given = volume("v", labels=tuple(sorted(labels.items())))
    on = node("n1", labels=on_node)

    assert (not list(another_zone(state(given, bound("c", "v")), using("c"), on))) is is_there


@pytest.mark.parametrize(
    ("objects", "texts"),
    [
        ((), ["claim default/c has no volume"]),
        ((claim("c"),), ["claim default/c has no volume"]),
        ((claim("c"), waiting("local")), []),
        ((claim("c", volume_name="v"),), ["volume v of claim default/c is not there"]),
        ((bound("c", "v"),), ["volume v of claim default/c is not there"]),
    ],
)
def test_a_claim_has_a_volume_or_waits_for_one(objects, texts):
    assert list(another_zone(state(*objects), using("c"), HERE)) == texts


def test_zones_are_checked_for_claims_that_a_pod_names():
    """As upstream, which ignores the zone of a volume that was made for the pod."""
    given = volume("v", labels=((ZONE, "b"),))
    facts, own = state(given, bound("e", "v"), bound("c", "v")), made_for("e", "")
    both = using("c")
    both = replace(both, volumes=(own, *both.volumes))

    assert list(another_zone(facts, pod(volumes=(own,)), HERE)) == []
    assert list(another_zone(facts, both, HERE)) == [f"volume v is in {ZONE} b, the node is not"]


def over(driver, *objects, there=(), coming=(), limit=1, attachments=(), migrated=()):
    """Whether a pod's volumes exceed a driver's limit, together with those of pods on the node."""
    on_node = CsiNodeFacts("n1", (NodeDriverFacts(driver, limit),), migrated)
    facts = state(on_node, *objects, attachments=attachments)
    facts.put("there", "n1", using(volumes=there))
    return list(too_many_volumes(facts, using(volumes=coming), HERE))


def full(driver=DRIVER, count=1, more=1, limit=1):
    return [f"volumes of {driver}: {count} + {more} of {limit}"]


def claimed(*names):
    return using(*names).volumes


V1, V2, V3, C, D = volume("v1"), volume("v2"), volume("v3"), bound("c", "v1"), bound("d", "v2")
BOTH = (V1, V2, C, D)


@pytest.mark.parametrize(
    ("limit", "there", "coming", "texts"),
    [
        (1, (), ("c",), []),
        (1, ("c",), ("c",), []),
        (1, ("c",), ("d",), full()),
        (2, ("c",), ("d",), []),
        (1, (), ("c", "d"), full(count=0, more=2)),
        (None, ("c",), ("d",), []),
        # A missing claim has no volume, and the next one counts.
        (1, ("c",), ("lost", "d"), full()),
        (0, ("c",), ("lost",), []),
    ],
)
def test_volumes_on_a_node_are_limited_by_its_driver(limit, there, coming, texts):
    found = over(DRIVER, *BOTH, there=claimed(*there), coming=claimed(*coming), limit=limit)

    assert found == texts


def test_a_node_with_unknown_drivers_accepts_all_volumes():
    assert list(too_many_volumes(state(*BOTH), using("c", "d"), HERE)) == []


def test_a_driver_over_its_limit_refuses_only_its_own_volumes():
    other = volume("o", csi=CsiSource("other", "o"))
    facts = {"there": claimed("c", "d"), "limit": 1}

    assert over(DRIVER, *BOTH, other, bound("e", "o"), coming=claimed("e"), **facts) == []
    assert over(DRIVER, *BOTH, V3, bound("e", "v3"), coming=claimed("e"), **facts) == full(count=2)


@pytest.mark.parametrize(
    ("attachment", "is_full"),
    [
        (AttachmentFacts("at", "n1", DRIVER, "v2"), True),
        (AttachmentFacts("at", "n2", DRIVER, "v2"), False),
        (AttachmentFacts("at", "n1", DRIVER, ""), False),
    ],
)
def test_attached_volumes_count(attachment, is_full):
    found = over(DRIVER, *BOTH, coming=claimed("c"), attachments=(attachment,))

    assert found == (full() if is_full else [])
    # In addition, volumes of pods count all the same.
    both = over(
        DRIVER, *BOTH, V3, bound("e", "v3"),
        there=claimed("c"), coming=claimed("e"), limit=2, attachments=(attachment,),
    )  # fmt: skip
    assert both == (full(count=2, limit=2) if is_full else [])


@pytest.mark.parametrize(
    ("facts", "is_counted"),
    [
        ({"csi": CsiSource(DRIVER, "h")}, True),
        ({"csi": CsiSource(DRIVER, "")}, False),
        ({"csi": None}, False),
        # A volume of a migrated plugin counts for its CSI driver.
        ({"csi": None, "in_tree": EBS, "migrated": CsiSource(DRIVER, "h")}, True),
        ({"csi": None, "in_tree": VSPHERE, "migrated": CsiSource(DRIVER, "h")}, False),
        ({"in_tree": EBS, "migrated": CsiSource("other", "h")}, True),
    ],
)
def test_a_volume_counts_for_its_driver(facts, is_counted):
    found = over(DRIVER, *BOTH, volume("e", **facts), bound("e", "e"),
                 there=claimed("c"), coming=claimed("e"))  # fmt: skip

    assert found == (full() if is_counted else [])


@pytest.mark.parametrize(
    ("driver", "provisioner", "is_counted"),
    [
        (DRIVER, DRIVER, True),
        (DRIVER, "other", False),
        ("", "", False),
        (EBS_DRIVER, EBS, True),
        (VSPHERE_DRIVER, VSPHERE, False),
    ],
)
def test_an_unbound_claim_counts_for_the_driver_that_would_provision_it(
    driver, provisioner, is_counted
):
    unbound = claim("e", storage_class="made")
    found = over(driver, waiting("made", provisioner), unbound, coming=claimed("e"), limit=0)

    assert found == (full(driver, count=0, limit=0) if is_counted else [])
    # Two claims are two volumes.
    two = (waiting("made", provisioner), unbound, claim("f", storage_class="made"))
    found = over(driver, *two, there=claimed("e"), coming=claimed("f"), limit=1)
    assert found == (full(driver) if is_counted else [])


def test_a_claim_of_a_missing_class_counts_for_no_driver():
    assert over(DRIVER, claim("e"), coming=claimed("e"), limit=0) == []
    nothing = StorageClassFacts("local")
    assert over(DRIVER, claim("e"), nothing, coming=claimed("e"), limit=0) == []


@pytest.mark.parametrize(("owner", "uid", "is_counted"), [("a", "a", True), ("b", "a", False)])
def test_an_ephemeral_claim_counts_for_its_own_pod(owner, uid, is_counted):
    """As upstream: a claim of another object ends the count of the pod's volumes."""
    own = bound("e", "v1", owner_uid=owner)
    coming = (made_for("e", uid), *claimed("d"))

    found = over(DRIVER, V1, V2, own, D, coming=coming, limit=0)

    assert found == (full(count=0, more=2, limit=0) if is_counted else [])


def test_a_claim_owned_by_some_object_counts_for_every_pod_that_names_it():
    owned = bound("e", "v1", owner_uid="set")

    assert over(DRIVER, V1, owned, coming=claimed("e"), limit=0) == full(count=0, limit=0)


def test_inline_disks_count_where_their_plugin_has_migrated():
    ebs = disk("awsElasticBlockStore", volumeID="vol-1")
    broken = disk("awsElasticBlockStore", volumeID="aws://a/b/c")
    vsphere = disk("vsphereVolume", volumePath="p")

    assert over(EBS_DRIVER, coming=(ebs,), limit=0) == full(EBS_DRIVER, 0, 1, 0)
    assert over(EBS_DRIVER, there=(ebs,), coming=(ebs,), limit=1) == []
    assert over(EBS_DRIVER, coming=(broken, ebs), limit=0) == []
    assert over(EBS_DRIVER, coming=(ebs, broken), limit=0) == full(EBS_DRIVER, 0, 1, 0)
    assert over(VSPHERE_DRIVER, coming=(vsphere,), limit=0) == []
    assert over(EBS_DRIVER, coming=(vsphere, ebs), limit=0) == full(EBS_DRIVER, 0, 1, 0)


def test_a_volume_both_removed_and_set_by_a_record_exists_as_for_schedulers():
    found, theirs = state(volume("v")), StorageState(storage(volume("v")))
    kept = found.volumes["v"]

    found.change(BoundClaims(volumes=(kept,), removed=("v",)))
    theirs.apply(StorageChange(volumes=(kept,), removed=("v",)))

    assert found.volumes == theirs.volumes == {"v": kept}
