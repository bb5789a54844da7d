import random

import pytest

from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.pod import Volume
from roadstead.facts.storage import (
    AttachmentFacts,
    CsiNodeFacts,
    CsiSource,
    NodeDriverFacts,
    StorageFacts,
)
from roadstead.framework.cycle_state import CycleState
from roadstead.framework.plugin import Handle
from roadstead.plugins import node_volume_limits
from roadstead.plugins.attached_volumes import AttachedVolumes
from roadstead.plugins.node_volume_limits import MIN_CACHED_ROWS, NodeVolumeLimits
from roadstead.plugins.volume_users import VolumeUsers
from roadstead.protocol.status import SKIP, Code
from roadstead.storage import StorageChange
from tests.builders import is_affected, node, pod, table_of
from tests.inside import objects_in
from tests.storage.world import (
    DRIVER,
    bound,
    claim,
    disk,
    random_fleet,
    storage,
    using,
    volume,
    waiting,
)

TOO_MANY = "node(s) exceed max volume count"
EBS, GCE = "ebs.csi.aws.com", "pd.csi.storage.gke.io"
PORTWORX = "kubernetes.io/portworx-volume"


def csi_node(name, limit, driver=DRIVER, migrated=()):
    return CsiNodeFacts(name, (NodeDriverFacts(driver, limit),), migrated)


class World:
    """Nodes n1, n2 … and the plugin over their volumes."""

    def __init__(self, *objects, nodes=("n1", "n2"), attachments=()):
        self.table = table_of(*map(node, nodes))
        facts = storage(*objects)
        facts = StorageFacts(
            facts.volumes, facts.claims, facts.classes, facts.csi_nodes, attachments=attachments
        )
        self.handle = Handle(self.table.classes, ClusterFacts(storage=facts))
        self.plugin = NodeVolumeLimits(self.handle)

    def run(self, facts, on="n1"):
        self.table.add_pod(on, self.table.classes.pod_class(facts))

    def stop(self, facts, on="n1"):
        self.table.remove_pod(on, self.table.classes.pod_class(facts))

    def answers(self, facts, table=None):
        """Return the reason per node, None if it passes."""
        pod_class = self.table.classes.pod_class(facts)
        table = table or self.table
        result = self.plugin.filter(CycleState(len(table)), pod_class, table)
        if result.codes is None:
            return [None] * len(table)
        return [result.statuses[c - 1].reasons[0] if c else None for c in result.codes.tolist()]


def volumes(count, first=0):
    """Return bound claims c0, c1 … of volumes v0, v1 …"""
    numbers = range(first, first + count)
    return [volume(f"v{n}") for n in numbers] + [bound(f"c{n}", f"v{n}") for n in numbers]


def test_a_node_fits_as_many_volumes_as_its_csi_node_allows():
    world = World(*volumes(3), csi_node("n1", 1), csi_node("n2", None))

    assert world.answers(using("c0")) == [None, None]
    assert world.answers(using("c0", "c1")) == [TOO_MANY, None]
    world.run(using("c2"))
    assert world.answers(using("c0")) == [TOO_MANY, None]
    world.stop(using("c2"))
    assert world.answers(using("c0")) == [None, None]


def test_a_shared_volume_counts_once():
    world = World(*volumes(2), csi_node("n1", 1))
    world.run(using("c0"))
    world.run(using("c0", cpu=1))

    assert world.answers(using("c0", cpu=2)) == [None, None]
    assert world.answers(using("c0", "c1")) == [TOO_MANY, None]


def test_a_node_without_a_csi_node_or_another_driver_has_no_limit():
    world = World(*volumes(2), csi_node("n1", 0, "another.csi"))

    assert world.answers(using("c0", "c1")) == [None, None]


def test_an_unbound_claim_counts_for_the_driver_of_its_class():
    world = World(
        waiting("made", DRIVER),
        claim("a", storage_class="made"),
        claim("b", storage_class="made"),
        claim("classless", storage_class=""),
        claim("lost", storage_class="made", volume_name="gone"),
        csi_node("n1", 1),
    )

    assert world.answers(using("a")) == [None, None]
    assert world.answers(using("a", "classless")) == [None, None]
    assert world.answers(using("a", "b")) == [TOO_MANY, None]
    assert world.answers(using("a", "lost")) == [TOO_MANY, None]


