"""Volumes: claims that are bound, claims that are bound with a pod, limits and zones."""

from dataclasses import replace

import pytest

from roadstead.facts.bound_claims import BoundClaims
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.pod import Volume
from roadstead.facts.selectors import LabelSelector
from roadstead.facts.storage import (
    AttachmentFacts,
    CapacityFacts,
    ClaimReference,
    CsiDriverFacts,
    CsiNodeFacts,
    CsiSource,
    NodeDriverFacts,
    VolumeFacts,
)
from roadstead.framework.cycle_state import CycleState
from roadstead.invariants.checker import check
from roadstead.invariants.claim_binding import STORAGE_RULES
from roadstead.invariants.storage import Storage
from roadstead.journal import RecordKind
from tests.builders import GIB, node, require
from tests.invariants.history import History
from tests.storage.world import (
    DRIVER,
    HOST,
    ROOMY,
    ZONE,
    Plain,
    bound,
    claim,
    disk,
    immediate,
    random_fleet,
    storage,
    using,
    volume,
    waiting,
    within,
)

HERE = {HOST: "n1", ZONE: "a"}


def only(key, value):
    return LabelSelector((require(key, "In", value),))


def begun(*objects, attachments=()):
    facts = replace(storage(*objects), attachments=attachments)
    return cluster(facts).node(node("n1", labels=HERE))


def cluster(facts):
    return History().add(RecordKind.CLUSTER, subject=ClusterFacts(storage=facts))


def taken(before, one):
    """The change by which a claim gets a volume."""
    owner = ClaimReference(one.namespace, one.name, one.uid)
    after = replace(one, volume_name=before.name, has_bind_completed=True)
    return BoundClaims((after,), (replace(before, claim=owner, phase="Bound"),))


def texts(history):
    return [text for _, _, text in history.broken()]


def test_a_bound_claim_is_used_where_its_volume_is_reachable():
    near = begun(volume("pv", node_terms=within(HOST, "n1")), bound("c", "pv"))
    far = begun(volume("pv", node_terms=within(HOST, "n2")), bound("c", "pv"))

    assert near.bind("a", facts=using("c")).broken() == []
    assert far.bind("a", facts=using("c")).broken() == [
        ("I2", 3, "the node does not reach volume pv of claim default/c")
    ]


@pytest.mark.parametrize(
    ("objects", "text"),
    [
        ((), "claim default/c is not there"),
        ((bound("c", "pv", is_terminating=True), volume("pv")), "claim default/c is being deleted"),
        ((bound("c", "pv", is_lost=True), volume("pv")), "claim default/c is lost"),
        ((bound("c", "pv"),), "volume pv of claim default/c is not there"),
        (
            (claim("c", storage_class="now"), immediate("now")),
            "claim default/c is not bound, and does not wait for a pod",
        ),
    ],
)
def test_an_unusable_claim_is_named(objects, text):
    assert text in texts(begun(*objects).bind("a", facts=using("c")))


def test_an_ephemeral_claim_is_used_by_its_own_pod():
    made = Volume("v", "ephemeral", (("claimName", "a-v"), ("podUID", "a")))
    pod = using(volumes=(made,))
    own = begun(volume("pv"), bound("a-v", "pv", owner_uid="a"))
    other = begun(volume("pv"), bound("a-v", "pv", owner_uid="b"))

    assert own.bind("a", facts=pod).broken() == []
    assert texts(other.bind("a", facts=pod)) == ["claim default/a-v belongs to another object"]


def test_a_migrated_volume_is_reachable_through_its_csi_driver():
    moved = volume(
        "pv",
        node_terms=within(HOST, "n2"),
        in_tree="kubernetes.io/aws-ebs",
        migrated_terms=within(HOST, "n1"),
    )
    on_node = CsiNodeFacts("n1", migrated=("kubernetes.io/aws-ebs",))

    assert begun(moved, bound("c", "pv"), on_node).bind("a", facts=using("c")).broken() == []
    assert texts(begun(moved, bound("c", "pv")).bind("a", facts=using("c"))) == [
        "the node does not reach volume pv of claim default/c"
    ]


