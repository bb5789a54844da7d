"""ClaimMaker: makes the claims of devices that pods of a run get from templates.

In a cluster the claim controller makes them after a pod is created; here this takes no time.

Upstream: pkg/controller/resourceclaim/controller.go (handleClaim).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from roadstead.facts.devices import ClaimSpec, DeviceClaimFacts
from roadstead.facts.pod import Pod, PodClaim, PodFacts, PodIdentity, PodReference


class ClaimMaker:
    """Make claims of templates, and name them after their pods."""

    def __init__(self, templates: Iterable[tuple[str, ClaimSpec]]) -> None:
        self._templates: Mapping[str, ClaimSpec] = dict(templates)

    def with_claims(self, pods: Sequence[Pod]) -> tuple[list[Pod], tuple[DeviceClaimFacts, ...]]:
        """Return pods that consume claims of their own, and these claims."""
        made: list[DeviceClaimFacts] = []
        return [self._with_claims(*each, made) for each in pods], tuple(made)

    def _with_claims(
        self, identity: PodIdentity, facts: PodFacts, made: list[DeviceClaimFacts]
    ) -> Pod:
        if not facts.device_claims:
            return identity, facts
        claims = tuple(self._claim(identity, each, made) for each in facts.device_claims)
        consumer = PodReference(identity.uid, identity.name)
        return identity, replace(facts, device_claims=claims, claims_as=consumer)

    def _claim(
        self, identity: PodIdentity, claim: PodClaim, made: list[DeviceClaimFacts]
    ) -> PodClaim:
        if claim.template_name is None or claim.generated is not None:
            return claim
        spec = self._templates.get(f"{identity.namespace}/{claim.template_name}")
        if spec is None:
            return claim
        name = f"{identity.name}-{claim.name}"
        made.append(
            DeviceClaimFacts(
                identity.namespace,
                name,
                uid=f"{identity.uid}/{claim.name}",
                spec=spec,
                owner_uid=identity.uid,
                owner_kind="Pod",
            )
        )
        return replace(claim, generated=name)
