"""Storage as the API server and its controllers would have it, from manifests as they are written.

A class without a binding mode binds at once; a volume without a status is available. Claims come
from `roadstead.manifests.creation`.
"""

from __future__ import annotations

from collections.abc import Iterable

from roadstead.facts.compile_storage import as_controllers_leave, compile_storage
from roadstead.facts.storage import StorageFacts
from roadstead.manifests import Manifests
from roadstead.protocol.objects import PersistentVolumeClaim


def storage_facts(manifests: Manifests, claims: Iterable[PersistentVolumeClaim]) -> StorageFacts:
    """claims: all that there are. InputError where a selector is wrong."""
    compiled = compile_storage(
        manifests.persistent_volumes,
        claims,
        manifests.storage_classes,
        manifests.csi_nodes,
        manifests.csi_drivers,
        manifests.csi_storage_capacities,
        manifests.volume_attachments,
    )
    return as_controllers_leave(compiled)
