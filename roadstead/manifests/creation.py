"""Admission of created pods and claims: what it changes, and which of them it refuses.

Objects that an API server has stored already (`is_stored_pod`) are not changed, and count as used
in quotas. The others are created in this order: claims of manifests, claims of stateful sets,
pods, each with its claims of devices from templates, and claims of ephemeral volumes. A refused
object is not created, as in a cluster: its controller retries again and again, and no scheduler
receives it.

Priority classes, tolerations and defaults of fields: `roadstead.manifests.defaults`. An object that
is invalid by itself ends a run: `roadstead.manifests.object_checks`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from roadstead.manifests.admin_access import REASON as ADMIN_REASON
from roadstead.manifests.admin_access import AdminAccess
from roadstead.manifests.applied import CLAIM, AppliedDefaults, is_stored_claim, is_stored_pod
from roadstead.manifests.claims import default_class, ephemeral_claims, with_class
from roadstead.manifests.collection import Manifests
from roadstead.manifests.defaults import DEFAULT_TOLERATIONS, has_default_tolerations
from roadstead.manifests.device_claims import DeviceClaims
from roadstead.manifests.limit_ranges import LimitRanges
from roadstead.manifests.quotas import Quotas
from roadstead.manifests.runtime_classes import RefusedError, RuntimeClasses
from roadstead.manifests.templates import controller_key, kind_and_name, namespaced_name
from roadstead.protocol.errors import InputError
from roadstead.protocol.objects import (
    PersistentVolumeClaim,
    Pod,
    ResourceClaim,
    ResourceClaimTemplate,
)


@dataclass(frozen=True, slots=True)
class RefusedObject:
    """An object that is not created. reason: upstream's text where upstream has one."""

    manifest: Pod | PersistentVolumeClaim | ResourceClaim | ResourceClaimTemplate
    reason: str


@dataclass(frozen=True, slots=True)
class CreatedObjects:
    """All objects that exist after admission.

    notes: which rules (limit ranges, quotas, …) changed or counted objects, and which rules were
    not applied.
    """

    pods: tuple[Pod, ...]
    claims: tuple[PersistentVolumeClaim, ...]
    device_claims: tuple[ResourceClaim, ...]
    refused: tuple[RefusedObject, ...]
    notes: tuple[str, ...]


def create(
    cluster: Manifests,
    pods: Sequence[Pod],
    created_claims: Sequence[PersistentVolumeClaim],
) -> CreatedObjects:
    """Admit the pods and claims that are not stored yet.

    cluster: the manifests, of which limit ranges, quotas, classes, claims and finished pods are
    read. pods: all pods, defaults filled in. created_claims: those that stateful sets create.

    Raises:
        InputError: the template of an ephemeral volume is wrong.
    """
    return _Creation(cluster).run(pods, created_claims)


