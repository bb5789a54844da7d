import pytest

from roadstead.facts.compile_storage import compile_storage
from roadstead.facts.csi_migration import (
    BETA_REGION,
    BETA_ZONE,
    REGION,
    ZONE,
    MigrationError,
    counts_as_csi_volume,
    inline_handle,
    persistent_source,
    persistent_terms,
    translates_topology,
)
from roadstead.facts.selectors import LabelSelector, NodeSelectorTerm, Requirement
from roadstead.facts.storage import (
    AttachmentFacts,
    CapacityFacts,
    ClaimFacts,
    ClaimReference,
    CsiDriverFacts,
    CsiNodeFacts,
    CsiSource,
    NodeDriverFacts,
    StorageClassFacts,
)
from roadstead.inputs.manifest_storage import storage_facts
from roadstead.manifests import Manifests
from roadstead.manifests.creation import create
from roadstead.protocol.errors import InputError
from roadstead.protocol.objects import validate

EBS_ZONE = "topology.ebs.csi.aws.com/zone"


def manifest(kind, name="x", annotations=None, namespace="", **parts):
    metadata = {"name": name, "annotations": annotations or {}, "namespace": namespace}
    metadata |= parts.pop("metadata", {})
    return validate(kind, {"metadata": metadata, **parts}, source="")


def volume(spec, **parts):
    (found,) = compile_storage(volumes=[manifest("PersistentVolume", spec=spec, **parts)]).volumes
    return found


def claim(spec, **parts):
    (found,) = compile_storage(
        claims=[manifest("PersistentVolumeClaim", spec=spec, **parts)]
    ).claims
    return found


def terms(*requirements):
    return (NodeSelectorTerm(tuple(Requirement(k, "In", tuple(v)) for k, v in requirements)),)


def test_a_volume_has_the_fields_that_scheduling_reads():
    in_zone = {"key": ZONE, "operator": "In", "values": ["a"]}
    found = volume(
        {
            "capacity": {"storage": "5Gi"},
            "accessModes": ["ReadWriteOnce"],
            "claimRef": {"namespace": "ns", "name": "c", "uid": "u"},
            "storageClassName": "newer",
            "volumeMode": "Block",
            "volumeAttributesClassName": "gold",
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [in_zone]}]}},
            "csi": {"driver": "d", "volumeHandle": "h"},
        },
        annotations={"volume.beta.kubernetes.io/storage-class": "older"},
        status={"phase": "Bound"},
        metadata={"labels": {"k": "v"}, "deletionTimestamp": "2025-01-01T00:00:00Z"},
    )

    assert (found.storage_class, found.capacity_bytes) == ("older", 5 << 30)
    assert (found.volume_mode, found.attributes_class, found.phase) == ("Block", "gold", "Bound")
    assert found.claim == ClaimReference("ns", "c", "u")
    assert found.node_terms == terms((ZONE, ["a"]))
    assert (found.csi, found.in_tree) == (CsiSource("d", "h"), "")
    assert (found.labels, found.is_terminating) == ((("k", "v"),), True)


