"""Translation of in-tree volumes to the CSI drivers that replaced their plugins.

A plugin is here an in-tree volume plugin. On some nodes it is migrated, that is, replaced by the
driver; a node's CSINode lists the migrated plugins.

Upstream: csi-translation-lib/{translate.go, plugins/*.go} (1.34). Only what scheduling reads is
translated: driver, handle and topology.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from roadstead.facts.selectors import NodeSelectorTerm, Requirement
from roadstead.facts.storage import CsiSource, NodeTerms

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION = "failure-domain.beta.kubernetes.io/region"
MULTI_ZONE_DELIMITER = "__"
"""Separator of several zones in one label."""

CSI_DRIVER_OF: Mapping[str, str] = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/azure-file": "file.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/portworx-volume": "pxd.portworx.com",
    "kubernetes.io/vsphere-volume": "csi.vsphere.vmware.com",
}
"""In-tree plugin → the CSI driver that replaced it."""

IN_TREE_PLUGIN_OF: Mapping[str, str] = {
    "awsElasticBlockStore": "kubernetes.io/aws-ebs",
    "gcePersistentDisk": "kubernetes.io/gce-pd",
    "azureDisk": "kubernetes.io/azure-disk",
    "azureFile": "kubernetes.io/azure-file",
    "cinder": "kubernetes.io/cinder",
    "portworxVolume": "kubernetes.io/portworx-volume",
    "vsphereVolume": "kubernetes.io/vsphere-volume",
}
"""Volume source (the manifest's field name) → in-tree plugin."""

# Plugins whose migration cannot be turned off.
_ALWAYS_MIGRATED = frozenset(
    {"kubernetes.io/aws-ebs", "kubernetes.io/gce-pd", "kubernetes.io/azure-disk"}
    | {"kubernetes.io/cinder"}
)
_PORTWORX = "kubernetes.io/portworx-volume"
# In-tree plugin → topology key of its CSI driver.
_TOPOLOGY_KEYS = {
    "kubernetes.io/aws-ebs": "topology.ebs.csi.aws.com/zone",
    "kubernetes.io/gce-pd": "topology.gke.io/zone",
    "kubernetes.io/cinder": "topology.cinder.csi.openstack.org/zone",
}
# Volume source → its field that is the CSI handle.
_HANDLE_FIELD = {
    "azureDisk": "diskURI",
    "cinder": "volumeID",
    "portworxVolume": "volumeID",
    "vsphereVolume": "volumePath",
}
_EBS_ID = re.compile(r"vol-[^/]*")
_AZURE_SECRET = re.compile(r"azure-storage-account-(.+)-secret")


class MigrationError(Exception):
    """A volume cannot be translated; the text is upstream's."""


def counts_as_csi_volume(plugin: str, migrated: tuple[str, ...]) -> bool:
    """Whether a node counts volumes of an in-tree plugin as those of its CSI driver.

    migrated: the plugins that the node's CSINode lists. Upstream: nodevolumelimits/utils.go,
    isCSIMigrationOn, for a node that has a CSINode.
    """
    return plugin in _ALWAYS_MIGRATED or (plugin == _PORTWORX and plugin in migrated)


def translates_topology(plugin: str, migrated: tuple[str, ...]) -> bool:
    """Whether a node evaluates a volume's node affinity as translated to its CSI driver.

    migrated: the plugins that the node's CSINode lists. Upstream: volumebinding/binder.go,
    tryTranslatePVToCSI.
    """
    return plugin in migrated and (plugin in _ALWAYS_MIGRATED or plugin == _PORTWORX)


def inline_handle(kind: str, source: Mapping[str, str]) -> str:
    """Return the CSI handle of a volume in a pod's spec; MigrationError if its ID is malformed.

    kind: the volume source, a key of IN_TREE_PLUGIN_OF. source: its fields.
    """
    if kind == "gcePersistentDisk":
        return f"projects/UNSPECIFIED/zones/UNSPECIFIED/disks/{source.get('pdName', '')}"
    return _handle(kind, source, "")


def persistent_source(
    kind: str, source: Mapping[str, str], labels: Mapping[str, str], resource_group: str
) -> CsiSource:
    """Return the CSI source of a persistent volume; MigrationError if it cannot be translated.

    kind: the volume source, a key of IN_TREE_PLUGIN_OF. source: its fields. labels: of the volume.
    """
    driver = CSI_DRIVER_OF[IN_TREE_PLUGIN_OF[kind]]
    if kind == "gcePersistentDisk":
        return CsiSource(driver, _gce_handle(source.get("pdName", ""), labels))
    return CsiSource(driver, _handle(kind, source, resource_group))


def persistent_terms(plugin: str, terms: NodeTerms, labels: Mapping[str, str]) -> NodeTerms:
    """Return the node terms of a migrated volume: zones under the driver's own topology key.

    If the terms name no zone, the zones of the volume's labels are added. A beta region key becomes
    the generally available (GA) one.
    """
    key = _TOPOLOGY_KEYS.get(plugin)
    if key is None:
        return terms
    zone, region = _topology_labels(terms, labels)
    # Terms override labels: volumes had zone labels before they had node affinity.
    if any(each.values for each in _expressions(terms) if each.key == zone):
        terms = _renamed(terms, zone, key)
    elif zone in labels:
        zones = {part.strip() for part in labels[zone].split(MULTI_ZONE_DELIMITER)} - {""}
        if zones:
            in_zones = Requirement(key, "In", tuple(sorted(zones)))
            terms = tuple(
                replace(term, expressions=(*term.expressions, in_zones))
                for term in terms or (NodeSelectorTerm(),)
            )
    names_region = any(each.values for each in _expressions(terms) if each.key == region)
    if region == BETA_REGION and names_region:
        terms = _renamed(terms, region, REGION)
    return terms


def _handle(kind: str, source: Mapping[str, str], resource_group: str) -> str:
    if kind == "awsElasticBlockStore":
        return _ebs_handle(source.get("volumeID", ""))
    if kind == "azureFile":
        secret = source.get("secretName", "")
        account = _AZURE_SECRET.search(secret)
        name = account.group(1) if account else secret
        return f"{resource_group}#{name}#{source.get('shareName', '')}#"
    return source.get(_HANDLE_FIELD[kind], "")


def _ebs_handle(volume_id: str) -> str:
    if not volume_id.startswith("aws://"):
        return volume_id
    found = volume_id.removeprefix("aws://").partition("/")[2].strip("/")
    if not _EBS_ID.fullmatch(found):
        raise MigrationError(
            "failed to translate Kubernetes ID to EBS Volume ID "
            f"Invalid format for AWS volume ({volume_id})"
        )
    return found


def _gce_handle(disk: str, labels: Mapping[str, str]) -> str:
    zones = (labels.get(BETA_ZONE) or labels.get(ZONE, "")).split(MULTI_ZONE_DELIMITER)
    if len(zones) == 1:
        return f"projects/UNSPECIFIED/zones/{zones[0] or 'UNSPECIFIED'}/disks/{disk}"
    regions = set()
    for zone in zones:
        parts = zone.split("-")
        if len(parts) != 3:
            raise MigrationError(
                "failed to get region from zones: zone in unexpected format, expected: "
                f"{{locale}}-{{region}}-{{zone}}, got: {zone}"
            )
        regions.add("-".join(parts[:2]))
    if len(regions) != 1:
        shown = " ".join(f"{region}:{{}}" for region in sorted(regions))
        raise MigrationError(
            "failed to get region from zones: multiple or no regions gotten from zones, "
            f"got: map[{shown}]"
        )
    return f"projects/UNSPECIFIED/regions/{regions.pop()}/disks/{disk}"


def _topology_labels(terms: NodeTerms, labels: Mapping[str, str]) -> tuple[str, str]:
    """Return the zone and region keys of a volume.

    Those of its terms take precedence over those of its labels, and then the GA keys over the beta
    keys.
    """
    keys_of_terms = {each.key for each in _expressions(terms)}
    for keys in (keys_of_terms, labels):
        if ZONE in keys:
            return ZONE, REGION
        if BETA_ZONE in keys:
            return BETA_ZONE, BETA_REGION
    return ZONE, REGION


def _expressions(terms: NodeTerms) -> list[Requirement]:
    return [each for term in terms or () for each in term.expressions]


def _renamed(terms: NodeTerms, old: str, new: str) -> NodeTerms:
    """Return the terms with another label key in place of `old`."""
    return tuple(
        replace(
            term,
            expressions=tuple(
                replace(each, key=new) if each.key == old else each for each in term.expressions
            ),
        )
        for term in terms or ()
    )
