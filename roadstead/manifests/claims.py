"""Creation of claims: the default storage class, and the claims of ephemeral volumes.

Upstream: plugin/pkg/admission/storage/storageclass/setdefault, pkg/volume/util/storageclass.go
(GetDefaultClass) and pkg/controller/volume/ephemeral (1.34). A stored claim without a class and
without a volume gets the default one, too: the volume controller sets it later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from roadstead.facts.compile import DEFAULT_NAMESPACE, name_in_errors
from roadstead.facts.compile_storage import BETA_CLASS
from roadstead.protocol.errors import InputError
from roadstead.protocol.objects import PersistentVolumeClaim, Pod, StorageClass, validate

IS_DEFAULT = "storageclass.kubernetes.io/is-default-class"
BETA_IS_DEFAULT = "storageclass.beta.kubernetes.io/is-default-class"


def default_class(classes: Iterable[StorageClass]) -> str | None:
    """Return the default class; of several the newest, of equally new ones the first by name."""
    marked = [
        each.metadata
        for each in classes
        if "true" in map(each.metadata.annotations.get, (IS_DEFAULT, BETA_IS_DEFAULT))
    ]
    marked.sort(key=lambda meta: meta.name)
    marked.sort(key=lambda meta: meta.creation_timestamp or "", reverse=True)
    return marked[0].name if marked else None


def with_class(claim: PersistentVolumeClaim, default: str | None) -> PersistentVolumeClaim:
    """Return the claim with the default class if it has no volume and no class, not even ""."""
    has_class = (
        claim.spec.storage_class_name is not None or BETA_CLASS in claim.metadata.annotations
    )
    if has_class or default is None or claim.spec.volume_name:
        return claim
    spec = claim.spec.model_copy(update={"storage_class_name": default})
    return claim.model_copy(update={"spec": spec})


def ephemeral_claims(pod: Pod) -> Iterator[PersistentVolumeClaim]:
    """Yield the claims that a pod's ephemeral volumes create; InputError if a template is wrong."""
    for index, volume in enumerate(pod.spec.volumes):
        if volume.ephemeral is not None and volume.ephemeral.volume_claim_template:
            template = volume.ephemeral.volume_claim_template
            name = f"{pod.metadata.name}-{volume.name}"
            try:
                yield _owned(pod, name, template.get("metadata"), template.get("spec"))
            except InputError as error:
                field = f"spec.volumes[{index}].ephemeral.volumeClaimTemplate.{error.field}"
                raise InputError(
                    error.rule, obj=name_in_errors(pod), field=field, value=error.value
                ) from None


def _owned(pod: Pod, name: str, metadata: object, spec: object) -> PersistentVolumeClaim:
    """Build the claim that the ephemeral volume controller creates from a template."""
    namespace = pod.metadata.namespace or DEFAULT_NAMESPACE
    uid = pod.metadata.uid or f"{namespace}/{pod.metadata.name}"
    owner = {"kind": "Pod", "name": pod.metadata.name, "uid": uid, "controller": True}
    set_by_controller = {"name": name, "namespace": namespace, "ownerReferences": [owner]}
    of_template = metadata if isinstance(metadata, dict) else {}
    document = {"metadata": {**of_template, **set_by_controller}, "spec": spec}
    claim = validate("PersistentVolumeClaim", document, source="")
    assert isinstance(claim, PersistentVolumeClaim)
    return claim