class _Creation:
    """One admission. _claims: volume claims that exist, by namespace and name.

    _applied: counts the objects that a rule changed or counted, for the notes.
    """

    def __init__(self, cluster: Manifests) -> None:
        applied = AppliedDefaults()
        self._cluster, self._applied = cluster, applied
        self._ranges = LimitRanges(cluster.limit_ranges, applied)
        self._runtimes = RuntimeClasses(cluster.runtime_classes, applied)
        self._quotas = Quotas(cluster.resource_quotas, applied)
        self._default_class = default_class(cluster.storage_classes)
        self._claims: dict[tuple[str, str], PersistentVolumeClaim] = {}
        self._refused: list[RefusedObject] = []
        self._device_claims = self._admitted_device_claims()
        # Volume claims, by namespace and name.
        self._refused_claims: set[tuple[str, str]] = set()

    def run(
        self, pods: Sequence[Pod], created_claims: Sequence[PersistentVolumeClaim]
    ) -> CreatedObjects:
        of_manifests = self._cluster.persistent_volume_claims
        claims = [self._with_default_class(each) for each in (*of_manifests, *created_claims)]
        stored = [each for each in pods if is_stored_pod(each)]
        in_use = set(_claims_in_use(stored))
        for claim in claims:
            if is_stored_claim(claim) or namespaced_name(claim) in in_use:
                self._claims[namespaced_name(claim)] = claim
        for pod in stored:
            # The claims of a stored pod's ephemeral volumes exist, even if the manifests lack them.
            for claim in self._ephemeral_claims(pod):
                self._claims.setdefault(namespaced_name(claim), claim)
        self._quotas.count_stored(stored, self._cluster.finished_pods, self._claims.values())
        self._create_claims(claims)
        existing_pods = tuple(map(self._device_claims.with_claims, self._stored_and_admitted(pods)))
        for pod in existing_pods:
            self._create_claims(self._ephemeral_claims(pod))
        return CreatedObjects(
            pods=existing_pods,
            claims=tuple(self._claims.values()),
            device_claims=tuple(self._device_claims.claims.values()),
            refused=tuple(self._refused),
            notes=(*self._applied.notes(), *self._runtimes.notes(), *self._quotas.notes()),
        )

    def _admitted_device_claims(self) -> DeviceClaims:
        """Refuse claims and templates whose namespace does not allow the requested admin access.

        A stored template is not refused, but claims from it may be.
        """
        admin, cluster = AdminAccess(self._cluster.namespaces), self._cluster
        admitted = [claim for claim in cluster.resource_claims if not admin.refuses(claim)]
        templates = cluster.resource_claim_templates
        objects: list[ResourceClaim | ResourceClaimTemplate] = [
            *cluster.resource_claims,
            *templates,
        ]
        for each in objects:
            if admin.refuses(each):
                self._refused.append(RefusedObject(each, ADMIN_REASON))
        return DeviceClaims(
            admitted, [each for each in templates if not admin.refuses_claims_of(each)]
        )

    def _with_default_class(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        changed = with_class(claim, self._default_class)
        if changed is not claim:
            rule = f"default StorageClass {self._default_class}"
            self._applied.add(rule, "/".join(namespaced_name(claim)), CLAIM)
        return changed

    def _ephemeral_claims(self, pod: Pod) -> Iterator[PersistentVolumeClaim]:
        try:
            yield from map(self._with_default_class, ephemeral_claims(pod))
        except InputError as error:
            sources = self._cluster.sources
            source = sources.get(kind_and_name(pod)) or sources.get(controller_key(pod), "")
            raise error.at(source=source) from None

    def _create_claims(self, claims: Iterable[PersistentVolumeClaim]) -> None:
        for claim in claims:
            key = namespaced_name(claim)
            if key in self._claims:
                continue
            reason = self._ranges.claim_problem(claim, key[0])
            reason = reason or self._quotas.admit_claim(claim, "/".join(key))
            if reason:
                self._refused.append(RefusedObject(claim, reason))
                self._refused_claims.add(key)
            else:
                self._claims[key] = claim

    def _stored_and_admitted(self, pods: Iterable[Pod]) -> Iterator[Pod]:
        """Yield the stored pods and the admitted ones, in order."""
        for pod in pods:
            if is_stored_pod(pod):
                yield pod
                continue
            try:
                yield self._admitted(pod)
            except RefusedError as refused:
                self._refused.append(RefusedObject(pod, str(refused)))

    def _admitted(self, pod: Pod) -> Pod:
        namespace, _ = namespaced_name(pod)
        key = "/".join(namespaced_name(pod))
        self._check_claims_created(pod, namespace)
        if has_default_tolerations(pod.spec.tolerations):
            self._applied.add(DEFAULT_TOLERATIONS, key)
        if pod.spec.priority_class_name:
            self._applied.add(f"PriorityClass {pod.spec.priority_class_name}", key)
        spec = self._runtimes.applied_to(pod.spec, key)
        spec = self._ranges.defaulted(spec, namespace, key)
        if spec is not pod.spec:
            pod = pod.model_copy(update={"spec": spec})
        reason = self._ranges.pod_problem(spec, namespace) or self._quotas.admit_pod(pod, key)
        if reason:
            raise RefusedError(reason)
        return pod

    def _check_claims_created(self, pod: Pod, namespace: str) -> None:
        """Refuse a pod of a stateful set if one of its claims was refused."""
        owner = pod.metadata.controller
        if not self._refused_claims or owner is None or owner.kind != "StatefulSet":
            return
        for volume in pod.spec.volumes:
            claim = volume.persistent_volume_claim
            if claim is not None and (namespace, claim.claim_name) in self._refused_claims:
                name = f"{namespace}/{claim.claim_name}"
                raise RefusedError(f"PersistentVolumeClaim {name} of the pod is not created")


def _claims_in_use(stored: Iterable[Pod]) -> Iterator[tuple[str, str]]:
    """Yield the claims of stored pods: these claims are stored too."""
    for pod in stored:
        for volume in pod.spec.volumes:
            if volume.persistent_volume_claim is not None:
                namespace, _ = namespaced_name(pod)
                yield namespace, volume.persistent_volume_claim.claim_name
