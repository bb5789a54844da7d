"""AssumedDevices: the claims of devices that assumed pods reserve, until their bind or end.

    UNALLOCATED ── assume ──> IN FLIGHT ── confirm ──> RESERVED (allocated, the pod a consumer)
         ^                       │
         └──────── forget ───────┘

A claim that scheduling makes for extended resources of a pod has the same life: it exists from the
assumption on, and is gone when the pod is forgotten.

A claim is allocated when the first pod that needs it is assumed. Until that pod is bound the claim
is in flight, and no other pod may use it. If a claim is allocated already, the bind of a pod only
adds the pod to its consumers (reservedFor).

Upstream: dynamicresources.go (Reserve, Unreserve, bindClaim), dra_manager.go (in-flight claims).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from roadstead.devices.claims import Claims, PodClaimError, claims_of, consumer_of
from roadstead.devices.errors import AllocationError
from roadstead.devices.own_claims import is_own, may_need_claim, named_for, offered_by, own_claim_on
from roadstead.devices.state import DeviceState, is_reachable, reserved
from roadstead.facts.devices import DeviceClaimFacts
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts

DeviceClaims = tuple[DeviceClaimFacts, ...]

NO_CLAIMS: Claims = {}

ClaimChange = tuple[DeviceClaims, tuple[str, ...]]
"""Claims in their new state, and keys of removed ones."""


class AssumedDevices:
    """The claims of assumed pods; the only writer of their DeviceState."""

    def __init__(self, devices: DeviceState) -> None:
        self.devices = devices
        self._pods: dict[str, PodFacts] = {}
        # What undoes the assumption of each pod.
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
        """Return the claims that are in flight for a pod, without those that are gone."""
        claims = self.devices.claims
        return tuple(claims[key] for key in self.keys_of(uid) if key in claims)

    def forget(self, uid: str) -> ClaimChange:
        """Free the claims that are in flight for a pod; return the change."""
        self._pods.pop(uid, None)
        claims = self.devices.claims
        before, made = self._undos.pop(uid, ((), ()))
        # A claim may have ended with the pod for which it was made.
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
        changed = consumed_by(self.devices.claims, pod, made)
        self.devices.apply(changed)
        return changed

    def holders(self) -> tuple[str, ...]:
        """Return the UIDs of the pods that reserve claims."""
        return tuple(self._pods)

    def keys_of(self, uid: str) -> tuple[str, ...]:
        """Return the keys of the claims that were allocated or made when a pod was assumed."""
        before, made = self._undos.get(uid, ((), ()))
        return (*(each.key for each in before), *made)

    def try_out(
        self, asked: Sequence[DeviceClaimFacts], pod: PodFacts, node: NodeFacts
    ) -> tuple[ClaimChange, DeviceClaims] | None:
        """Apply the allocation that another process chose for a pod; return (undo, after).

        The pod becomes a consumer at once, and nothing is recorded here: the caller applies `undo`
        if the bind is not committed. Returns None and changes nothing if the node does not reach
        the devices of a claim, a device is in use, the proposal lacks a claim of the pod, or slices
        or classes have changed and do not allow the allocation any more.
        """
        if not pod.device_claims:
            return ((), ()), ()
        devices = self.devices
        try:
            claims = claims_of(devices.claims, pod)
            own = _own_claim_on(devices, pod, node, has_claims=bool(claims))
        except PodClaimError:
            return None
        wanted = {each.key: each for each in asked}
        new: dict[str, DeviceClaimFacts] = {}
        for claim in claims:
            if claim.allocation is None:
                found = wanted.get(claim.key)
                if found is None or found.allocation is None:
                    return None
                new[claim.key] = claim.in_flight(found.allocation)
        made = None if own is None else _made_as(own, asked, pod)
        if made is not None and made.key not in devices.claims:
            new[made.key] = made
        elif own is not None:
            return None
        if not _are_reachable((*claims, *new.values()), node) or not devices.are_free(new.values()):
            return None
        # Without new slices or classes, the other process has searched what a search here would.
        if (
            new
            and devices.objects_changed
            and not _are_repeated(devices, tuple(new.values()), node)
        ):
            return None
        unchanged = tuple({each.key: each for each in claims}.values())
        before = unchanged, () if made is None else (made.key,)
        after = consumed_by(devices.claims, pod, before[1], changed=new)
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
                # It may have ended with the pod for which it was made.
                assert claim is None or claim.is_in_flight, f"{key} is not in flight"


def allocated_on(devices: DeviceState, pod: PodFacts, node: NodeFacts) -> DeviceClaims | None:
    """Return a pod's claims that have no allocation yet, allocated on a node; None if impossible.

    The last may be one that is made for the pod.

    Raises:
        PodClaimError: a claim cannot be used.
        AllocationError: a claim, class or slice is invalid.
    """
    claims = claims_of(devices.claims, pod)
    listed = []
    for each in claims:
        if each.is_in_flight:
            return None
        if each.allocation is None:
            listed.append(each)
        elif not is_reachable(each.allocation.node_terms, node.name, dict(node.labels)):
            return None
    own = _own_claim_on(devices, pod, node, has_claims=bool(claims))
    if own is not None:
        listed.append(named_for(devices, own, pod))
    waiting = tuple(listed)
    if not waiting:
        return ()
    allocator = devices.allocator
    # Compiled once for all claims that ask for the same; only an error would name the claim.
    plan = allocator.plan(devices.substitutes.alike(waiting))
    allocations = allocator.allocate(plan, node.name, node.labels)
    if allocations is None:
        return None
    # If the pod names a claim twice, the first allocation counts: upstream writes that one.
    found: dict[str, DeviceClaimFacts] = {}
    for claim, allocation in zip(waiting, allocations, strict=True):
        found.setdefault(claim.key, claim.in_flight(allocation))
    return tuple(found.values())


def _are_reachable(claims: Iterable[DeviceClaimFacts], node: NodeFacts) -> bool:
    """Whether a node reaches the devices of all claims that are allocated."""
    labels = dict(node.labels)
    return all(
        is_reachable(each.allocation.node_terms, node.name, labels)
        for each in claims
        if each.allocation is not None
    )


def _are_repeated(devices: DeviceState, claims: DeviceClaims, node: NodeFacts) -> bool:
    """Whether the slices and classes here allow the allocations that another process made."""
    plan = devices.allocator.plan(devices.substitutes.alike(claims))
    allocations = tuple([each.allocation for each in claims if each.allocation is not None])
    try:
        return devices.allocator.repeats(plan, node.name, node.labels, allocations)
    except AllocationError:
        return False


def _own_claim_on(
    devices: DeviceState, pod: PodFacts, node: NodeFacts, *, has_claims: bool
) -> DeviceClaimFacts | None:
    """Return the claim that a pod needs for extended resources on a node; None for none."""
    if not may_need_claim(devices, pod):
        return None
    return own_claim_on(devices, pod, offered_by(node), has_claims=has_claims)


def consumed_by(
    known: Claims, pod: PodFacts, made: Sequence[str] = (), *, changed: Claims = NO_CLAIMS
) -> DeviceClaims:
    """Return a pod's claims as they are once it is bound; a claim that is gone is left out.

    made: keys of claims that were made for it. changed: claims in place of known ones.
    """
    consumer, found = consumer_of(pod), []
    keys = [f"{pod.namespace}/{name}" for name in names_of(pod)]
    for key in dict.fromkeys((*keys, *made)):
        claim = changed.get(key) or known.get(key)
        if claim is not None and claim.allocation is not None:
            found.append(reserved(claim, consumer))
    return tuple(found)


def names_of(pod: PodFacts) -> tuple[str, ...]:
    """Return the names of a pod's claims, but not of one that is not made yet, or not needed."""
    names = [each.claim_name or each.generated for each in pod.device_claims]
    return tuple([name for name in names if name])


def _made_as(
    own: DeviceClaimFacts, asked: Sequence[DeviceClaimFacts], pod: PodFacts
) -> DeviceClaimFacts | None:
    """Return the claim that another process made for a pod; None if it is not as it must be."""
    for each in asked:
        if is_own(each, pod) and each.allocation is not None:
            as_made = replace(own, name=each.name, uid=each.key, allocation=each.allocation)
            owned = replace(as_made, owner_uid=each.owner_uid, owner_kind="Pod", is_in_flight=True)
            return each if each == owned else None
    return None
