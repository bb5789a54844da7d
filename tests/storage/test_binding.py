from dataclasses import replace

import pytest

from roadstead.facts.pod import Volume
from roadstead.facts.selectors import LabelSelector, NodeSelectorTerm, Requirement
from roadstead.facts.storage import (
    CapacityFacts,
    ClaimReference,
    CsiDriverFacts,
    CsiNodeFacts,
    NodeDriverFacts,
)
from roadstead.nodes.table import NodeTable
from roadstead.plugins.volume_matching import VolumeMatching
from roadstead.storage import StorageState, bindings_on
from roadstead.storage.claims import ClaimError, claims_of
from tests.builders import GIB, node, pod
from tests.storage.world import (
    DRIVER,
    HOST,
    ROOMY,
    ZONE,
    bound,
    claim,
    immediate,
    random_fleet,
    storage,
    using,
    volume,
    waiting,
    within,
)

N1 = node("n1", labels={ZONE: "z1", HOST: "n1"})
TO_C = ClaimReference("default", "c", "uid-c")
_OF_WAITING = 0b0110


def bindings(facts, wanted=None, on=N1):
    return bindings_on(StorageState(facts), wanted or using("c"), on)


def chosen(facts, wanted=None, on=N1):
    found = bindings(facts, wanted, on)
    return None if found is None else [(each.claim.name, each.volume.name) for each in found]


def test_the_smallest_fitting_volume_is_chosen_and_of_equal_ones_the_first_by_name():
    facts = storage(
        waiting("local"), claim("c", 5), volume("a", 20), volume("d", 10), volume("b", 10),
        volume("small", 4),
    )  # fmt: skip

    assert chosen(facts) == [("c", "b")]


def test_claim_and_volume_name_each_other_as_bound():
    (found,) = bindings(storage(waiting("local"), claim("c"), volume("a")))

    assert found.claim.is_bound
    assert found.claim.volume_name == "a"
    assert (found.volume.claim, found.volume.phase) == (TO_C, "Bound")


@pytest.mark.parametrize(
    "unfit",
    [
        {"storage_class": "other"},
        {"phase": "Released"},
        {"is_terminating": True},
        {"volume_mode": "Block"},
        {"attributes_class": "gold"},
        {"access_modes": ("ReadOnlyMany",)},
        {"claim": ClaimReference("default", "another")},
        {"claim": ClaimReference("default", "c", "another-uid")},
        {"node_terms": within(HOST, "n2")},
        {"node_terms": ()},
        {"node_terms": (NodeSelectorTerm(error="does not parse"),)},
        {"labels": (("tier", "slow"),)},
    ],
)
def test_a_volume_that_does_not_fit_is_skipped(unfit):
    fast = LabelSelector((Requirement("tier", "In", ("fast",)),))
    sound = {"labels": (("tier", "fast"),)}
    wanted = claim("c", selector=fast)

    assert chosen(storage(waiting("local"), wanted, volume("a", **sound))) == [("c", "a")]
    assert chosen(storage(waiting("local"), wanted, volume("a", **sound | unfit))) is None


def test_a_volume_that_names_the_claim_precedes_smaller_ones_in_any_phase():
    own = volume("own", 50, claim=ClaimReference("default", "c"), phase="")

    assert chosen(storage(waiting("local"), claim("c"), volume("a", 5), own)) == [("c", "own")]


def test_a_claim_named_by_an_unreachable_volume_can_not_be_bound():
    own = volume("own", claim=ClaimReference("default", "c"), node_terms=within(HOST, "n2"))

    assert chosen(storage(waiting("local"), claim("c"), volume("a"), own)) is None


def test_smaller_claims_choose_first_and_a_volume_has_one_claim():
    facts = storage(
        waiting("local"), claim("big", 8), claim("tiny", 1), volume("a", 10), volume("b", 20)
    )

    assert chosen(facts, using("big", "tiny")) == [("tiny", "a"), ("big", "b")]
    assert chosen(facts, using("big", "tiny", "big")) is None


def test_node_names_in_a_volumes_terms_are_ignored():
    by_name = (NodeSelectorTerm(fields=(Requirement("metadata.name", "In", ("n9",)),)),)

    assert chosen(storage(waiting("local"), claim("c"), volume("a", node_terms=by_name))) == [
        ("c", "a")
    ]


def test_a_new_volume_has_the_claims_size_and_the_nodes_topology():
    driver = CsiNodeFacts("n1", (NodeDriverFacts(DRIVER, None, (ZONE, "absent")),))
    wanted = claim("c", 7, storage_class="made", access_modes=("ReadWriteOncePod",))

    (found,) = bindings(storage(waiting("made", DRIVER), wanted, driver))

    assert found.volume == replace(
        volume("pvc-uid-c", 7, storage_class="made", access_modes=("ReadWriteOncePod",)),
        phase="Bound",
        claim=TO_C,
        csi=replace(found.volume.csi, driver=DRIVER),
        node_terms=within(ZONE, "z1"),
    )
    assert found.volume.csi.handle == "pvc-uid-c"


def test_without_a_driver_on_the_node_the_topology_of_the_class_sets_the_keys():
    zoned = waiting("made", "kubernetes.io/aws-ebs", (((ZONE, ("z1", "z2")),),))

    (found,) = bindings(storage(zoned, claim("c", storage_class="made")))

    assert found.volume.node_terms == within(ZONE, "z1")
    assert found.volume.csi.driver == "ebs.csi.aws.com"


def test_a_class_without_topology_provisions_volumes_that_all_nodes_reach():
    (found,) = bindings(storage(waiting("made", DRIVER), claim("c", storage_class="made")))

    assert found.volume.node_terms is None


