"""Claims of devices that are made from templates for pods, as the claim controller makes them.

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
from roadstead.protocol.objects.pod import ResourceClaimStatus

CLAIM_ANNOTATION = "resource.kubernetes.io/pod-claim-name"
"""Annotation of a claim made from a template: the name of the claim in the pod's spec."""

_BASE_MAX_CHARS = 57

Key = tuple[str, str]


class DeviceClaims:
    """The device claims of a cluster, with those that the controller makes for pods."""

    def __init__(
        self, existing: Iterable[ResourceClaim], templates: Iterable[ResourceClaimTemplate]
    ) -> None:
        self.claims: dict[Key, ResourceClaim] = {namespaced_name(each): each for each in existing}
        self._templates = {namespaced_name(each): each for each in templates}
        self._made = self._by_owner()

    def with_claims(self, pod: Pod) -> Pod:
        """Return a pod whose status names its claims; those that do not exist are made.

        A claim without its template is not made: such a pod waits, as in a cluster.
        """
        known = {each.name for each in pod.status.resource_claim_statuses}
        namespace = pod.metadata.namespace or DEFAULT_NAMESPACE
        statuses = list(pod.status.resource_claim_statuses)
        for each in pod.spec.resource_claims:
            name = each.resource_claim_template_name
            if name is None or each.name in known:
                continue
            made = self._made.get((pod_identity(pod).uid, each.name))
            template = self._templates.get((namespace, name))
            if made is None and template is not None:
                made = self._make(pod, each.name, template)
            if made is not None:
                status = ResourceClaimStatus(name=each.name, resource_claim_name=made.metadata.name)
                statuses.append(status)
        if len(statuses) == len(known):
            return pod
        changed = pod.status.model_copy(update={"resource_claim_statuses": tuple(statuses)})
        return pod.model_copy(update={"status": changed})

    def _by_owner(self) -> Mapping[tuple[str, str], ResourceClaim]:
        """Return claims made earlier, by UID of the pod and name in its spec."""
        found = {}
        for claim in self.claims.values():
            owner = claim.metadata.controller
            name = claim.metadata.annotations.get(CLAIM_ANNOTATION)
            if owner is not None and owner.kind == "Pod" and name is not None:
                found[owner.uid, name] = claim
        return found

    def _make(self, pod: Pod, name: str, template: ResourceClaimTemplate) -> ResourceClaim:
        namespace = pod.metadata.namespace or DEFAULT_NAMESPACE
        uid = pod_identity(pod).uid
        base, collisions = f"{pod.metadata.name}-{name}"[:_BASE_MAX_CHARS], 0
        while (namespace, made := _name(base, f"{uid}/{name}", collisions)) in self.claims:
            collisions += 1
        meta = template.spec.metadata
        claim = ResourceClaim(
            metadata=ObjectMeta(
                name=made,
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
        self.claims[namespace, made] = claim
        return claim


def _name(base: str, seed: str, collisions: int) -> str:
    return f"{base}-{suffix_of(f'{seed}/{collisions}' if collisions else seed)}"
