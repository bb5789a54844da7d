"""DeviceState: claims, slices and classes of devices, and which devices are allocated.

There is one per process, in its `StorageState`, which applies changes to it. A change contains
claims in their whole new state, so applying it twice is the same as once.

The devices of a claim are in use as long as it has an allocation. A claim that is in flight, that
is, allocated for an assumed pod, has one, too. Upstream: dynamicresources/dra_manager.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from roadstead.devices.allocation_result import terms_of_node
from roadstead.devices.allocator import Allocator
from roadstead.devices.cel_selectors import compile_cel
from roadstead.devices.device_taints import tainted
from roadstead.devices.extended_claims import classes_by_resource
from roadstead.devices.gates import DeviceGates
from roadstead.devices.pools import Labels
from roadstead.devices.room import DeviceRoom
from roadstead.devices.substitutes import Substitutes
from roadstead.facts.devices import (
    Consumer,
    DeviceClaimFacts,
    DeviceClassFacts,
    DevicesFacts,
    NodeTerms,
    SliceFacts,
)

FINALIZER = "resource.kubernetes.io/delete-protection"
"""Finalizer of claims with an allocation."""

NO_GATES = DeviceGates()


class DeviceState:
    """Device objects: claims by `namespace/name`, slices and classes by name.

    version: grows with each change. now_ms: time since 1970, set by the process that has the state;
    only binding conditions read it. substitutes: facts that stand for many pods with equal claims.
    served: by extended resource, the class that serves it. objects_changed: whether slices or
    classes have changed since the start, so that another process may have allocated from older or
    newer ones.
    """

    def __init__(self, facts: DevicesFacts | None = None, gates: DeviceGates = NO_GATES) -> None:
        facts = facts or DevicesFacts()
        self.gates = gates
        self.version = 0
        self.now_ms = 0
        self.claims: dict[str, DeviceClaimFacts] = {}
        self.substitutes = Substitutes(self.claims)
        # By UID of a pod: the keys of the claims that it owns or consumes.
        self._keys_of_pod: dict[str, set[str]] = {}
        self.classes: dict[str, DeviceClassFacts] = {}
        self.served: dict[str, str] = {}
        self.slices = {each.name: each for each in facts.slices}
        self._taint_rules = facts.taint_rules
        self._device_room: DeviceRoom | None = None
        self.allocator = Allocator(gates, compile_cel)
        self.set_classes(facts.classes)
        self.objects_changed = False
        for claim in facts.claims:
            self._put(claim.key, claim)

    def apply(
        self, claims: Sequence[DeviceClaimFacts], removed: Sequence[str] = ()
    ) -> tuple[tuple[DeviceClaimFacts, ...], tuple[str, ...]]:
        """Put claims in their new state, and remove others, by key; return the opposite change.

        Its two parts are arguments for `apply`: old states to put back, and keys of new claims to
        remove. It may be applied only to the resulting state.
        """
        if not (claims or removed):
            return (), ()
        known = self.claims
        before: list[DeviceClaimFacts] = []
        made: list[str] = []
        keys = [each.key for each in claims]
        for key in keys:
            old = known.get(key)
            if old is None:
                made.append(key)
            else:
                before.append(old)
        # Old states are read before anything changes, and removals come first: a new claim may
        # have the name of a removed one.
        if removed:
            before += [known[key] for key in removed if key in known]
            for key in removed:
                self._remove(key)
        for key, claim in zip(keys, claims, strict=True):
            self._put(key, claim)
        self.version += 1
        return tuple(before), tuple(made)

    def claims_of_pods(self, uids: Iterable[str]) -> list[DeviceClaimFacts]:
        """Return the claims that pods own or consume."""
        keys = dict.fromkeys(key for uid in uids for key in sorted(self._keys_of_pod.get(uid, ())))
        return [self.claims[key] for key in keys]

    def set_classes(self, classes: Iterable[DeviceClassFacts]) -> None:
        """Replace all classes."""
        self.classes = {each.name: each for each in classes}
        self.served = classes_by_resource(self.classes.values())
        self.allocator.set_classes(self.classes.values())
        self._refresh_slices()

    def put_slice(self, found: SliceFacts) -> None:
        """Add a slice, or replace the one of its name."""
        self.slices[found.name] = found
        self._refresh_slices()

    def remove_slice(self, name: str) -> None:
        """Remove a slice; an unknown one changes nothing."""
        self.slices.pop(name, None)
        self._refresh_slices()

    def are_free(self, claims: Iterable[DeviceClaimFacts]) -> bool:
        """Whether all devices of these allocations are free, and none is in two of them.

        Devices under admin access may be used by any number of claims. Shared counters and
        capacities must suffice for all these claims.
        """
        results = [
            result
            for claim in claims
            if claim.allocation is not None
            for result in claim.allocation.results
            if not result.has_admin_access
        ]
        wanted = [each.id for each in results if each.share_id is None]
        in_use = self.allocator.in_use
        if len(set(wanted)) != len(wanted) or any(each in in_use for each in wanted):
            return False
        if not (self.gates.partitionable or self.gates.consumable_capacity):
            return True
        # It compares the counters and capacities of all slices with what devices in use consume.
        if self._device_room is None:
            self._device_room = DeviceRoom(self.slices.values())
        return self._device_room.suffices(results, in_use)

    def _refresh_slices(self) -> None:
        """Give the allocator all slices, with the taints that rules add to their devices.

        As upstream, a slice is left out (None) if a selector of a rule for it does not compile.
        """
        self._device_room = None
        self.objects_changed = True
        slices: Iterable[SliceFacts | None] = self.slices.values()
        if self.gates.taints and self._taint_rules:
            selectors = self.allocator.selectors
            slices = [
                tainted(each, self._taint_rules, self.classes, selectors)
                for each in self.slices.values()
            ]
        self.allocator.pools.replace(each for each in slices if each is not None)
        self.version += 1

    def _put(self, key: str, claim: DeviceClaimFacts) -> None:
        """Store a claim, and count its devices in use."""
        before = self.claims.get(key)
        old = None if before is None else before.allocation
        if old is not None and claim.allocation is None:
            self.allocator.in_use.remove(old)
        # As upstream, another allocation in place of the old one does not change devices in use.
        if old is None and claim.allocation is not None:
            self.allocator.in_use.add(claim.allocation)
        # In most changes, the owner and the consumers stay.
        if before is None or not _have_same_pods(before, claim):
            self._index(key, before, claim)
        self.claims[key] = claim

    def _index(self, key: str, before: DeviceClaimFacts | None, claim: DeviceClaimFacts) -> None:
        """Add a claim to the index by the pods that own or consume it."""
        uids, indexed = pods_of(claim), set() if before is None else pods_of(before)
        if before is not None and not indexed <= uids:
            self._unindex(before)
            indexed = set()
        for uid in uids - indexed:
            self._keys_of_pod.setdefault(uid, set()).add(key)

    def _remove(self, key: str) -> None:
        claim = self.claims.pop(key, None)
        if claim is None:
            return
        self._unindex(claim)
        if claim.allocation is not None:
            self.allocator.in_use.remove(claim.allocation)

    def _unindex(self, claim: DeviceClaimFacts) -> None:
        for uid in pods_of(claim):
            keys = self._keys_of_pod[uid]
            keys.discard(claim.key)
            if not keys:
                del self._keys_of_pod[uid]

    def validate(self) -> None:
        """Assert that the devices in use are those of the claims' allocations."""
        counted = {
            result.id
            for claim in self.claims.values()
            if claim.allocation is not None
            for result in claim.allocation.results
            if not result.has_admin_access and result.share_id is None
        }
        in_use = self.allocator.in_use.ids()
        # Manifests may have two claims with one device. As upstream, the claim that is removed
        # first frees it.
        assert in_use <= counted, f"{sorted(in_use - counted)[:3]} are in use without a claim"
        for claim in self.claims.values():
            assert not claim.is_in_flight or claim.allocation is not None, (
                f"{claim.key} is in flight without an allocation"
            )


