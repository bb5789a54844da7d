"""Storage objects (core/v1 and storage/v1), by the fields that the volume plugins read."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from roadstead.protocol.objects.base import (
    ApiModel,
    Count,
    ListOf,
    Name,
    OptionalName,
    ResourceQuantity,
    Resources,
    StringMap,
    empty_map,
)
from roadstead.protocol.objects.meta import ApiObject
from roadstead.protocol.objects.selectors import LabelSelector, NodeSelector
from roadstead.protocol.objects.volumes import (
    AwsDisk,
    AzureDisk,
    AzureFile,
    CinderDisk,
    GceDisk,
    Iscsi,
    PortworxVolume,
    Rbd,
    VsphereDisk,
)

AccessMode = Literal["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"]
VolumeMode = Literal["", "Filesystem", "Block"]


class ClaimReference(ApiModel):
    """The claim that a volume is bound to."""

    namespace: OptionalName = ""
    name: OptionalName = ""
    uid: str = ""


class CsiVolume(ApiModel):
    driver: str = ""
    volume_handle: str = ""


class VolumeNodeAffinity(ApiModel):
    required: NodeSelector | None = None


class PersistentVolumeSpec(ApiModel):
    """Spec of a persistent volume."""

    capacity: Resources = Field(default_factory=empty_map)
    access_modes: ListOf[AccessMode] = ()
    claim_ref: ClaimReference | None = None
    storage_class_name: OptionalName = ""
    volume_mode: VolumeMode = ""
    volume_attributes_class_name: OptionalName | None = None
    node_affinity: VolumeNodeAffinity | None = None
    csi: CsiVolume | None = None
    aws_elastic_block_store: AwsDisk | None = None
    gce_persistent_disk: GceDisk | None = None
    azure_disk: AzureDisk | None = None
    azure_file: AzureFile | None = None
    cinder: CinderDisk | None = None
    portworx_volume: PortworxVolume | None = None
    vsphere_volume: VsphereDisk | None = None
    iscsi: Iscsi | None = None
    rbd: Rbd | None = None


class VolumePhase(ApiModel):
    """Status of a volume or a claim."""

    phase: str = ""


class PersistentVolume(ApiObject):
    """A persistent volume."""

    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: VolumePhase = VolumePhase()


class ClaimResources(ApiModel):
    requests: Resources = Field(default_factory=empty_map)
    limits: Resources = Field(default_factory=empty_map)


class PersistentVolumeClaimSpec(ApiModel):
    """Spec of a claim. An absent class differs from an empty one."""

    access_modes: ListOf[AccessMode] = ()
    resources: ClaimResources = ClaimResources()
    storage_class_name: OptionalName | None = None
    volume_name: OptionalName = ""
    volume_mode: VolumeMode = ""
    volume_attributes_class_name: OptionalName | None = None
    selector: LabelSelector | None = None


class PersistentVolumeClaim(ApiObject):
    """A persistent volume claim."""

    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: VolumePhase = VolumePhase()


class TopologyRequirement(ApiModel):
    key: str = ""
    values: ListOf[str] = ()


class TopologySelectorTerm(ApiModel):
    match_label_expressions: ListOf[TopologyRequirement] = ()


class StorageClass(ApiObject):
    """A storage class."""

    provisioner: str = ""
    parameters: StringMap = Field(default_factory=empty_map)
    volume_binding_mode: Literal["", "Immediate", "WaitForFirstConsumer"] = ""
    allowed_topologies: ListOf[TopologySelectorTerm] = ()


class DriverLimit(ApiModel):
    """Number of volumes of a driver that a node may attach; without a count, any number."""

    count: Count | None = None


class NodeDriver(ApiModel):
    """A CSI driver on one node."""

    name: Name
    node_id: str = Field("", alias="nodeID")
    topology_keys: ListOf[str] = ()
    allocatable: DriverLimit | None = None


class CsiNodeSpec(ApiModel):
    drivers: ListOf[NodeDriver] = ()


class CSINode(ApiObject):
    """The CSI drivers of a node and how many volumes each may attach."""

    spec: CsiNodeSpec = CsiNodeSpec()


class CsiDriverSpec(ApiModel):
    storage_capacity: bool | None = None
    attach_required: bool | None = None


class CSIDriver(ApiObject):
    """A CSI driver."""

    spec: CsiDriverSpec = CsiDriverSpec()


class CSIStorageCapacity(ApiObject):
    """Free capacity of a storage class in a topology segment."""

    node_topology: LabelSelector | None = None
    storage_class_name: OptionalName = ""
    capacity: ResourceQuantity | None = None
    maximum_volume_size: ResourceQuantity | None = None


class AttachmentSource(ApiModel):
    persistent_volume_name: OptionalName | None = None
    inline_volume_spec: PersistentVolumeSpec | None = None


class VolumeAttachmentSpec(ApiModel):
    attacher: str = ""
    node_name: OptionalName = ""
    source: AttachmentSource = AttachmentSource()


class VolumeAttachmentStatus(ApiModel):
    attached: bool = False


class VolumeAttachment(ApiObject):
    """A volume attached to a node."""

    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
    status: VolumeAttachmentStatus = VolumeAttachmentStatus()
