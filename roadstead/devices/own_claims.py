"""A pod's own claim: scheduling makes it for the pod's extended resources (DRAExtendedResource).

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
    """Whether a pod needs an own claim on some nodes."""
    return (
        devices.gates.extended_resource
        and bool(pod.extended_requests)
        and is_served_by_class(dict(pod.requests), devices.served)
    )


def leftover_claim(devices: DeviceState, pod: PodFacts) -> DeviceClaimFacts | None:
    """Return the own claim that an earlier attempt made for a pod and did not use."""
    assert pod.claims_as is not None, "a pod with claims is named in its facts"
    claims = devices.claims_of_pods([pod.claims_as.uid])
    return next((each for each in claims if is_own(each, pod) and not each.is_in_flight), None)


def is_own(claim: DeviceClaimFacts, pod: PodFacts) -> bool:
    """Whether a claim was made for the extended resources of a pod."""
    assert pod.claims_as is not None, "a pod with claims is named in its facts"
    return claim.is_for_extended_resources and claim.owner_uid == pod.claims_as.uid


def allocatable_names(node: NodeFacts) -> frozenset[str]:
    """Return the names in a node's allocatable, including those with amount 0."""
    return frozenset(name for name, _ in node.allocatable)


def own_claim_on(
    devices: DeviceState, pod: PodFacts, allocatable: Container[str], *, has_claims: bool
) -> DeviceClaimFacts | None:
    """Return the own claim that a pod needs on a node, without name; None if it needs none.

    Raises:
        PodClaimError: the pod does not fit the node, or an earlier attempt left a claim.
    """
    if not may_need_claim(devices, pod):
        return None
    if leftover_claim(devices, pod) is not None:
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


def with_name_and_owner(
    devices: DeviceState, claim: DeviceClaimFacts, pod: PodFacts
) -> DeviceClaimFacts:
    """Return a pod's own claim as it is written: with an unused name, and its owner."""
    assert pod.claims_as is not None, "a pod with claims is named in its facts"
    base, used = f"{pod.claims_as.name}-extended-resources-"[:BASE_MAX_CHARS], 0
    while True:
        suffix = suffix_of(f"{pod.claims_as.uid}/{used}" if used else pod.claims_as.uid)
        key = f"{pod.namespace}/{base}{suffix}"
        if key not in devices.claims:
            break
        used += 1
    return replace(
        claim,
        name=f"{base}{suffix}",
        uid=key,
        owner_uid=pod.claims_as.uid,
        owner_kind="Pod",
    )