def test_attached_volumes_count_beside_those_of_the_pods():
    attachments = tuple(
        AttachmentFacts(f"va-{name}", "n1", DRIVER, name) for name in ("v0", "v1", "unknown")
    )
    world = World(*volumes(3), csi_node("n1", 2), csi_node("n2", 2), attachments=attachments)

    assert world.answers(using("c2")) == [TOO_MANY, None]
    world.run(using("c0"))
    assert world.answers(using("c0", cpu=1)) == [None, None]
    assert world.answers(using("c2")) == [TOO_MANY, None]


@pytest.mark.parametrize(
    ("kind", "source", "driver"),
    [
        ("awsElasticBlockStore", {"volumeID": "vol-1"}, EBS),
        ("gcePersistentDisk", {"pdName": "d"}, GCE),
        ("azureDisk", {"diskURI": "/d"}, "disk.csi.azure.com"),
        ("cinder", {"volumeID": "v"}, "cinder.csi.openstack.org"),
    ],
)
def test_in_tree_volumes_count_for_the_csi_driver_that_replaced_the_plugin(kind, source, driver):
    world = World(csi_node("n1", 0, driver))

    assert world.answers(pod(volumes=(disk(kind, **source),))) == [TOO_MANY, None]


def test_portworx_counts_on_migrated_nodes():
    world = World(
        csi_node("n1", 0, "pxd.portworx.com", (PORTWORX,)), csi_node("n2", 0, "pxd.portworx.com")
    )

    assert world.answers(pod(volumes=(disk("portworxVolume", volumeID="v"),))) == [TOO_MANY, None]


def test_azure_files_and_vsphere_volumes_never_count():
    world = World(
        csi_node("n1", 0, "file.csi.azure.com"), csi_node("n2", 0, "csi.vsphere.vmware.com")
    )
    mounted = (disk("azureFile", shareName="s"), disk("vsphereVolume", volumePath="p"))

    assert world.answers(pod(volumes=mounted)) == [None, None]


def test_migrated_persistent_volumes_and_classes_count_for_their_driver():
    moved = volume("v", csi=None, in_tree="kubernetes.io/aws-ebs", migrated=CsiSource(EBS, "vol-1"))
    world = World(
        moved, bound("c", "v"), bound("d", "w"), volume("w", csi=None),
        waiting("made", "kubernetes.io/aws-ebs"), claim("e", storage_class="made"),
        csi_node("n1", 0, EBS),
        attachments=(AttachmentFacts("va", "n1", EBS, "v"),),
    )  # fmt: skip

    assert world.answers(using("c")) == [TOO_MANY, None]
    assert world.answers(using("d")) == [None, None]
    assert world.answers(using("e")) == [TOO_MANY, None]


def test_an_unreadable_disk_name_is_an_error_of_its_pod_and_does_not_count_for_others():
    broken = pod(volumes=(disk("awsElasticBlockStore", volumeID="aws://a/nonsense"),))
    world = World(*volumes(1), csi_node("n1", 1), csi_node("n2", 1))
    world.run(broken)

    found = world.plugin.filter(CycleState(2), world.table.classes.pod_class(broken), world.table)

    assert {each.code for each in found.statuses[1:]} == {Code.ERROR}
    assert "Invalid format for AWS volume (aws://a/nonsense)" in found.statuses[1].reasons[0]
    assert world.answers(using("c0")) == [None, None]


def test_a_missing_claim_is_reported_for_every_node_and_does_not_count_for_others():
    world = World(*volumes(1), csi_node("n1", 1))
    world.run(using("absent"))

    text = 'looking up PVC default/absent: persistentvolumeclaim "absent" not found'
    assert world.answers(using("absent", cpu=1)) == [text, text]
    assert world.answers(using("c0")) == [None, None]


def test_a_pod_without_countable_volumes_is_skipped():
    world = World()
    pod_class = world.table.classes.pod_class
    plain = pod(volumes=(disk("rbd", image="i"), Volume("c", "csi", ())))

    assert world.plugin.pre_filter(CycleState(2), pod_class(plain), world.table).status == SKIP
    assert world.plugin.pre_filter(
        CycleState(2), pod_class(using("c")), world.table
    ).status.is_success