def _have_same_pods(one: DeviceClaimFacts, other: DeviceClaimFacts) -> bool:
    """Whether two states of a claim have one owner and one tuple of consumers, by identity."""
    return (
        one.reserved_for is other.reserved_for
        and one.owner_uid == other.owner_uid
        and one.owner_kind == other.owner_kind
    )


def pods_of(claim: DeviceClaimFacts) -> set[str]:
    """Return the UIDs of the pods that own or consume a claim."""
    uids = {each.uid for each in claim.reserved_for}
    return uids | {claim.owner_uid} if claim.owner_kind == "Pod" else uids


def released(
    devices: DeviceState, uids: Iterable[str]
) -> tuple[tuple[DeviceClaimFacts, ...], tuple[str, ...]]:
    """Return the claims of ended pods in their new state, and the keys of those to remove.

    A claim that was made for a pod is removed with it. Any other claim loses its allocation with
    its last consumer. Upstream: pkg/controller/resourceclaim (syncClaim), and the garbage
    collection of owners.
    """
    gone = frozenset(uids)
    changed, removed = [], []
    for claim in devices.claims_of_pods(gone):
        if claim.owner_kind == "Pod" and claim.owner_uid in gone:
            removed.append(claim.key)
        else:
            changed.append(deallocated(without_consumers(claim, gone)))
    return tuple(changed), tuple(removed)


def reserved(claim: DeviceClaimFacts, consumer: Consumer) -> DeviceClaimFacts:
    """Return an allocated claim after the bind of a pod that consumes it."""
    assert claim.allocation is not None, f"{claim.key} is not allocated"
    consumers, finalizers = claim.reserved_for, claim.finalizers
    if all(each.uid != consumer.uid for each in consumers):
        consumers = (*consumers, consumer)
    if FINALIZER not in finalizers:
        finalizers = (*finalizers, FINALIZER)
    return claim.with_use(claim.allocation, consumers, finalizers, is_in_flight=False)


def without_consumers(claim: DeviceClaimFacts, uids: frozenset[str]) -> DeviceClaimFacts:
    """Return a claim after pods that consumed it have ended."""
    left = tuple(each for each in claim.reserved_for if each.uid not in uids)
    return claim if len(left) == len(claim.reserved_for) else replace(claim, reserved_for=left)


def deallocated(claim: DeviceClaimFacts) -> DeviceClaimFacts:
    """Return a claim without its allocation if it has no consumer, as the claim controller does.

    A claim in flight keeps its allocation: a pod that is being bound will consume it.
    """
    if claim.allocation is None or claim.reserved_for or claim.is_in_flight:
        return claim
    finalizers = tuple(each for each in claim.finalizers if each != FINALIZER)
    return replace(claim, allocation=None, statuses=(), finalizers=finalizers)


def is_reachable(terms: NodeTerms | None, name: str, labels: Labels) -> bool:
    """Whether a node reaches all devices of an allocation with this node selector."""
    # Most devices are of one node.
    if terms is None or (name and terms == terms_of_node(name)):
        return True
    by_key = dict(labels)
    return any(term.matches(by_key, name) for term in terms)
