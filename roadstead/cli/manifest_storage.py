"""Storage as the API server and its controllers would have it, from manifests as they are written.

A class without a binding mode binds at once; a claim that names no class gets the default one; the
claims of ephemeral volumes are made with their pods; a volume without a status is available.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from roadstead.facts.compile import DEFAULT_NAMESPACE
from roadstead.facts.compile_storage import BETA_CLASS, as_controllers_leave, compile_storage
from roadstead.facts.storage import StorageFacts
from roadstead.manifests import Manifests
from roadstead.manifests.templates import object_key
from roadstead.protocol.objects import PersistentVolumeClaim, Pod, StorageClass, validate

IS_DEFAULT = "storageclass.kubernetes.io/is-default-class"


def storage_facts(
    manifests: Manifests, made: Sequence[PersistentVolumeClaim], pods: Iterable[Pod]
) -> StorageFacts:
    """made: the claims of stateful sets. InputError where a selector or a template is wrong."""
    standing = {object_key(each): each for each in chain(manifests.persistent_volume_claims, made)}
    for claim in _ephemeral_claims(pods):
        standing.setdefault(object_key(claim), claim)
    default = _default_class(manifests.storage_classes)
    compiled = compile_storage(
        manifests.persistent_volumes,
        [_with_class(each, default) for each in standing.values()],
        manifests.storage_classes,
        manifests.csi_nodes,
        manifests.csi_drivers,
        manifests.csi_storage_capacities,
        manifests.volume_attachments,
    )
    return as_controllers_leave(compiled)


def _default_class(classes: Iterable[StorageClass]) -> str | None:
    """The default class; of several the newest, and of equally new ones the first by name."""
    marked = [
        each.metadata for each in classes if each.metadata.annotations.get(IS_DEFAULT) == "true"
    ]
    marked.sort(key=lambda meta: meta.name)
    marked.sort(key=lambda meta: meta.creation_timestamp or "", reverse=True)
    return marked[0].name if marked else None


def _with_class(claim: PersistentVolumeClaim, default: str | None) -> PersistentVolumeClaim:
    named = claim.spec.storage_class_name is not None or BETA_CLASS in claim.metadata.annotations
    if named or default is None or claim.spec.volume_name:
        return claim
    spec = claim.spec.model_copy(update={"storage_class_name": default})
    return claim.model_copy(update={"spec": spec})


def _ephemeral_claims(pods: Iterable[Pod]) -> Iterator[PersistentVolumeClaim]:
    for pod in pods:
        for volume in pod.spec.volumes:
            if volume.ephemeral is not None and volume.ephemeral.volume_claim_template:
                template = volume.ephemeral.volume_claim_template
                name = f"{pod.metadata.name}-{volume.name}"
                yield _owned(pod, name, template.get("metadata"), template.get("spec"))


def _owned(pod: Pod, name: str, metadata: object, spec: object) -> PersistentVolumeClaim:
    """The claim that the ephemeral volume controller makes of a template."""
    namespace = pod.metadata.namespace or DEFAULT_NAMESPACE
    uid = pod.metadata.uid or f"{namespace}/{pod.metadata.name}"
    owner = {"kind": "Pod", "name": pod.metadata.name, "uid": uid, "controller": True}
    own = {"name": name, "namespace": namespace, "ownerReferences": [owner]}
    kept = metadata if isinstance(metadata, dict) else {}
    document = {"metadata": {**kept, **own}, "spec": spec}
    claim = validate("PersistentVolumeClaim", document, source="")
    assert isinstance(claim, PersistentVolumeClaim)
    return claim
