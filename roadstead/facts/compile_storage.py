"""Compilation of manifests to facts of storage.

Upstream: component-helpers/storage/volume/{helpers,pv_helpers}.go for the meaning of annotations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar

from roadstead.facts.compile import DEFAULT_NAMESPACE, name_in_errors
from roadstead.facts.csi_migration import (
    IN_TREE_PLUGIN_OF,
    MigrationError,
    persistent_source,
    persistent_terms,
)
from roadstead.facts.parse_selectors import (
    SelectorError,
    parse_label_selector,
    parse_node_selector,
)
from roadstead.facts.selectors import LabelSelector
from roadstead.facts.storage import (
    AttachmentFacts,
    CapacityFacts,
    ClaimFacts,
    ClaimReference,
    CsiDriverFacts,
    CsiNodeFacts,
    CsiSource,
    NodeDriverFacts,
    NodeTerms,
    StorageClassFacts,
    StorageFacts,
    VolumeFacts,
)
from roadstead.protocol import objects
from roadstead.protocol.errors import InputError
from roadstead.protocol.objects.storage import VolumeNodeAffinity
from roadstead.protocol.quantity import Quantity

ManifestT = TypeVar("ManifestT")
"""A manifest of a storage object."""
FactsT = TypeVar("FactsT")
"""The facts of such a manifest."""

# Annotations.
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"
RESOURCE_GROUP = "kubernetes.io/azure-file-resource-group"

# Field of a model → field of the manifest, for in-tree plugins that CSI drivers replaced.
_IN_TREE_FIELDS = {
    name: field.alias or name
    for name, field in objects.PersistentVolumeSpec.model_fields.items()
    if field.alias in IN_TREE_PLUGIN_OF or name in IN_TREE_PLUGIN_OF
}


def compile_storage(
    volumes: Iterable[objects.PersistentVolume] = (),
    claims: Iterable[objects.PersistentVolumeClaim] = (),
    classes: Iterable[objects.StorageClass] = (),
    csi_nodes: Iterable[objects.CSINode] = (),
    csi_drivers: Iterable[objects.CSIDriver] = (),
    capacities: Iterable[objects.CSIStorageCapacity] = (),
    attachments: Iterable[objects.VolumeAttachment] = (),
) -> StorageFacts:
    """Compile validated objects; InputError if a selector does not parse."""
    return StorageFacts(
        _compile_each(compile_volume, volumes),
        _compile_each(compile_claim, claims),
        _compile_each(compile_class, classes),
        _compile_each(compile_csi_node, csi_nodes),
        _compile_each(compile_csi_driver, csi_drivers),
        _compile_each(compile_capacity, capacities),
        _compile_each(compile_attachment, attachments),
    )


def with_controller_defaults(facts: StorageFacts) -> StorageFacts:
    """Return the facts with the fields that controllers and the API server would fill in.

    A volume without phase and claim becomes Available; the binding mode of a class that has none
    becomes Immediate.
    """
    volumes = (
        each if each.phase or each.claim is not None else replace(each, phase="Available")
        for each in facts.volumes
    )
    classes = (
        each if each.binding_mode else replace(each, binding_mode="Immediate")
        for each in facts.classes
    )
    return replace(facts, volumes=tuple(volumes), classes=tuple(classes))


def _compile_each(
    compile_one: Callable[[ManifestT], FactsT], manifests: Iterable[ManifestT]
) -> tuple[FactsT, ...]:
    return tuple(compile_one(each) for each in manifests)


def compile_volume(volume: objects.PersistentVolume) -> VolumeFacts:
    """Compile a persistent volume; one of a migrated in-tree plugin is translated to CSI."""
    meta, spec = volume.metadata, volume.spec
    terms = _node_terms(spec.node_affinity)
    in_tree, migrated, error = _translated(volume)
    return VolumeFacts(
        name=meta.name,
        # As upstream (GetPersistentVolumeClass), the beta annotation overrides the field.
        storage_class=meta.annotations.get(BETA_CLASS, spec.storage_class_name),
        capacity_bytes=_bytes(spec.capacity.get("storage")) or 0,
        access_modes=tuple(spec.access_modes),
        volume_mode=spec.volume_mode or "Filesystem",
        attributes_class=spec.volume_attributes_class_name or "",
        phase=volume.status.phase,
        is_terminating=meta.deletion_timestamp is not None,
        labels=tuple(sorted(meta.labels.items())),
        claim=_claim_reference(spec.claim_ref),
        node_terms=terms,
        csi=CsiSource(spec.csi.driver, spec.csi.volume_handle) if spec.csi else None,
        in_tree=in_tree,
        migrated=migrated,
        migrated_terms=persistent_terms(in_tree, terms, meta.labels) if migrated else None,
        migration_error=error,
    )


def _translated(volume: objects.PersistentVolume) -> tuple[str, CsiSource | None, str]:
    """Return (in-tree plugin, CSI source, translation error); ("", None, "") for other volumes."""
    meta, spec = volume.metadata, volume.spec
    for name, kind in _IN_TREE_FIELDS.items():
        manifest = getattr(spec, name)
        if manifest is None:
            continue
        source = {key: str(value) for key, value in manifest.model_dump(by_alias=True).items()}
        group = meta.annotations.get(RESOURCE_GROUP, "")
        plugin = IN_TREE_PLUGIN_OF[kind]
        try:
            return plugin, persistent_source(kind, source, meta.labels, group), ""
        except MigrationError as error:
            return plugin, None, str(error)
    return "", None, ""


def _node_terms(affinity: VolumeNodeAffinity | None) -> NodeTerms:
    required = affinity.required if affinity else None
    return None if required is None else parse_node_selector(required)


def _claim_reference(manifest: objects.ClaimReference | None) -> ClaimReference | None:
    return ClaimReference(manifest.namespace, manifest.name, manifest.uid) if manifest else None


def compile_claim(claim: objects.PersistentVolumeClaim) -> ClaimFacts:
    """Compile a claim; InputError if its selector does not parse."""
    meta, spec = claim.metadata, claim.spec
    owner = meta.controller
    return ClaimFacts(
        namespace=meta.namespace or DEFAULT_NAMESPACE,
        name=meta.name,
        uid=meta.uid,
        storage_class=meta.annotations.get(BETA_CLASS, spec.storage_class_name or ""),
        volume_name=spec.volume_name,
        has_bind_completed=BIND_COMPLETED in meta.annotations,
        is_lost=claim.status.phase == "Lost",
        is_terminating=meta.deletion_timestamp is not None,
        access_modes=tuple(spec.access_modes),
        requested_bytes=_bytes(spec.resources.requests.get("storage")),
        volume_mode=spec.volume_mode or "Filesystem",
        attributes_class=spec.volume_attributes_class_name or "",
        selector=_selector(claim, spec.selector, "spec.selector"),
        selected_node=meta.annotations.get(SELECTED_NODE),
        owner_uid=owner.uid if owner else "",
    )


def compile_class(manifest: objects.StorageClass) -> StorageClassFacts:
    """Compile a storage class."""
    terms = tuple(
        tuple((each.key, tuple(each.values)) for each in term.match_label_expressions)
        for term in manifest.allowed_topologies
    )
    return StorageClassFacts(
        manifest.metadata.name, manifest.provisioner, manifest.volume_binding_mode, terms
    )


def compile_csi_node(node: objects.CSINode) -> CsiNodeFacts:
    """Compile the CSI drivers of a node."""
    drivers = tuple(
        NodeDriverFacts(
            each.name,
            each.allocatable.count if each.allocatable else None,
            tuple(each.topology_keys),
        )
        for each in node.spec.drivers
    )
    migrated = node.metadata.annotations.get(MIGRATED_PLUGINS, "")
    plugins = tuple(sorted(set(migrated.split(",")))) if migrated else ()
    return CsiNodeFacts(node.metadata.name, drivers, plugins)


def compile_csi_driver(driver: objects.CSIDriver) -> CsiDriverFacts:
    """Compile a CSI driver."""
    return CsiDriverFacts(driver.metadata.name, bool(driver.spec.storage_capacity))


def compile_capacity(manifest: objects.CSIStorageCapacity) -> CapacityFacts:
    """Compile the free capacity of a class; InputError if its selector does not parse."""
    largest = manifest.maximum_volume_size
    return CapacityFacts(
        manifest.metadata.namespace,
        manifest.metadata.name,
        manifest.storage_class_name,
        _selector(manifest, manifest.node_topology, "nodeTopology"),
        _bytes(manifest.capacity if largest is None else largest),
    )


def compile_attachment(manifest: objects.VolumeAttachment) -> AttachmentFacts:
    """Compile an attached volume."""
    name, spec = manifest.metadata.name, manifest.spec
    volume = spec.source.persistent_volume_name or ""
    return AttachmentFacts(name, spec.node_name, spec.attacher, volume)


def _bytes(quantity: Quantity | None) -> int | None:
    return None if quantity is None else quantity.value()


def _selector(
    owner: objects.ApiObject, selector: objects.LabelSelector | None, field: str
) -> LabelSelector | None:
    try:
        return parse_label_selector(selector)
    except SelectorError as error:
        raise InputError(str(error), obj=name_in_errors(owner), field=field) from error