def claiming(given, asked=None, *more):
    """A history in which a pod gets a volume with its claim."""
    asked = asked or claim("c")
    history = begun(waiting("local"), given, asked, *more).bind("a", facts=using("c"))
    return history.add(RecordKind.STORAGE, subject=taken(given, asked))


def test_a_waiting_claim_is_bound_in_the_commit_of_its_pod():
    history = claiming(volume("pv", access_modes=("ReadWriteOnce", "ReadWriteMany")))

    assert history.broken() == []
    assert check(history.records).counts == {"claims_bound": 1}
    # From here on it is bound, also for the next pod that uses it.
    assert history.bind("b", facts=using("c")).broken() == []


def test_a_waiting_claim_that_stays_unbound_is_named():
    history = begun(waiting("local"), volume("pv"), claim("c")).bind("a", facts=using("c"))

    assert history.broken() == [("I2", 3, "claim default/c was not bound with the pod")]


def test_a_claim_that_no_pod_of_the_commit_uses_is_not_bound():
    history = begun(waiting("local"), volume("pv"), claim("c")).bind("a")
    history.add(RecordKind.STORAGE, subject=taken(volume("pv"), claim("c")))

    assert history.broken() == [
        ("I2", 4, "claim default/c is bound, and no pod of the commit waited for it")
    ]


@pytest.mark.parametrize(
    ("given", "asked", "text"),
    [
        (volume("pv", 4), claim("c"), f"volume pv has {4 * GIB} of {5 * GIB} bytes"),
        (
            volume("pv", storage_class="other"),
            claim("c"),
            "volume pv has class other, claim default/c wants local",
        ),
        (
            volume("pv", volume_mode="Block"),
            claim("c"),
            "volume pv has mode Block, claim default/c wants Filesystem",
        ),
        (
            volume("pv"),
            claim("c", access_modes=("ReadWriteMany",)),
            "volume pv lacks an access mode of claim default/c",
        ),
        (
            volume("pv", node_terms=within(HOST, "n2")),
            claim("c"),
            "the node does not reach volume pv of claim default/c",
        ),
        (volume("pv", phase="Released"), claim("c"), "volume pv is Released"),
        (volume("pv", is_terminating=True), claim("c"), "volume pv is being deleted"),
        (
            volume("pv", claim=ClaimReference("default", "other")),
            claim("c"),
            "volume pv is that of claim default/other",
        ),
        (
            volume("pv"),
            claim("c", selected_node="n2"),
            "claim default/c is to be bound on node n2",
        ),
        (
            volume("pv"),
            claim("c", selector=only("disk", "ssd")),
            "volume pv is not one that claim default/c selects",
        ),
    ],
)
def test_an_unsuitable_volume_is_refused(given, asked, text):
    assert text in texts(claiming(given, asked))


def test_a_volume_matches_all_requirements_of_a_claim_selector():
    both = LabelSelector((require("disk", "In", "ssd"), require("tier", "In", "1")))
    half = replace(volume("pv"), labels=(("disk", "ssd"),))

    assert texts(claiming(half, claim("c", selector=both))) == [
        "volume pv is not one that claim default/c selects"
    ]


def test_a_claim_without_a_size_binds_a_volume_of_any_size():
    history = claiming(volume("pv", 0), replace(claim("c"), requested_bytes=None))

    assert history.broken() == []


def test_a_volume_is_bound_to_one_claim_only():
    history = claiming(volume("pv"), claim("c"), claim("d")).bind("b", facts=using("d"))
    history.add(RecordKind.STORAGE, subject=taken(volume("pv"), claim("d")))

    assert texts(history) == [
        "volume pv is that of claim default/c",
        "volume pv is that of claim default/c",
    ]


