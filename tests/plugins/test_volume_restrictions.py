from functools import partial

import pytest

from roadstead.facts.cluster import ClusterFacts
from roadstead.framework.cycle_state import CycleState
from roadstead.framework.plugin import Handle
from roadstead.plugins.volume_restrictions import ClaimUses, VolumeRestrictions
from roadstead.protocol.status import SKIP, Code
from tests.builders import is_affected, node, pod, table_of
from tests.storage.world import claim, disk, storage, using

EXCLUSIVE = {"access_modes": ("ReadWriteOncePod",)}
IN_USE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
    "already in-use by another pod"
)


class World:
    """Two nodes, pods on the first of them, and the plugin."""

    def __init__(self, *running, facts=()):
        self.table = table_of(node("n1"), node("n2"))
        self.plugin = VolumeRestrictions(
            Handle(self.table.classes, ClusterFacts(storage=storage(*facts)))
        )
        for each in running:
            self.table.add_pod("n1", self.table.classes.pod_class(each))

    def pre_filter(self, facts):
        pod_class = self.table.classes.pod_class(facts)
        state = CycleState(2)
        return self.plugin.pre_filter(state, pod_class, self.table).status, state

    def refusals(self, facts):
        status, state = self.pre_filter(facts)
        assert status.is_success
        result = self.plugin.filter(state, self.table.classes.pod_class(facts), self.table)
        if result.codes is None:
            return [None, None]
        return [result.statuses[c - 1].reasons[0] if c else None for c in result.codes.tolist()]


def mounting(*volumes):
    return pod(volumes=volumes)


GCE = disk("gcePersistentDisk", pdName="d")
GCE_READ = disk("gcePersistentDisk", pdName="d", readOnly="true")
EBS = disk("awsElasticBlockStore", volumeID="v")
EBS_READ = disk("awsElasticBlockStore", volumeID="v", readOnly="true")
ISCSI = disk("iscsi", iqn="q", targetPortal="a")
ISCSI_ELSEWHERE = disk("iscsi", iqn="q", targetPortal="b", lun=2)
ISCSI_READ = disk("iscsi", iqn="q", readOnly="true")
RBD = disk("rbd", monitors=("m1", "m2"), pool="p", image="i")
RBD_READ = disk("rbd", monitors=("m2", "m3"), pool="p", image="i", readOnly="true")


@pytest.mark.parametrize(
    ("wanted", "mounted", "conflict"),
    [
        (GCE, GCE, True),
        (GCE, GCE_READ, True),
        (GCE_READ, GCE_READ, False),
        (GCE, disk("gcePersistentDisk", pdName="e"), False),
        (EBS, EBS, True),
        (EBS_READ, EBS_READ, True),
        (EBS, disk("awsElasticBlockStore", volumeID="w"), False),
        (ISCSI, ISCSI_ELSEWHERE, True),
        (ISCSI_READ, ISCSI, True),
        (ISCSI_READ, ISCSI_READ, False),
        (ISCSI, disk("iscsi", iqn="r"), False),
        (RBD, RBD_READ, True),
        (RBD_READ, RBD_READ, False),
        (RBD, disk("rbd", monitors=("m4",), pool="p", image="i"), False),
        (RBD, disk("rbd", monitors=("m1",), pool="q", image="i"), False),
        (RBD, disk("rbd", monitors=("m1",), pool="p", image="j"), False),
        (GCE, EBS, False),
    ],
)
def test_some_disks_can_not_be_shared_by_two_pods(wanted, mounted, conflict):
    world = World(mounting(mounted))

    assert world.refusals(mounting(wanted)) == [
        "node(s) had no available disk" if conflict else None,
        None,
    ]


def test_an_exclusive_claim_in_use_refuses_every_node_and_disks_are_checked_first():
    world = World(using("c"), mounting(GCE), facts=[claim("c", **EXCLUSIVE)])

    assert world.refusals(using("c")) == [IN_USE, IN_USE]
    assert world.refusals(using("c", volumes=(GCE,))) == ["node(s) had no available disk", IN_USE]


def test_a_pod_without_conflicts_is_skipped():
    facts = [claim("c", **EXCLUSIVE), claim("shared")]
    world = World(using("shared"), using("c", namespace="other"), facts=facts)

    assert world.pre_filter(using("c"))[0] == SKIP
    assert world.pre_filter(using("shared"))[0] == SKIP
    assert world.pre_filter(pod())[0] == SKIP
    assert world.pre_filter(mounting(GCE))[0].is_success


def test_a_missing_claim_rejects_the_pod():
    status, _ = World().pre_filter(using("c"))

    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.reasons == ('persistentvolumeclaim "c" not found',)


def test_a_removed_pod_frees_its_claim_and_an_added_one_uses_it():
    world = World(using("c"), facts=[claim("c", **EXCLUSIVE), claim("d")])
    pod_class, running = (world.table.classes.pod_class(using("c", cpu=cpu)) for cpu in (100, None))
    unrelated = world.table.classes.pod_class(using("d"))
    _, state = world.pre_filter(using("c", cpu=100))
    before = state.read(world.plugin.name, ClaimUses)

    def moved(before, moves):
        return world.plugin.with_pods_moved(before, pod_class, world.table, moves)

    gone = moved(before, {running: -1})
    assert gone.conflicts == 0
    freed = world.plugin.filter(state.with_value(world.plugin.name, gone), pod_class, world.table)
    assert freed.codes is None
    assert moved(ClaimUses(()), {running: 1}).conflicts == 1
    assert moved(before, {unrelated: -1}) is before


def test_a_placement_affects_pods_with_the_same_exclusive_claim():
    world = World(facts=[claim("c", **EXCLUSIVE), claim("d")])
    pod_class = world.table.classes.pod_class
    affected = partial(is_affected, world.plugin)

    assert affected(pod_class(using("c")), pod_class(using("c", "d")))
    assert not affected(pod_class(using("d")), pod_class(using("d")))
    assert not affected(pod_class(using("c")), pod_class(using("c", namespace="other")))
    assert not affected(pod_class(pod()), pod_class(using("c")))


def test_the_signature_is_the_set_of_claims_and_disks():
    plugin = World().plugin

    assert plugin.sign(using("c")) != plugin.sign(using("d"))
    assert plugin.sign(using("c")) != plugin.sign(using("c", namespace="other"))
    assert plugin.sign(mounting(GCE)) != plugin.sign(mounting(GCE_READ))
    assert plugin.sign(pod()) == plugin.sign(pod(namespace="other"))
