"""The ResourceClaims of a pod, and the errors that make them unusable.

Upstream: dynamicresources.go (foreachPodResourceClaim) and
dynamic-resource-allocation/resourceclaim/claim.go.
"""

from __future__ import annotations

from collections.abc import Mapping

from roadstead.facts.devices import Consumer, DeviceClaimFacts
from roadstead.facts.pod import PodClaim, PodFacts
from roadstead.facts.quoting import go_quote
from roadstead.protocol.claim_bounds import CLAIM_MAX_CONSUMERS

Claims = Mapping[str, DeviceClaimFacts]


class PodClaimError(Exception):
    """A claim of a pod cannot be used; upstream's text."""


def claim_name(pod: PodFacts, claim: PodClaim) -> str | None:
    """Return the name of a pod's claim; None if the pod needs none there.

    Raises:
        PodClaimError: the claim of a template was not created yet, or nothing is named.
    """
    # A claim for extended resources has no name until the scheduler has created it.
    if claim.claim_name is not None or claim.extended:
        return claim.claim_name
    if claim.template_name is None:
        raise PodClaimError(
            f"pod {go_quote(_key(pod))}, spec.resourceClaim {go_quote(claim.name)}: "
            "none of the supported fields are set"
        )
    if claim.generated is None:
        raise PodClaimError(f"pod {go_quote(_key(pod))}: ResourceClaim not created yet")
    return claim.generated or None


def claims_of(claims: Claims, pod: PodFacts) -> tuple[DeviceClaimFacts, ...]:
    """Return a pod's claims in the order of its spec; one that it names twice occurs twice.

    Raises:
        PodClaimError: the first claim that is missing, being deleted, or made for another pod.
    """
    found = []
    namespace = pod.namespace
    for each in pod.device_claims:
        # Most claims are of these two kinds: a call of `claim_name` for each took as long as the
        # rest, and this function is called nine times for a pod.
        name = each.claim_name or each.generated or claim_name(pod, each)
        if name is None:
            continue
        key = f"{namespace}/{name}"
        claim = claims.get(key)
        if claim is None:
            raise PodClaimError(f"could not find ResourceClaim {go_quote(key)}")
        if claim.is_terminating:
            raise PodClaimError(f"resourceclaim {go_quote(name)} is being deleted")
        if each.claim_name is None:
            _check_owner(pod, claim)
        found.append(claim)
    return tuple(found)


def consumer_of(pod: PodFacts) -> Consumer:
    """Return a pod as an entry of status.reservedFor of its claims."""
    assert pod.claims_as is not None, "a pod with claims is named in its facts"
    return Consumer("pods", pod.claims_as.name, pod.claims_as.uid)


def reservation_error(claims: Claims, pod: PodFacts) -> str:
    """Return why the API server refuses to reserve a pod's claims for it; "" if it does not."""
    for each in pod.device_claims:
        name = each.claim_name or each.generated
        claim = claims.get(f"{pod.namespace}/{name}") if name else None
        if claim is None or len(claim.reserved_for) < CLAIM_MAX_CONSUMERS:
            continue
        if consumer_of(pod).uid not in [consumer.uid for consumer in claim.reserved_for]:
            return (
                f"add reservation to ResourceClaim {claim.key}: ResourceClaim.resource.k8s.io "
                f"{go_quote(claim.name)} is invalid: status.reservedFor: Too many: "
                f"{len(claim.reserved_for) + 1}: must have at most {CLAIM_MAX_CONSUMERS} items"
            )
    return ""


def _check_owner(pod: PodFacts, claim: DeviceClaimFacts) -> None:
    """Raise PodClaimError unless the pod controls a claim made from a template (IsForPod)."""
    if pod.claims_as is None or claim.owner_uid != pod.claims_as.uid:
        raise PodClaimError(
            f"ResourceClaim {claim.key} was not created for pod {_key(pod)} (pod is not owner)"
        )


def _key(pod: PodFacts) -> str:
    return f"{pod.namespace}/{pod.claims_as.name if pod.claims_as else ''}"