def test_views_and_overlays_have_the_answers_of_the_table():
    world = World(*volumes(2), csi_node("n2", 0), nodes=("n1", "n2", "n3"))
    rows = world.table.rows_of(["n3", "n2"])

    assert world.answers(using("c0"), world.table.view(rows)) == [None, TOO_MANY]
    assert world.answers(using("c0"), world.table.copy_rows(rows)) == [None, TOO_MANY]


def test_copies_of_rows_do_not_replace_the_counts_of_the_table(monkeypatch):
    names = [f"n{number}" for number in range(MIN_CACHED_ROWS + 1)]
    world, counted = World(*volumes(1), csi_node("n2", 0), nodes=names), []

    def of_columns(storage, users, columns):
        counted.append(columns)
        return AttachedVolumes(storage, users, columns)

    monkeypatch.setattr(node_volume_limits, "AttachedVolumes", of_columns)
    copies = [world.table.copy_rows(world.table.rows_of(names[1:])) for _ in range(3)]

    for table in (world.table, *copies, copies[-1], world.table):
        assert set(world.answers(using("c0"), table)) == {None, TOO_MANY}

    assert counted == [each.columns for each in (world.table, *copies)]


def test_only_newly_counted_claims_affect_other_pods():
    world = World(
        waiting("made", DRIVER), waiting("local"), waiting("old", "kubernetes.io/aws-ebs"),
        volume("v"), claim("a", storage_class="made"), claim("b"), *volumes(1),
        claim("e", storage_class="old"),
    )  # fmt: skip
    pod_class = world.table.classes.pod_class

    def matters(placed, wanted="c0"):
        return is_affected(world.plugin, pod_class(using(wanted)), pod_class(using(placed)))

    assert [matters(name) for name in ("a", "b", "e", "c0", "unknown")] == [
        False, True, True, False, False,
    ]  # fmt: skip
    assert matters("a", wanted="a")
    assert not is_affected(world.plugin, pod_class(pod()), pod_class(using("b")))


def test_the_signature_is_the_set_of_volumes_to_attach():
    plugin = World().plugin

    assert plugin.sign(using("c")) != plugin.sign(using("d"))
    assert plugin.sign(using("c")) != plugin.sign(using("c", namespace="other"))
    assert plugin.sign(pod()) == plugin.sign(pod(namespace="other"))


@pytest.mark.parametrize("seed", range(4))
def test_updated_counts_equal_new_counts(seed):
    draw = random.Random(seed)
    nodes, facts, pods = random_fleet(seed, node_count=MIN_CACHED_ROWS + 3)
    table = table_of(*nodes)
    handle = Handle(table.classes, ClusterFacts(storage=facts))
    kept = AttachedVolumes(handle.storage, VolumeUsers(table.classes), table.columns)
    running = []
    for step in range(40):
        _change(draw, step, table, handle, pods, running)
        kept.catch_up()

        anew = AttachedVolumes(handle.storage, VolumeUsers(table.classes), table.columns)
        anew.catch_up()
        assert kept.count(DRIVER).tolist() == anew.count(DRIVER).tolist()
        for source in {*objects_in(anew, CsiSource), *objects_in(kept, CsiSource)}:
            assert set(kept.rows_of(source)) == set(anew.rows_of(source))


def _change(draw, step, table, handle, pods, running):
    """Add or remove a pod, bind a claim, or remove a node."""
    kind = draw.choice(["come", "come", "go", "bind", "leave" if step % 10 == 9 else "come"])
    names = list(table.node_names())
    if kind == "come":
        running.append((draw.choice(names), table.classes.pod_class(draw.choice(pods)[1])))
        table.add_pod(*running[-1])
    elif kind == "go" and running:
        table.remove_pod(*running.pop(draw.randrange(len(running))))
    elif kind == "bind":
        found = draw.choice(sorted(handle.storage.claims.values(), key=lambda each: each.key))
        own = volume(f"of-{found.name}")
        change = bound(found.name, own.name, storage_class=found.storage_class)
        handle.storage.apply(StorageChange((change,), (own,)))
    elif kind == "leave":
        name = draw.choice(names)
        table.remove_node(name)
        running[:] = [each for each in running if each[0] != name]
