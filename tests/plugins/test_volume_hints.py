"""Hints of the volume plugins."""

import pytest

from roadstead.facts.pod import Volume
from roadstead.facts.storage import (
    AttachmentFacts,
    CapacityFacts,
    ClaimFacts,
    CsiDriverFacts,
    CsiNodeFacts,
    NodeDriverFacts,
    StorageClassFacts,
    VolumeFacts,
)
from roadstead.framework.events import HintError
from roadstead.framework.plugin import Handle
from roadstead.nodes.pod_class import PodClasses
from roadstead.plugins.node_volume_limits import NodeVolumeLimits
from roadstead.plugins.volume_binding import VolumeBinding
from roadstead.plugins.volume_restrictions import VolumeRestrictions
from roadstead.plugins.volume_zone import VolumeZone
from tests.builders import pod
from tests.plugins.hints import asked, labels_of, on_node, waiting

QUEUE, SKIP = "Queue", "QueueSkip"
HANDLE = Handle(PodClasses())
BINDING, RESTRICTIONS = VolumeBinding(HANDLE), VolumeRestrictions(HANDLE)
ZONES, LIMITS = VolumeZone(HANDLE), NodeVolumeLimits(HANDLE)
EBS = "ebs.csi.aws.com"


def with_volume(kind, *, namespace="default", **source):
    return pod(namespace=namespace, volumes=(Volume("v", kind, tuple(sorted(source.items()))),))


def with_claim(name="data", namespace="default"):
    return with_volume("persistentVolumeClaim", namespace=namespace, claimName=name)


EPHEMERAL = with_volume("ephemeral", claimName="data", podName="p", podUID="u")
DATA = ClaimFacts("default", "data")


def test_plugins_register_upstreams_events():
    storage = "storage.k8s.io/"
    assert labels_of(RESTRICTIONS) == {"PodDelete?", "NodeAdd", "PersistentVolumeClaimAdd?"}
    assert labels_of(LIMITS) >= {
        f"{storage}CSINodeAdd",
        f"{storage}VolumeAttachmentDelete?",
        "PodDelete?",
        "PersistentVolumeClaimAdd?",
    }
    assert labels_of(ZONES) >= {f"{storage}StorageClassAdd?", "NodeAdd+UpdateNodeLabel"}
    assert labels_of(BINDING) >= {"NodeAdd+UpdateNodeLabel"}
    assert [len(each.events_to_register()) for each in (BINDING, ZONES, LIMITS)] == [7, 4, 5]


@pytest.mark.parametrize(
    ("hint", "ephemeral"),
    [
        (BINDING.after_claim_change, QUEUE),
        (LIMITS.after_claim_added, QUEUE),
        (ZONES.after_claim_change, SKIP),
        (RESTRICTIONS.after_claim_added, SKIP),
    ],
)
def test_a_claim_helps_pods_that_name_it(hint, ephemeral):
    assert asked(hint, with_claim(), new=DATA) == QUEUE
    assert asked(hint, with_claim("other"), new=DATA) == SKIP
    assert asked(hint, with_claim(namespace="elsewhere"), new=DATA) == SKIP
    assert asked(hint, pod(), new=DATA) == SKIP
    assert asked(hint, EPHEMERAL, new=DATA) == ephemeral


class TestVolumeBinding:
    ANYWHERE = StorageClassFacts("fast")
    ZONAL = StorageClassFacts("fast", allowed_topologies=((("zone", ("a",)),),))

    @pytest.mark.parametrize(
        ("old", "new", "expected"),
        [(None, ANYWHERE, QUEUE), (ZONAL, ANYWHERE, QUEUE), (ZONAL, ZONAL, SKIP)],
    )
    def test_a_new_class_or_one_with_changed_topology_helps(self, old, new, expected):
        assert asked(BINDING.after_class_change, pod(), old=old, new=new) == expected

    @pytest.mark.parametrize(
        ("old", "migrated", "expected"),
        [
            (None, (), QUEUE),
            (CsiNodeFacts("n"), ("kubernetes.io/aws-ebs",), QUEUE),
            (CsiNodeFacts("n"), (), SKIP),
        ],
    )
    def test_new_or_migrated_drivers_of_a_node_help(self, old, migrated, expected):
        new = CsiNodeFacts("n", (NodeDriverFacts("d"),), migrated)
        assert asked(BINDING.after_csi_node_change, pod(), old=old, new=new) == expected

    @pytest.mark.parametrize(
        ("driver", "before", "after", "expected"),
        [
            ("d", True, False, QUEUE),
            ("d", False, False, SKIP),
            ("d", True, True, SKIP),
            ("other", True, False, SKIP),
        ],
    )
    def test_a_driver_whose_capacity_no_longer_counts_helps_its_pods(
        self, driver, before, after, expected
    ):
        old, new = CsiDriverFacts("d", before), CsiDriverFacts("d", after)
        wants = with_volume("csi", driver=driver)
        assert asked(BINDING.after_csi_driver_change, wants, old=old, new=new) == expected

    @pytest.mark.parametrize(
        ("before", "after", "expected"),
        [(1, 2, QUEUE), (None, 1, QUEUE), (2, 1, SKIP), (1, 1, SKIP), (1, None, SKIP)],
    )
    def test_new_or_larger_storage_capacity_helps(self, before, after, expected):
        old, new = (CapacityFacts("", "c", "fast", None, each) for each in (before, after))
        assert asked(BINDING.after_capacity_change, pod(), old=old, new=new) == expected
        assert asked(BINDING.after_capacity_change, pod(), new=new) == QUEUE


