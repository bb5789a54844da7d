from dataclasses import replace

import pytest

from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.pod import PodIdentity
from roadstead.facts.storage import ClaimReference, CsiNodeFacts, CsiSource
from roadstead.framework.cycle_state import CycleState
from roadstead.framework.plugin import Handle
from roadstead.plugins.volume_binding import VolumeBinding
from roadstead.plugins.volume_matching import REASONS
from roadstead.protocol.status import SKIP, SUCCESS, Code
from tests.builders import is_affected, node, pod, table_of
from tests.storage.world import (
    DRIVER,
    HOST,
    ZONE,
    bound,
    claim,
    immediate,
    storage,
    using,
    volume,
    waiting,
    within,
)

UNREACHED, NO_VOLUME, NO_SPACE, NO_SUCH_VOLUME = REASONS
NODES = [node(name, labels={ZONE: f"z{name[1]}", HOST: name}) for name in ("n1", "n2")]


class World:
    """Two nodes in two zones, and the plugin."""

    def __init__(self, *objects):
        self.table = table_of(*NODES)
        self.plugin = VolumeBinding(
            Handle(self.table.classes, ClusterFacts(storage=storage(*objects)))
        )

    def pre_filter(self, facts):
        state = CycleState(2)
        return self.plugin.pre_filter(
            state, self.table.classes.pod_class(facts), self.table
        ).status, state

    def reasons(self, facts):
        """Return reasons per node; none if it passes."""
        status, state = self.pre_filter(facts)
        assert status == SUCCESS
        result = self.plugin.filter(state, self.table.classes.pod_class(facts), self.table)
        if result.codes is None:
            return [(), ()]
        return [result.statuses[c - 1].reasons if c else () for c in result.codes.tolist()]


def test_a_bound_volume_fits_on_nodes_that_reach_it():
    world = World(bound("c", "a"), volume("a", node_terms=within(HOST, "n1")))

    assert world.reasons(using("c")) == [(), (UNREACHED,)]


def test_the_first_invalid_bound_claim_sets_the_status():
    near = volume("a", node_terms=within(HOST, "n1"))
    world = World(bound("c", "a"), bound("d", "gone"), near)

    assert world.reasons(using("c", "d")) == [(NO_SUCH_VOLUME,), (UNREACHED,)]


def test_all_reasons_are_reported_together():
    far = volume("a", node_terms=within(HOST, "n3"))
    world = World(bound("c", "a"), far, waiting("local"), claim("d"))

    assert world.reasons(using("c", "d")) == [(UNREACHED, NO_VOLUME)] * 2


def test_a_claim_with_a_selected_node_fits_only_there():
    world = World(waiting("made", DRIVER), claim("c", storage_class="made", selected_node="n2"))

    assert world.reasons(using("c")) == [(NO_VOLUME,), ()]


def test_a_volume_that_names_the_claim_is_its_only_candidate():
    own = volume("own", claim=ClaimReference("default", "c"), node_terms=within(HOST, "n2"))
    world = World(waiting("local"), claim("c"), own, volume("free"))

    assert world.reasons(using("c")) == [(NO_VOLUME,), ()]


def test_volumes_are_provisioned_where_the_class_allows_it():
    zoned = waiting("zoned", DRIVER, (((ZONE, ("z2",)),),))

    assert World(zoned, claim("c", storage_class="zoned")).reasons(using("c")) == [(NO_VOLUME,), ()]


def test_an_in_tree_volume_has_its_csi_drivers_topology_on_migrated_nodes():
    moved = volume(
        "a", csi=None, in_tree="kubernetes.io/aws-ebs", node_terms=within(HOST, "n1"),
        migrated=CsiSource("ebs.csi.aws.com", "v"), migrated_terms=within(ZONE, "z2"),
    )  # fmt: skip
    objects = [bound("c", "a"), moved, CsiNodeFacts("n1")]

    assert World(*objects).reasons(using("c")) == [(), (UNREACHED,)]
    both = [CsiNodeFacts(name, migrated=("kubernetes.io/aws-ebs",)) for name in ("n1", "n2")]
    assert World(*objects[:2], *both).reasons(using("c")) == [(UNREACHED,), ()]


@pytest.mark.parametrize(
    ("objects", "code", "text"),
    [
        ([], Code.UNSCHEDULABLE_AND_UNRESOLVABLE, 'persistentvolumeclaim "c" not found'),
        (
            [claim("c"), immediate("local")],
            Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
            "pod has unbound immediate PersistentVolumeClaims",
        ),
        (
            [claim("c"), replace(waiting("local"), binding_mode="")],
            Code.ERROR,
            'VolumeBindingMode not set for StorageClass "local"',
        ),
    ],
)
def test_unusable_claims_reject_the_pod(objects, code, text):
    status, _ = World(*objects).pre_filter(using("c"))

    assert (status.code, status.reasons) == (code, (text,))


def test_a_pod_without_claims_is_skipped_without_scores():
    world, who = World(), PodIdentity("u", "default", "p")
    pod_class = world.table.classes.pod_class(pod())

    assert world.pre_filter(pod())[0] == SKIP
    assert world.plugin.pre_score(CycleState(2), pod_class, world.table, None) == SKIP
    assert world.plugin.score(CycleState(2), pod_class, world.table).tolist() == [0, 0]
    assert world.plugin.reserve(who, pod(), "n1") is SUCCESS
    assert world.plugin.pre_bind(who, pod(), "n1") is SUCCESS
    assert world.plugin.unreserve(who, pod(), "n1") is None
    assert world.plugin.state_version(pod_class) is None


def test_a_placement_affects_pods_that_could_use_its_volumes():
    world = World(
        waiting("local"), waiting("made", DRIVER), volume("v"), claim("a"), claim("b"),
        claim("m", storage_class="made"), claim("n", storage_class="made"), bound("d", "v"),
    )  # fmt: skip
    pod_class = world.table.classes.pod_class

    def matters(placed, wanted):
        return is_affected(world.plugin, pod_class(using(wanted)), pod_class(using(placed)))

    assert matters("a", "b")
    assert matters("m", "m")
    assert not matters("m", "n")
    assert not matters("m", "a")
    assert not matters("d", "d")
    assert not is_affected(world.plugin, pod_class(pod()), pod_class(using("a")))


def test_the_signature_is_the_set_of_claims():
    plugin = World().plugin

    assert plugin.sign(using("c")) != plugin.sign(using("d"))
    assert plugin.sign(pod()) == plugin.sign(pod(namespace="other"))