def making(provisioner=DRIVER, topologies=(), *more, made=None):
    """A history in which a volume is made for a claim."""
    asked = claim("c", storage_class="made")
    history = begun(waiting("made", provisioner, topologies), asked, *more)
    made = made or VolumeFacts(
        "pvc-uid-c", "made", 5 * GIB, ("ReadWriteOnce",), csi=CsiSource(provisioner, "pvc-uid-c")
    )
    history.bind("a", facts=using("c"))
    return history.add(RecordKind.STORAGE, subject=taken(made, asked))


def room(limit, zone="a"):
    selector = only(ZONE, zone)
    return CapacityFacts("default", f"room-{zone}", "made", selector, limit)


def test_a_volume_is_provisioned_where_its_class_allows_it():
    assert making().broken() == []
    assert making(DRIVER, (((ZONE, ("a", "b")),),)).broken() == []
    assert texts(making(DRIVER, (((ZONE, ("b",)),),))) == [
        "class made makes no volumes for the node"
    ]
    assert texts(making("kubernetes.io/no-provisioner")) == [
        "volume pvc-uid-c is not there, and its class makes none"
    ]


def test_a_volume_is_provisioned_where_there_is_capacity():
    tracked = CsiDriverFacts(ROOMY, tracks_capacity=True)

    assert making(ROOMY, (), tracked, room(5 * GIB)).broken() == []
    for capacity in (room(4 * GIB), room(9 * GIB, zone="b")):
        assert texts(making(ROOMY, (), tracked, capacity)) == [
            "no storage of class made has room for claim default/c near the node"
        ]


def limited(*objects, limit=1, attachments=()):
    driver = CsiNodeFacts("n1", (NodeDriverFacts(DRIVER, limit),))
    found = (volume("v1"), volume("v2"), bound("c", "v1"), bound("d", "v2"), driver, *objects)
    return begun(*found, attachments=attachments)


def test_a_node_accepts_as_many_volumes_of_a_driver_as_it_declares():
    shared = limited().bind("a", facts=using("c")).bind("b", facts=using("c"))
    full = limited().bind("a", facts=using("c")).bind("b", facts=using("d"))

    assert shared.broken() == []
    assert full.broken() == [("I1", 4, f"volumes of {DRIVER}: 1 + 1 of 1")]
    full.records.insert(3, full.records[2]._replace(kind=RecordKind.DELETE))
    assert "I1" not in [each for each, _, _ in full.broken()]


def test_volumes_of_pods_that_ran_from_the_start_count():
    history = limited().add(RecordKind.LOAD, "a", "n1", facts=using("c"))

    assert texts(history.bind("b", facts=using("d"))) == [f"volumes of {DRIVER}: 1 + 1 of 1"]


def test_attached_volumes_count_together_with_those_of_pods():
    attached = (AttachmentFacts("at", "n1", DRIVER, "v2"),)

    assert texts(limited(attachments=attached).bind("a", facts=using("c"))) == [
        f"volumes of {DRIVER}: 1 + 1 of 1"
    ]
    assert limited(limit=None, attachments=attached).bind("a", facts=using("c")).broken() == []


def test_an_unbound_claim_counts_for_the_driver_of_its_class():
    objects = (waiting("made", DRIVER), claim("e", storage_class="made"))
    full = limited(*objects).bind("a", facts=using("c")).bind("b", facts=using("e"))

    assert f"volumes of {DRIVER}: 1 + 1 of 1" in texts(full)


@pytest.mark.parametrize(
    ("key", "value", "is_there"),
    [
        (ZONE, "a", True),
        (ZONE, "b", False),
        (ZONE, "b__a", True),
        ("failure-domain.beta.kubernetes.io/zone", "a", True),
        ("failure-domain.beta.kubernetes.io/zone", "b", False),
        ("topology.kubernetes.io/region", "r", False),
        ("other", "b", True),
    ],
)
def test_a_volume_with_a_zone_is_used_in_that_zone(key, value, is_there):
    history = begun(volume("pv", labels=((key, value),)), bound("c", "pv"))
    refusal = [f"volume pv is in {key} {value}, the node is not"]

    assert texts(history.bind("a", facts=using("c"))) == ([] if is_there else refusal)


