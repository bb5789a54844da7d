"""The limit of a node on the volumes of a CSI driver."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from roadstead.facts.csi_migration import (
    CSI_DRIVER_OF,
    IN_TREE_PLUGIN_OF,
    MigrationError,
    counts_as_csi_volume,
    inline_handle,
)
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.facts.storage import ClaimFacts, CsiNodeFacts, VolumeFacts
from roadstead.invariants.storage import CLAIM, EPHEMERAL, Storage, is_of_another

Attached = tuple[str, str]
"""(driver, the volume's handle)."""


def too_many_volumes(storage: Storage, pod: PodFacts, node: NodeFacts) -> Iterator[str]:
    """I1: new volumes do not exceed the node's limit for their driver; each volume counts once."""
    csi_node = storage.csi_nodes.get(node.name)
    if csi_node is None:
        return
    attached: set[Attached] = set()
    for other in storage.users.get(node.name, {}).values():
        attached |= set(_attached(storage, other, csi_node))
    # As upstream: a volume that is attached, but used by no pod of the node, counts twice when the
    # new pod uses it.
    new = set(_attached(storage, pod, csi_node)) - attached
    for each in storage.attachments:
        volume = storage.volumes.get(each.volume_name)
        if each.node_name == node.name and volume is not None:
            attached |= set(_of_volume(volume, csi_node))
    used_by_driver = Counter(driver for driver, _ in attached)
    new_by_driver = Counter(driver for driver, _ in new)
    for driver in csi_node.drivers:
        used, added = used_by_driver[driver.name], new_by_driver[driver.name]
        if driver.limit is not None and added and used + added > driver.limit:
            yield f"volumes of {driver.name}: {used} + {added} of {driver.limit}"


def _attached(storage: Storage, pod: PodFacts, node: CsiNodeFacts) -> Iterator[Attached]:
    """Yield a pod's volumes, up to the first that cannot be translated or is another object's."""
    for volume in pod.volumes:
        if volume.kind in IN_TREE_PLUGIN_OF:
            plugin = IN_TREE_PLUGIN_OF[volume.kind]
            if counts_as_csi_volume(plugin, node.migrated):
                try:
                    yield CSI_DRIVER_OF[plugin], inline_handle(volume.kind, dict(volume.source))
                except MigrationError:
                    return
        elif volume.kind in (CLAIM, EPHEMERAL):
            key = f"{pod.namespace}/{dict(volume.source).get('claimName', '')}"
            claim = storage.claims.get(key)
            if claim is None:
                continue
            if is_of_another(volume, claim):
                return
            yield from _of_claim(storage, claim, node)


def _of_claim(storage: Storage, claim: ClaimFacts, node: CsiNodeFacts) -> Iterator[Attached]:
    volume = storage.volumes.get(claim.volume_name)
    if volume is not None:
        for driver, handle in _of_volume(volume, node):
            if driver and handle:
                yield driver, handle
        return
    # A claim without a volume counts for the driver that would make one, under the claim's key.
    storage_class = storage.classes.get(claim.storage_class)
    if storage_class is None or not storage_class.provisioner:
        return
    provisioner = storage_class.provisioner
    if provisioner not in CSI_DRIVER_OF:
        yield provisioner, f"unbound {claim.key}"
    elif counts_as_csi_volume(provisioner, node.migrated):
        yield CSI_DRIVER_OF[provisioner], f"unbound {claim.key}"


def _of_volume(volume: VolumeFacts, node: CsiNodeFacts) -> Iterator[Attached]:
    source = volume.csi
    if source is None and counts_as_csi_volume(volume.in_tree, node.migrated):
        source = volume.migrated
    if source is not None:
        yield source.driver, source.handle