def test_a_claim_has_the_fields_that_scheduling_reads():
    found = claim(
        {
            "accessModes": ["ReadWriteOncePod"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "sc",
            "volumeName": "v",
            "selector": {"matchLabels": {"k": "v"}},
        },
        annotations={"pv.kubernetes.io/bind-completed": "yes"}
        | {"volume.kubernetes.io/selected-node": "n1"},
        namespace="ns",
        status={"phase": "Lost"},
        metadata={"ownerReferences": [{"kind": "Pod", "uid": "u", "controller": True}]},
    )

    assert found == ClaimFacts(
        "ns", "x", storage_class="sc", volume_name="v", has_bind_completed=True, is_lost=True,
        access_modes=("ReadWriteOncePod",), requested_bytes=1 << 30, selected_node="n1",
        selector=LabelSelector((Requirement("k", "In", ("v",)),)), owner_uid="u",
    )  # fmt: skip
    assert found.key == "ns/x"
    assert found.is_bound
    assert claim({}) == ClaimFacts("default", "x")


def test_the_other_objects_have_the_fields_that_scheduling_reads():
    term = {"matchLabelExpressions": [{"key": ZONE, "values": ["a", "b"]}]}
    driver = {"name": "d", "nodeID": "i", "topologyKeys": [ZONE], "allocatable": {"count": 3}}
    found = compile_storage(
        classes=[
            manifest(
                "StorageClass", provisioner="p", volumeBindingMode="Immediate",
                allowedTopologies=[term],
            )
        ],
        csi_nodes=[
            manifest(
                "CSINode", spec={"drivers": [driver, {"name": "e", "nodeID": "i"}]},
                annotations={"storage.alpha.kubernetes.io/migrated-plugins": "q,p"},
            )
        ],
        csi_drivers=[manifest("CSIDriver", spec={"storageCapacity": True})],
        capacities=[
            manifest("CSIStorageCapacity", storageClassName="s", capacity="5", nodeTopology={}),
            manifest(
                "CSIStorageCapacity", storageClassName="s", capacity="5", maximumVolumeSize="3"
            ),
        ],
        attachments=[
            manifest(
                "VolumeAttachment",
                spec={"attacher": "d", "nodeName": "n", "source": {"persistentVolumeName": "v"}},
            )
        ],
    )  # fmt: skip

    assert found.classes == (StorageClassFacts("x", "p", "Immediate", (((ZONE, ("a", "b")),),)),)
    drivers = (NodeDriverFacts("d", 3, (ZONE,)), NodeDriverFacts("e"))
    assert found.csi_nodes == (CsiNodeFacts("x", drivers, ("p", "q")),)
    assert found.csi_drivers == (CsiDriverFacts("x", tracks_capacity=True),)
    assert found.capacities == (
        CapacityFacts("", "x", "s", LabelSelector(), 5),
        CapacityFacts("", "x", "s", None, 3),
    )
    assert found.attachments == (AttachmentFacts("x", "n", "d", "v"),)


def test_an_invalid_selector_is_reported_with_object_and_field():
    bad = {"matchExpressions": [{"key": "k", "operator": "In"}]}

    with pytest.raises(InputError, match=r'PersistentVolumeClaim "x": spec.selector'):
        claim({"selector": bad})


@pytest.mark.parametrize(
    ("kind", "source", "handle"),
    [
        ("awsElasticBlockStore", {"volumeID": "vol-1"}, "vol-1"),
        ("awsElasticBlockStore", {"volumeID": "aws://zone-a/vol-1"}, "vol-1"),
        ("awsElasticBlockStore", {"volumeID": "aws:///vol-1"}, "vol-1"),
        ("gcePersistentDisk", {"pdName": "d"}, "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d"),
        ("azureDisk", {"diskURI": "/u"}, "/u"),
        ("azureFile", {"secretName": "azure-storage-account-a-secret", "shareName": "s"}, "#a#s#"),
        ("azureFile", {"secretName": "plain", "shareName": "s"}, "#plain#s#"),
        ("cinder", {"volumeID": "v"}, "v"),
        ("portworxVolume", {"volumeID": "v"}, "v"),
        ("vsphereVolume", {"volumePath": "[ds] p"}, "[ds] p"),
    ],
)
def test_in_tree_volumes_have_the_handles_of_their_csi_drivers(kind, source, handle):
    assert inline_handle(kind, source) == handle


@pytest.mark.parametrize(
    ("labels", "place"),
    [
        ({}, "zones/UNSPECIFIED"),
        ({ZONE: "us-east1-a"}, "zones/us-east1-a"),
        ({ZONE: "x", BETA_ZONE: "us-east1-b"}, "zones/us-east1-b"),
        ({ZONE: "us-east1-a__us-east1-b"}, "regions/us-east1"),
    ],
)
def test_a_gce_disk_is_in_the_zone_of_its_labels(labels, place):
    found = persistent_source("gcePersistentDisk", {"pdName": "d"}, labels, "")

    assert found.handle == f"projects/UNSPECIFIED/{place}/disks/d"


@pytest.mark.parametrize(
    ("kind", "source", "labels", "text"),
    [
        ("awsElasticBlockStore", {"volumeID": "aws://a/b/c"}, {}, "Invalid format for AWS volume"),
        ("gcePersistentDisk", {}, {ZONE: "a__b"}, "zone in unexpected format"),
        ("gcePersistentDisk", {}, {ZONE: "a-b-c__d-e-f"}, r"got: map\[a-b:{} d-e:{}\]"),
    ],
)
def test_an_untranslatable_volume_is_reported_with_upstreams_message(kind, source, labels, text):
    with pytest.raises(MigrationError, match=text):
        persistent_source(kind, source, labels, "")


def test_a_migrated_volume_is_found_by_both_identities():
    spec = {"awsElasticBlockStore": {"volumeID": "vol-1"}}
    found = volume(spec, metadata={"labels": {ZONE: "a__b"}})

    assert (found.csi, found.in_tree) == (None, "kubernetes.io/aws-ebs")
    assert found.migrated == CsiSource("ebs.csi.aws.com", "vol-1")
    assert found.migrated_terms == terms((EBS_ZONE, ["a", "b"]))
    assert found.node_terms is None
    broken = volume({"awsElasticBlockStore": {"volumeID": "aws://nonsense"}})
    assert broken.migrated is None
    assert "Invalid format" in broken.migration_error


@pytest.mark.parametrize(
    ("before", "labels", "after"),
    [
        (None, {}, None),
        (terms((ZONE, ["a"])), {}, terms((EBS_ZONE, ["a"]))),
        (terms((BETA_ZONE, ["a"])), {ZONE: "b"}, terms((EBS_ZONE, ["a"]))),
        (terms(("k", ["v"])), {BETA_ZONE: "a"}, terms(("k", ["v"]), (EBS_ZONE, ["a"]))),
        (terms(("k", ["v"])), {ZONE: "__"}, terms(("k", ["v"]))),
        (
            terms((BETA_ZONE, ["a"]), (BETA_REGION, ["r"])),
            {},
            terms((EBS_ZONE, ["a"]), (REGION, ["r"])),
        ),
    ],
)
def test_zones_of_a_migrated_volume_have_the_drivers_key(before, labels, after):
    assert persistent_terms("kubernetes.io/aws-ebs", before, labels) == after


def test_drivers_without_zones_keep_a_volumes_terms():
    assert persistent_terms("kubernetes.io/azure-disk", terms((ZONE, ["a"])), {}) == terms(
        (ZONE, ["a"])
    )


def test_the_migrated_plugins_are_known():
    portworx, vsphere = "kubernetes.io/portworx-volume", "kubernetes.io/vsphere-volume"
    every = ("kubernetes.io/aws-ebs", portworx, vsphere)

    assert counts_as_csi_volume("kubernetes.io/aws-ebs", ())
    assert [counts_as_csi_volume(portworx, each) for each in ((), every)] == [False, True]
    assert not counts_as_csi_volume(vsphere, every)
    assert [translates_topology("kubernetes.io/aws-ebs", each) for each in ((), every)] == [
        False,
        True,
    ]
    assert not translates_topology(vsphere, every)


def test_manifests_get_the_defaults_of_the_api_server_and_its_controllers():
    template = {"metadata": {"labels": {"k": "v"}}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    scratch = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}
    default = {"storageclass.kubernetes.io/is-default-class": "true"}
    manifests = Manifests(
        persistent_volumes=(
            manifest("PersistentVolume", "free", spec={}),
            manifest("PersistentVolume", "taken", spec={"claimRef": {"name": "c"}}),
        ),
        persistent_volume_claims=(
            manifest("PersistentVolumeClaim", "classless", spec={"storageClassName": ""}),
            manifest("PersistentVolumeClaim", "unnamed", spec={}),
            manifest("PersistentVolumeClaim", "prebound", spec={"volumeName": "taken"}),
        ),
        storage_classes=(
            manifest("StorageClass", "b", default, provisioner="p"),
            manifest("StorageClass", "a", default, provisioner="p"),
            manifest("StorageClass", "c", volumeBindingMode="WaitForFirstConsumer"),
        ),
    )
    pod = manifest("Pod", "p", spec={"containers": [], "volumes": [scratch]})

    found = storage_facts(manifests, create(manifests, [pod], []).claims)

    assert [each.phase for each in found.volumes] == ["Available", ""]
    assert [each.binding_mode for each in found.classes] == ["Immediate"] * 2 + [
        "WaitForFirstConsumer"
    ]
    assert {each.name: each.storage_class for each in found.claims} == {
        "classless": "", "unnamed": "a", "prebound": "", "p-scratch": "a",
    }  # fmt: skip
    assert {each.name: each.owner_uid for each in found.claims}["p-scratch"] == "default/p"