def test_a_disk_is_not_mounted_twice_on_a_node():
    disks = {
        "gce": disk("gcePersistentDisk", pdName="d"),
        "read": disk("gcePersistentDisk", pdName="d", readOnly="true"),
        "ebs": disk("awsElasticBlockStore", volumeID="d", readOnly="true"),
        "rbd": disk("rbd", image="i", pool="p", monitors=("m1", "m2")),
        "far": disk("rbd", image="i", pool="p", monitors=("m3",)),
    }

    def twice(one, other):
        history = begun().bind("a", facts=using(volumes=(disks[one],)))
        return texts(history.bind("b", facts=using(volumes=(disks[other],))))

    assert twice("gce", "gce") == twice("gce", "read") == ["gcePersistentDisk d is in use"]
    assert twice("ebs", "ebs") == ["awsElasticBlockStore d is in use"]
    assert twice("rbd", "rbd") == ["rbd i is in use"]
    assert twice("read", "read") == twice("rbd", "far") == twice("gce", "ebs") == []


def zoned(seed):
    """A random fleet, some of whose volumes have zones."""
    nodes, facts, pods = random_fleet(seed)
    labels = ((), ((ZONE, "z0"),), ((ZONE, "z1__z2"),))
    volumes = [replace(each, labels=labels[place % 3]) for place, each in enumerate(facts.volumes)]
    return nodes, replace(facts, volumes=tuple(volumes)), pods


def driven(seed):
    """Place the pods of a random fleet with the plain cycle: (plain, placed, history)."""
    nodes, facts, pods = zoned(seed)
    plain, placed = Plain(nodes, facts), {}
    history = cluster(facts)
    for each in nodes:
        history.node(each)
    for name, each in pods:
        before = dict(plain.storage.claims)
        (node_name, *_) = plain.run([(name, each)])[0]
        if node_name is None:
            continue
        placed[name] = node_name, each
        history.bind(name, node_name, facts=each)
        for key, now in plain.storage.claims.items():
            if now != before[key]:
                given = plain.storage.volumes[now.volume_name]
                history.add(RecordKind.STORAGE, subject=BoundClaims((now,), (given,)))
    return plain, placed, history


@pytest.mark.parametrize("seed", range(12))
def test_binds_of_the_plain_cycle_break_no_volume_rule(seed):
    _, _, history = driven(seed)

    assert history.broken() == []
    assert any(each.kind is RecordKind.STORAGE for each in history.records)


@pytest.mark.parametrize("seed", range(12))
def test_volume_rules_refuse_the_same_as_the_filters(seed):
    plain, placed, _ = driven(seed)
    nodes, facts, pods = zoned(seed)
    state = Storage()
    state.begin(facts)
    state.claims, state.volumes = dict(plain.storage.claims), dict(plain.storage.volumes)
    for name, (node_name, each) in placed.items():
        state.put(name, node_name, each)
    (profile,) = plain.profiles.values()
    filters = {plugin.name: plugin for plugin in profile.filter}
    for _, each in pods:
        is_open = any(state.waits(claim) for _, _, claim in state.claims_of(each))
        for _, name, rule in STORAGE_RULES:
            # A waiting claim is compared with its own volume, not with all volumes.
            if not (is_open and name == "VolumeBinding"):
                refused = refused_by(filters[name], plain.table, each)
                assert refused == {n.name for n in nodes if any(rule(state, each, n))}, name


def refused_by(plugin, table, facts):
    cycle, pod_class = CycleState(len(table)), table.classes.pod_class(facts)
    status = plugin.pre_filter(cycle, pod_class, table).status
    if status.is_skip:
        return set()
    if not status.is_success:
        return set(table.names)
    codes = plugin.filter(cycle, pod_class, table).codes
    if codes is None:
        return set()
    return {name for name, code in zip(table.names, codes, strict=True) if code}
