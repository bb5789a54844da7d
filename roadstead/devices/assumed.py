"""AssumedDevices: claims that are allocated for assumed pods, until these are bound or forgotten.

    UNALLOCATED ── assume ──> IN FLIGHT ── confirm ──> RESERVED (allocated, the pod a consumer)
         ^                       │
         └──────── forget ───────┘

A claim is allocated when the first pod that needs it is assumed. Until that pod is bound the claim
is in flight, and no other pod may use it. If a claim is allocated already, the bind of a pod only
adds the pod to its consumers (reservedFor).

A pod's *own claim* is the one that scheduling makes for its extended resources (`own_claims.py`).
It exists from the assumption on, and is removed when the pod is forgotten.

Upstream: dynamicresources.go (Reserve, Unreserve, bindClaim), dra_manager.go (in-flight claims).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from roadstead.devices.claims import Claims, PodClaimError, claims_of, consumer_of
from roadstead.devices.errors import AllocationError
from roadstead.devices.own_claims import (
    allocatable_names,
    is_own,
    may_need_claim,
    own_claim_on,
    with_name_and_owner,
)
from roadstead.devices.state import DeviceState, is_reachable, reserved
from roadstead.facts.devices import DeviceClaimFacts
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts

DeviceClaims = tuple[DeviceClaimFacts, ...]

NO_CLAIMS: Claims = {}

ClaimChange = tuple[DeviceClaims, tuple[str, ...]]
"""Claims in their new state, and the keys of removed claims."""


class AssumedDevices:
    """The claims of assumed pods; the only writer of their DeviceState."""

    def __init__(self, devices: DeviceState) -> None:
        self.devices = devices
        # By UID of an assumed pod: its facts, and the change that undoes the assumption.
        self._pods: dict[str, PodFacts] = {}
        self._undos: dict[str, ClaimChange] = {}

    def assume(self, uid: str, pod: PodFacts, node: NodeFacts) -> DeviceClaims | None:
        """Allocate a pod's claims on a node; return those that are in flight for it.

        None, and nothing is changed, if that is not possible. Idempotent.
        """
        if not pod.device_claims:
            return ()
        if uid in self._pods:
            return self.in_flight(uid)
        try:
            found = allocated_on(self.devices, pod, node)
        except (PodClaimError, AllocationError):
            return None
        if found is None:
            return None
        self._pods[uid] = pod
        self._undos[uid] = self.devices.apply(found)
        return found

    def in_flight(self, uid: str) -> DeviceClaims:
        """Return the claims that are in flight for a pod and still exist."""
        claims = self.devices.claims
        return tuple(claims[key] for key in self.keys_of(uid) if key in claims)

    def forget(self, uid: str) -> ClaimChange:
        """Free the claims that are in flight for a pod; return the change."""
        self._pods.pop(uid, None)
        claims = self.devices.claims
        before, made = self._undos.pop(uid, ((), ()))
        # A claim may have been removed with the pod for which it was made.
        freed = tuple(each for each in before if each.key in claims)
        removed = tuple(key for key in made if key in claims)
        self.devices.apply(freed, removed)
        return freed, removed

    def confirm(self, uid: str) -> DeviceClaims:
        """Make a bound pod a consumer of all its claims; return their new state."""
        pod = self._pods.pop(uid, None)
        _, made = self._undos.pop(uid, ((), ()))
        if pod is None:
            return ()
        changed = consumed_claims(self.devices.claims, pod, own=made)
        self.devices.apply(changed)
        return changed

    def holders(self) -> tuple[str, ...]:
        """Return the UIDs of the assumed pods with claims."""
        return tuple(self._pods)

    def keys_of(self, uid: str) -> tuple[str, ...]:
        """Return the keys of the claims that were allocated or made when a pod was assumed."""
        before, made = self._undos.get(uid, ((), ()))
        return (*(each.key for each in before), *made)

    def try_out(
        self, proposed: Sequence[DeviceClaimFacts], pod: PodFacts, node: NodeFacts
    ) -> tuple[ClaimChange, DeviceClaims] | None:
        """Apply the allocation that another process proposes for a pod; return (undo, claims).

        claims: in their new state, with the pod as a consumer. Nothing is recorded here: the caller
        applies `undo` if the bind is not committed. Returns None and changes nothing if the node
        does not reach the devices of a claim, a device is in use, the proposal lacks a claim of the
        pod, or slices or classes have changed and do not allow the allocation any more.
        """
        if not pod.device_claims:
            return ((), ()), ()
        devices = self.devices
        try:
            claims = claims_of(devices.claims, pod)
            own = _own_claim_on(devices, pod, node, has_claims=bool(claims))
        except PodClaimError:
            return None
        proposed_by_key = {each.key: each for each in proposed}
        new: dict[str, DeviceClaimFacts] = {}
        for claim in claims:
            if claim.allocation is None:
                found = proposed_by_key.get(claim.key)
                # A claim that was deleted and created again may ask for something else.
                if found is None or found.allocation is None or found.uid != claim.uid:
                    return None
                new[claim.key] = claim.assumed_with(found.allocation)
        made = None if own is None else _proposed_own_claim(own, proposed, pod)
        if made is not None and made.key not in devices.claims:
            new[made.key] = made
        elif own is not None:
            return None
        if not _are_reachable((*claims, *new.values()), node) or not devices.are_free(new.values()):
            return None
        # As long as no slice or class has changed, a search here would find the same.
        if (
            new
            and devices.objects_changed
            and not _are_repeated(devices, tuple(new.values()), node)
        ):
            return None
        unchanged = tuple({each.key: each for each in claims}.values())
        before = unchanged, () if made is None else (made.key,)
        after = consumed_claims(devices.claims, pod, own=before[1], changed=new)
        devices.apply(after)
        return before, after

    def validate(self) -> None:
        """Assert that each claim in flight belongs to exactly one pod."""
        self.devices.validate()
        holder: dict[str, str] = {}
        for uid in self._undos:
            for key in self.keys_of(uid):
                other = holder.setdefault(key, uid)
                assert other == uid, f"{key} is in flight for {other} and {uid}"
                claim = self.devices.claims.get(key)
                # The claim may have been removed with the pod for which it was made.
                assert claim is None or claim.is_in_flight, f"{key} is not in flight"


def allocated_on(devices: DeviceState, pod: PodFacts, node: NodeFacts) -> DeviceClaims | None:
    """Return a pod's claims that have no allocation yet, allocated on a node; None if impossible.

    The last one may be the pod's own claim, which does not exist yet.

    Raises:
        PodClaimError: a claim cannot be used.
        AllocationError: a claim, class or slice is invalid.
    """
    claims = claims_of(devices.claims, pod)
    waiting = []
    for each in claims:
        if each.is_in_flight:
            return None
        if each.allocation is None:
            waiting.append(each)
        elif not is_reachable(each.allocation.node_terms, node.name, node.labels):
            return None
    own = _own_claim_on(devices, pod, node, has_claims=bool(claims))
    if own is not None:
        waiting.append(with_name_and_owner(devices, own, pod))
    if not waiting:
        return ()
    allocator = devices.allocator
    # One plan for all claims with equal requests. Only errors name the claim, and none is reported.
    plan = allocator.plan(devices.substitutes.in_place_of(waiting))
    allocations = allocator.allocate(plan, node.name, node.labels)
    if allocations is None:
        return None
    # If the pod names a claim twice, the first allocation counts: upstream writes that one.
    found: dict[str, DeviceClaimFacts] = {}
    for claim, allocation in zip(waiting, allocations, strict=True):
        found.setdefault(claim.key, claim.assumed_with(allocation))
    return tuple(found.values())


def _are_reachable(claims: Iterable[DeviceClaimFacts], node: NodeFacts) -> bool:
    """Whether a node reaches the devices of all claims that are allocated."""
    for each in claims:
        allocation = each.allocation
        if allocation and not is_reachable(allocation.node_terms, node.name, node.labels):
            return False
    return True


def _are_repeated(devices: DeviceState, claims: DeviceClaims, node: NodeFacts) -> bool:
    """Whether the slices and classes here allow the allocations that another process made."""
    plan = devices.allocator.plan(devices.substitutes.in_place_of(claims))
    allocations = tuple([each.allocation for each in claims if each.allocation is not None])
    try:
        return devices.allocator.repeats(plan, node.name, node.labels, allocations)
    except AllocationError:
        return False


def _own_claim_on(
    devices: DeviceState, pod: PodFacts, node: NodeFacts, *, has_claims: bool
) -> DeviceClaimFacts | None:
    """Return the own claim that a pod needs on a node; None for none."""
    if not may_need_claim(devices, pod):
        return None
    return own_claim_on(devices, pod, allocatable_names(node), has_claims=has_claims)


def consumed_claims(
    known: Claims, pod: PodFacts, *, own: Sequence[str], changed: Claims = NO_CLAIMS
) -> DeviceClaims:
    """Return a pod's claims as they are once it is bound, without those that no longer exist.

    own: the key of its own claim, if it has one. changed: claims that replace known ones.
    """
    consumer, found = consumer_of(pod), []
    keys = [f"{pod.namespace}/{name}" for name in names_of(pod)]
    for key in dict.fromkeys((*keys, *own)):
        claim = changed.get(key) or known.get(key)
        if claim is not None and claim.allocation is not None:
            found.append(reserved(claim, consumer))
    return tuple(found)


def names_of(pod: PodFacts) -> tuple[str, ...]:
    """Return the names of a pod's claims, without those that are not made yet or not needed."""
    names = [each.claim_name or each.generated for each in pod.device_claims]
    return tuple([name for name in names if name])


def _proposed_own_claim(
    own: DeviceClaimFacts, proposed: Sequence[DeviceClaimFacts], pod: PodFacts
) -> DeviceClaimFacts | None:
    """Return the own claim that another process proposes; None if it differs from `own`.

    Its name and allocation are those of the proposal.
    """
    for each in proposed:
        if is_own(each, pod) and each.allocation is not None:
            named = replace(own, name=each.name, uid=each.key, allocation=each.allocation)
            owned = replace(named, owner_uid=each.owner_uid, owner_kind="Pod", is_in_flight=True)
            return each if each == owned else None
    return None