@pytest.mark.parametrize(
    ("topologies", "fits"),
    [
        ((), True),
        ((((ZONE, ("z1",)),),), True),
        ((((ZONE, ("z2",)),),), False),
        ((((ZONE, ("z2",)),), ((HOST, ("n1",)),)), True),
        ((((ZONE, ("z1",)), (HOST, ("n2",))),), False),
        (((),), False),
        ((((ZONE, ()),),), False),
    ],
)
def test_terms_of_a_class_are_alternatives_and_all_their_keys_apply(topologies, fits):
    facts = storage(waiting("made", DRIVER, topologies), claim("c", storage_class="made"))

    assert (bindings(facts) is not None) == fits


def test_a_selected_node_is_kept_and_its_volume_is_provisioned_there():
    wanted = claim("c", storage_class="made", selected_node="n1")
    facts = storage(waiting("made", DRIVER), wanted, volume("a", storage_class="made"))

    assert chosen(facts) == [("c", "pvc-uid-c")]
    assert chosen(facts, on=node("n2")) is None


def test_no_volume_name_is_used_twice():
    taken = volume("pvc-uid-c", storage_class="made", phase="Released")
    facts = storage(waiting("made", DRIVER), claim("c", storage_class="made"), taken)

    assert bindings(facts) is None


@pytest.mark.parametrize(
    ("limit", "size", "fits"), [(5, 5, True), (4, 5, False), (None, 1, False), (0, None, True)]
)
def test_a_driver_that_publishes_its_capacity_must_have_enough_near_the_node(limit, size, fits):
    near = LabelSelector((Requirement(ZONE, "In", ("z1",)),))
    far = LabelSelector((Requirement(ZONE, "In", ("z2",)),))
    facts = storage(
        waiting("roomy", ROOMY),
        CsiDriverFacts(ROOMY, tracks_capacity=True),
        CapacityFacts("", "a", "roomy", near, None if limit is None else limit * GIB),
        CapacityFacts("", "b", "roomy", far, 99 * GIB),
        CapacityFacts("", "c", "roomy", None, 99 * GIB),
        CapacityFacts("", "d", "other", near, 99 * GIB),
        claim("c", size, storage_class="roomy"),
    )

    assert (bindings(facts) is not None) == fits


def test_bound_claims_need_no_binding():
    facts = storage(waiting("local"), bound("c", "a"), volume("a"))

    assert bindings(facts) == ()
    assert bindings(facts, pod()) == ()


def test_claims_are_grouped_by_their_state():
    facts = storage(
        waiting("local"), immediate("now"), volume("a"), bound("done", "a"), claim("later"),
        claim("at-once", storage_class="now"), claim("classless", storage_class=""),
        claim("prebound", volume_name="a"), claim("strange", storage_class="unknown"),
    )  # fmt: skip
    names = ("done", "later", "at-once", "classless", "prebound", "strange")

    found = claims_of(StorageState(facts), using(*names))

    assert [each.name for each in found.bound] == ["done"]
    assert [each.name for each in found.waiting] == ["later"]
    assert [each.name for each in found.immediate] == list(names[2:])


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (None, 'persistentvolumeclaim "c" not found'),
        (
            claim("c", volume_name="gone", is_lost=True),
            'persistentvolumeclaim "c" bound to non-existent persistentvolume "gone"',
        ),
        (claim("c", is_terminating=True), 'persistentvolumeclaim "c" is being deleted'),
    ],
)
def test_an_unusable_claim_is_reported_with_upstreams_message(found, text):
    facts = storage(waiting("local"), *([found] if found else []))

    with pytest.raises(ClaimError) as refusal:
        claims_of(StorageState(facts), using("c"))

    assert str(refusal.value) == text
    assert refusal.value.is_missing == (found is None)


def test_a_class_without_a_binding_mode_is_an_error():
    facts = storage(replace(waiting("local"), binding_mode=""), claim("c"))

    with pytest.raises(ClaimError, match='VolumeBindingMode not set for StorageClass "local"'):
        claims_of(StorageState(facts), using("c"))


def ephemeral(uid="uid-p"):
    source = (("claimName", "p-scratch"), ("podName", "p"), ("podUID", uid))
    return pod(volumes=(Volume("scratch", "ephemeral", source),))


def test_an_ephemeral_volume_waits_for_its_claim():
    text = 'waiting for ephemeral volume controller to create the persistentvolumeclaim "p-scratch"'

    with pytest.raises(ClaimError) as refusal:
        claims_of(StorageState(), ephemeral())

    assert str(refusal.value) == text


def test_the_claim_of_an_ephemeral_volume_must_belong_to_the_pod():
    facts = storage(waiting("local"), claim("p-scratch", owner_uid="uid-p"))

    assert len(claims_of(StorageState(facts), ephemeral()).waiting) == 1
    with pytest.raises(ClaimError) as refusal:
        claims_of(StorageState(facts), ephemeral(uid="another"))
    assert str(refusal.value) == (
        "PVC default/p-scratch was not created for pod default/p (pod is not owner)"
    )


@pytest.mark.parametrize("seed", range(10))
def test_bindings_agree_with_the_filter_on_every_node(seed):
    nodes, facts, pods = random_fleet(seed)
    table, state = NodeTable(), StorageState(facts)
    for each in nodes:
        table.add_node(each)

    for _, wanted in pods:
        claims = claims_of(state, wanted)
        wrong = VolumeMatching(state, table).reason_bits(claims)
        found = [bindings_on(state, wanted, each) is not None for each in nodes]
        assert found == (wrong & _OF_WAITING == 0).tolist()
        if any(found):
            for binding in bindings_on(state, wanted, nodes[found.index(True)]):
                state.apply(binding.change)
            state.validate()