class TestVolumeRestrictions:
    @pytest.mark.parametrize(
        ("wants", "gone", "expected"),
        [
            (with_claim(), with_claim(), QUEUE),
            (with_claim(), with_claim("other"), SKIP),
            (with_claim(namespace="a"), with_claim(namespace="b"), SKIP),
            (EPHEMERAL, EPHEMERAL, SKIP),
            (
                with_volume("gcePersistentDisk", pdName="d"),
                with_volume("gcePersistentDisk", pdName="d"),
                QUEUE,
            ),
            (
                with_volume("gcePersistentDisk", pdName="d", readOnly="true"),
                with_volume("gcePersistentDisk", pdName="d", readOnly="true"),
                SKIP,
            ),
            (
                with_volume("awsElasticBlockStore", volumeID="d", readOnly="true"),
                with_volume("awsElasticBlockStore", volumeID="d", readOnly="true"),
                QUEUE,
            ),
            (
                with_volume("gcePersistentDisk", pdName="d"),
                with_volume("gcePersistentDisk", pdName="e"),
                SKIP,
            ),
        ],
    )
    def test_a_deleted_pod_with_the_same_claim_or_disk_helps(self, wants, gone, expected):
        assert asked(RESTRICTIONS.after_pod_deleted, wants, old=on_node(gone)) == expected


class TestVolumeZone:
    @pytest.mark.parametrize(
        ("mode", "expected"), [("WaitForFirstConsumer", QUEUE), ("Immediate", SKIP), ("", SKIP)]
    )
    def test_a_new_class_helps_if_its_claims_may_wait(self, mode, expected):
        new = StorageClassFacts("fast", binding_mode=mode)
        assert asked(ZONES.after_class_added, pod(), new=new) == expected

    @pytest.mark.parametrize(
        ("before", "after", "expected"),
        [
            ({}, {}, SKIP),
            ({}, {"topology.kubernetes.io/zone": "a"}, QUEUE),
            ({"topology.kubernetes.io/zone": "a"}, {"topology.kubernetes.io/zone": "b"}, QUEUE),
            (
                {"topology.kubernetes.io/zone": "a__b"},
                {"topology.kubernetes.io/zone": "b__a"},
                SKIP,
            ),
            ({}, {"app": "web"}, SKIP),
        ],
    )
    def test_a_new_or_moved_volume_helps(self, before, after, expected):
        old, new = (VolumeFacts("v", labels=tuple(each.items())) for each in (before, after))
        assert asked(ZONES.after_volume_change, pod(), old=old, new=new) == expected
        assert asked(ZONES.after_volume_change, pod(), new=new) == QUEUE


class TestNodeVolumeLimits:
    @pytest.mark.parametrize(
        ("before", "after", "expected"),
        [((1,), 2, QUEUE), ((2,), 2, SKIP), ((2,), None, SKIP), ((), 1, QUEUE), ((), None, SKIP)],
    )
    def test_an_increased_limit_helps(self, before, after, expected):
        old = CsiNodeFacts("n", tuple(NodeDriverFacts("d", limit) for limit in before))
        new = CsiNodeFacts("n", (NodeDriverFacts("d", after),))
        assert asked(LIMITS.after_csi_node_updated, pod(), old=old, new=new) == expected

    @pytest.mark.parametrize(
        ("gone", "expected"),
        [
            (on_node(with_claim()), QUEUE),
            (on_node(EPHEMERAL), QUEUE),
            (on_node(with_volume("awsElasticBlockStore", volumeID="d")), QUEUE),
            (on_node(with_volume("iscsi", iqn="d")), SKIP),
            (on_node(pod()), SKIP),
            (waiting(with_claim()), SKIP),
        ],
    )
    def test_a_deleted_pod_with_counted_volumes_helps(self, gone, expected):
        assert asked(LIMITS.after_pod_deleted, pod(), old=gone) == expected

    @pytest.mark.parametrize(
        ("wants", "expected"),
        [
            (with_claim(), QUEUE),
            (with_volume("awsElasticBlockStore", volumeID="d"), QUEUE),
            (with_volume("gcePersistentDisk", pdName="d"), SKIP),
            (with_volume("csi", driver=EBS), SKIP),
            (pod(), SKIP),
        ],
    )
    def test_a_detached_volume_helps_claims_and_volumes_of_its_driver(self, wants, expected):
        old = AttachmentFacts("a", "n", EBS, "pv")
        assert asked(LIMITS.after_attachment_deleted, wants, old=old) == expected

    def test_an_untranslatable_volume_gives_an_error(self):
        wants = with_volume("awsElasticBlockStore", volumeID="aws://zone/x/y")
        old = AttachmentFacts("a", "n", EBS, "pv")
        with pytest.raises(HintError, match=r"converting volume\(v\) from inline to csi"):
            asked(LIMITS.after_attachment_deleted, wants, old=old)
