"""Volumes of a pod, by the parts that scheduling reads (core/v1 VolumeSource)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from roadstead.protocol.objects.base import ApiModel, Int32, ListOf, Name

Text = Annotated[str, Field(max_length=4096)]


class ClaimSource(ApiModel):
    """A persistent volume claim by name."""

    claim_name: Name
    read_only: bool = False


class EphemeralSource(ApiModel):
    """A claim that is created for the pod, named after pod and volume."""

    volume_claim_template: dict[str, object] | None = None


class AwsDisk(ApiModel):
    volume_id: Text = Field("", alias="volumeID")
    fs_type: Text = ""
    partition: Int32 = 0
    read_only: bool = False


class GceDisk(ApiModel):
    pd_name: Text = ""
    fs_type: Text = ""
    partition: Int32 = 0
    read_only: bool = False


class AzureDisk(ApiModel):
    disk_name: Text = ""
    disk_uri: Text = Field("", alias="diskURI")
    read_only: bool = False


class AzureFile(ApiModel):
    secret_name: Text = ""
    share_name: Text = ""
    read_only: bool = False


class CinderDisk(ApiModel):
    volume_id: Text = Field("", alias="volumeID")
    read_only: bool = False


class PortworxVolume(ApiModel):
    volume_id: Text = Field("", alias="volumeID")
    read_only: bool = False


class VsphereDisk(ApiModel):
    volume_path: Text = ""


class Iscsi(ApiModel):
    target_portal: Text = ""
    iqn: Text = ""
    lun: Int32 = 0
    read_only: bool = False


class Rbd(ApiModel):
    monitors: ListOf[str] = ()
    image: Text = ""
    pool: Text = ""
    read_only: bool = False


class CsiInlineVolume(ApiModel):
    """A volume that a CSI driver creates with the pod."""

    driver: Text = ""


class EmptyDir(ApiModel):
    """A directory on the node, deleted with the pod; only evictions check whether a pod has one."""


class Volume(ApiModel):
    """A volume. Types that nothing reads (configMap, secret …) are dropped."""

    name: Text = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: EphemeralSource | None = None
    aws_elastic_block_store: AwsDisk | None = None
    gce_persistent_disk: GceDisk | None = None
    azure_disk: AzureDisk | None = None
    azure_file: AzureFile | None = None
    cinder: CinderDisk | None = None
    portworx_volume: PortworxVolume | None = None
    vsphere_volume: VsphereDisk | None = None
    iscsi: Iscsi | None = None
    rbd: Rbd | None = None
    csi: CsiInlineVolume | None = None
    empty_dir: EmptyDir | None = None
