"""The claim that scheduling makes for extended resources of a pod (DRAExtendedResource).

    in memory ── assumed on a node ──> in flight, with a name ── bound ──> reserved by its pod
    (Filter)

Which requests the claim has depends on the node (`extended_claims.py`).

Upstream: preFilterExtendedResources, filterExtendedResources and bindClaim in
pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go of 1.34.1.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace

from roadstead.devices.claims import PodClaimError
from roadstead.devices.extended_claims import extended_need, is_served_by_class
from roadstead.devices.state import DeviceState
from roadstead.facts.devices import ClaimSpec, DeviceClaimFacts
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import UNWRITTEN_CLAIM_NAME, PodFacts
from roadstead.protocol.generated_names import BASE_MAX_CHARS, suffix_of


def may_need_claim(devices: DeviceState, pod: PodFacts) -> bool:
    """Whether a pod may get a claim of its own on some node."""
    return (
        devices.gates.extended_resource
        and bool(pod.extended_requests)
        and is_served_by_class(dict(pod.requests), devices.served)
    )


def left_claim(devices: DeviceState, pod: PodFacts) -> DeviceClaimFacts | None:
    """Return the claim that an earlier attempt made for a pod and did not use."""
    assert pod.claims_as is not None, "a pod with claims is named in its facts"
    claims = devices.claims_of_pods([pod.claims_as.uid])
    return next((each for each in claims if is_own(each, pod) and not each.is_in_flight), None)


def is_own(claim: DeviceClaimFacts, pod: PodFacts) -> bool:
    """Whether a claim was made for the extended resources of a pod."""
    assert pod.claims_as is not None, "a pod with claims is named in its facts"
    return claim.is_for_extended_resources and claim.owner_uid == pod.claims_as.uid


def offered_by(node: NodeFacts) -> frozenset[str]:
    """Return the resources in a node's allocatable, those of amount 0 among them."""
    return frozenset(name for name, _ in node.allocatable)


def own_claim_on(
    devices: DeviceState, pod: PodFacts, allocatable: Container[str], *, has_claims: bool
) -> DeviceClaimFacts | None:
    """Return the claim that a pod needs for extended resources on a node, in memory; None for none.

    Raises:
        PodClaimError: the node does not fit, or the claim of an earlier attempt is in the way.
    """
    if not may_need_claim(devices, pod):
        return None
    if left_claim(devices, pod) is not None:
        raise PodClaimError("cannot schedule extended resource claim")
    need = extended_need(
        dict(pod.requests),
        pod.extended_requests,
        devices.served,
        allocatable,
        has_claims=has_claims,
    )
    if need.missing:
        raise PodClaimError("cannot fit resource")
    if need.requests is None:
        return None
    return DeviceClaimFacts(
        pod.namespace,
        UNWRITTEN_CLAIM_NAME,
        spec=ClaimSpec(need.requests),
        is_for_extended_resources=True,
    )


def named_for(devices: DeviceState, claim: DeviceClaimFacts, pod: PodFacts) -> DeviceClaimFacts:
    """Return a pod's own claim as it is written: with a name that is free, and its owner."""
    assert pod.claims_as is not None, "a pod with claims is named in its facts"
    base, again = f"{pod.claims_as.name}-extended-resources-"[:BASE_MAX_CHARS], 0
    while True:
        suffix = suffix_of(f"{pod.claims_as.uid}/{again}" if again else pod.claims_as.uid)
        key = f"{pod.namespace}/{base}{suffix}"
        if key not in devices.claims:
            break
        again += 1
    return replace(
        claim,
        name=f"{base}{suffix}",
        uid=key,
        owner_uid=pod.claims_as.uid,
        owner_kind="Pod",
    )
