"""Volumes of a pod, by the parts that scheduling reads (core/v1 VolumeSource)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from roadstead.protocol.objects.base import Int32, ListOf, Manifest, Name

Text = Annotated[str, Field(max_length=4096)]


class ClaimSource(Manifest):
    """A persistent volume claim by name."""

    claim_name: Name
    read_only: bool = False


class EphemeralSource(Manifest):
    """A claim that is created for the pod, named after pod and volume."""

    volume_claim_template: dict[str, object] | None = None


class AwsDisk(Manifest):
    volume_id: Text = Field("", alias="volumeID")
    fs_type: Text = ""
    partition: Int32 = 0
    read_only: bool = False


class GceDisk(Manifest):
    pd_name: Text = ""
    fs_type: Text = ""
    partition: Int32 = 0
    read_only: bool = False


class AzureDisk(Manifest):
    disk_name: Text = ""
    disk_uri: Text = Field("", alias="diskURI")
    read_only: bool = False


class AzureFile(Manifest):
    secret_name: Text = ""
    share_name: Text = ""
    read_only: bool = False


class CinderDisk(Manifest):
    volume_id: Text = Field("", alias="volumeID")
    read_only: bool = False


class PortworxVolume(Manifest):
    volume_id: Text = Field("", alias="volumeID")
    read_only: bool = False


class VsphereDisk(Manifest):
    volume_path: Text = ""


class Iscsi(Manifest):
    target_portal: Text = ""
    iqn: Text = ""
    lun: Int32 = 0
    read_only: bool = False


class Rbd(Manifest):
    monitors: ListOf[str] = ()
    image: Text = ""
    pool: Text = ""
    read_only: bool = False


class CsiInlineVolume(Manifest):
    """A volume that a CSI driver creates with the pod."""

    driver: Text = ""


class EmptyDir(Manifest):
    """A directory on the node that ends with the pod; only evictions read that there is one."""


class Volume(Manifest):
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
