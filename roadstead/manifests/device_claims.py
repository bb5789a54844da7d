"""Claims of devices that the claim controller creates from templates for pods.

Upstream: pkg/controller/resourceclaim/controller.go (handleClaim).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from roadstead.facts.compile import DEFAULT_NAMESPACE, pod_identity
from roadstead.manifests.templates import namespaced_name
from roadstead.protocol.generated_names import suffix_of
from roadstead.protocol.objects import (
    ObjectMeta,
    OwnerReference,
    Pod,
    ResourceClaim,
    ResourceClaimTemplate,
)
from roadstead.protocol.objects.pod import PodResourceClaimStatus

CLAIM_ANNOTATION = "resource.kubernetes.io/pod-claim-name"
"""Annotation of a claim created from a template: the name of the claim in the pod's spec."""

_BASE_MAX_CHARS = 57
"""Length to which the start of a generated name is cut, so that a suffix fits in a DNS label."""

Key = tuple[str, str]
"""Namespace and name."""


class DeviceClaims:
    """The device claims of a cluster, with those that the controller creates for pods."""

    def __init__(
        self, existing: Iterable[ResourceClaim], templates: Iterable[ResourceClaimTemplate]
    ) -> None:
        self.claims: dict[Key, ResourceClaim] = {namespaced_name(each): each for each in existing}
        self._templates = {namespaced_name(each): each for each in templates}
        self._created_earlier = self._by_owner()

    def with_claims(self, pod: Pod) -> Pod:
        """Return a pod whose status names its claims; claims that do not exist are created.

        Without its template, a claim is not created: such a pod waits, as in a cluster.
        """
        with_status = {each.name for each in pod.status.resource_claim_statuses}
        namespace = pod.metadata.namespace or DEFAULT_NAMESPACE
        statuses = list(pod.status.resource_claim_statuses)
        for each in pod.spec.resource_claims:
            name = each.resource_claim_template_name
            if name is None or each.name in with_status:
                continue
            # The input may have the claim although the pod's status does not name it yet.
            claim = self._created_earlier.get((pod_identity(pod).uid, each.name))
            template = self._templates.get((namespace, name))
            if claim is None and template is not None:
                claim = self._create(pod, each.name, template)
            if claim is not None:
                status = PodResourceClaimStatus(
                    name=each.name, resource_claim_name=claim.metadata.name
                )
                statuses.append(status)
        if len(statuses) == len(with_status):
            return pod
        changed = pod.status.model_copy(update={"resource_claim_statuses": tuple(statuses)})
        return pod.model_copy(update={"status": changed})

    def _by_owner(self) -> Mapping[tuple[str, str], ResourceClaim]:
        """Return claims created earlier, by UID of the pod and name in its spec."""
        created = {}
        for claim in self.claims.values():
            owner = claim.metadata.controller
            name = claim.metadata.annotations.get(CLAIM_ANNOTATION)
            if owner is not None and owner.kind == "Pod" and name is not None:
                created[owner.uid, name] = claim
        return created

    def _create(self, pod: Pod, name: str, template: ResourceClaimTemplate) -> ResourceClaim:
        """Create a claim for a pod. name: of the claim in the pod's spec."""
        namespace = pod.metadata.namespace or DEFAULT_NAMESPACE
        uid = pod_identity(pod).uid
        base, collisions = f"{pod.metadata.name}-{name}"[:_BASE_MAX_CHARS], 0
        while (namespace, created := _name(base, f"{uid}/{name}", collisions)) in self.claims:
            collisions += 1
        meta = template.spec.metadata
        claim = ResourceClaim(
            metadata=ObjectMeta(
                name=created,
                namespace=namespace,
                labels=meta.labels,
                annotations={**meta.annotations, CLAIM_ANNOTATION: name},
                owner_references=(
                    OwnerReference(
                        api_version="v1",
                        kind="Pod",
                        name=pod.metadata.name,
                        uid=uid,
                        controller=True,
                    ),
                ),
            ),
            spec=template.spec.spec,
        )
        self.claims[namespace, created] = claim
        return claim


def _name(base: str, hashed: str, collisions: int) -> str:
    """Return `base` with a suffix derived from the text `hashed`."""
    return f"{base}-{suffix_of(f'{hashed}/{collisions}' if collisions else hashed)}"
