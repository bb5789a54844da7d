"""Facts of storage from raw manifests, completed as by the API server and its controllers.

A class without a binding mode binds immediately; a volume without a status is available. Claims
are completed in `roadstead.manifests.creation`.
"""

from __future__ import annotations

from collections.abc import Iterable

from roadstead.facts.compile_storage import compile_storage, with_controller_defaults
from roadstead.facts.storage import StorageFacts
from roadstead.manifests import Manifests
from roadstead.protocol.objects import PersistentVolumeClaim


def storage_facts(manifests: Manifests, claims: Iterable[PersistentVolumeClaim]) -> StorageFacts:
    """Compile the storage objects. claims: all existing ones. InputError if a selector is wrong."""
    compiled = compile_storage(
        manifests.persistent_volumes,
        claims,
        manifests.storage_classes,
        manifests.csi_nodes,
        manifests.csi_drivers,
        manifests.csi_storage_capacities,
        manifests.volume_attachments,
    )
    return with_controller_defaults(compiled)
