"""AssumedClaims: the claims that assumed pods have bound, until a pod is committed or forgotten.

    FREE ── assume (first pod) ──> OPEN ── confirm (any holder) ──> BOUND
      ^                            │  ↺ assume, forget (others hold it)
      └── forget (last holder) ────┘

A claim is bound when the first pod that needs it is assumed. Until a pod with it is committed, the
assumed pods that use it are its holders. The binding is undone when the last holder is forgotten,
and becomes permanent when any holder is committed.

Claims of devices have states of their own (`roadstead.devices.assumed`): from its allocation until
the pod is bound, a claim is in flight, and no other pod may use it. Both kinds of a pod's claims
are assumed, or none.

Upstream: plugins/volumebinding/{binder,assume_cache}.go (AssumePodVolumes,
RevertAssumedPodVolumes, BindPodVolumes).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from roadstead.devices.assumed import AssumedDevices
from roadstead.devices.state import deallocated, released, without_consumers
from roadstead.facts.devices import DeviceClaimFacts
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.protocol.fast_init import fast_init
from roadstead.storage.binding import (
    Binding,
    bindings_on,
    is_volume_bound_to_claim,
    provisioned,
    reaches,
)
from roadstead.storage.claim_messages import AttemptBindings
from roadstead.storage.claims import ClaimError, claim_keys, claims_of
from roadstead.storage.state import StorageChange, StorageState


@fast_init
@dataclass(frozen=True, slots=True)
class Reserved:
    """The result of assuming a pod.

    bindings: of all its volume claims that are not committed. changes: to the storage state for
    this pod, in order. device_claims: the claims of devices that are in flight for it: allocated,
    while the pod is assumed and not bound.
    """

    bindings: tuple[Binding, ...] = ()
    changes: tuple[StorageChange, ...] = ()
    device_claims: tuple[DeviceClaimFacts, ...] = ()


@fast_init
@dataclass(frozen=True, slots=True)
class TriedOut:
    """Changes that were applied, in order, and those that undo them, in reverse order."""

    changes: tuple[StorageChange, ...]
    undos: tuple[StorageChange, ...]


_NOTHING_TRIED = TriedOut((), ())


@dataclass(slots=True)
class _OpenBinding:
    """A binding that is not committed.

    undo: the change that undoes it. holders: UIDs of the assumed pods that use its claim.
    """

    binding: Binding
    undo: StorageChange
    holders: set[str] = field(default_factory=set)


class AssumedClaims:
    """Claims of assumed pods, over one storage state of which it is the only writer.

    _open: bindings by key of the claim. _keys_of_holder: UID → keys of its claims in `_open`.
    """

    def __init__(self, storage: StorageState) -> None:
        self.storage = storage
        self._devices = AssumedDevices(storage.devices)
        self._open: dict[str, _OpenBinding] = {}
        self._keys_of_holder: dict[str, list[str]] = {}

    def assume(self, uid: str, pod: PodFacts, node: NodeFacts) -> Reserved | None:
        """Bind a pod's claims on a node; return None and change nothing if that is not possible.

        Idempotent.
        """
        in_flight_before = self._devices.in_flight(uid)
        in_flight = self._devices.assume(uid, pod, node)
        if in_flight is None:
            return None
        reserved = self._assume_volumes(uid, pod, node)
        if reserved is None:
            self._devices.forget(uid)
            return None
        if not in_flight:
            return reserved
        changes = reserved.changes
        if in_flight != in_flight_before:
            changes = (*changes, StorageChange(device_claims=in_flight))
        return Reserved(reserved.bindings, changes, in_flight)

    def _assume_volumes(self, uid: str, pod: PodFacts, node: NodeFacts) -> Reserved | None:
        keys = claim_keys(pod)
        if not keys:
            return Reserved()
        try:
            new_bindings = bindings_on(self.storage, pod, node)
        except ClaimError:
            new_bindings = None
        if new_bindings is None:
            return None
        for binding in new_bindings:
            undo = self.storage.apply(binding.change)
            self._open[binding.claim.key] = _OpenBinding(binding, undo)
        # Also claims that another pod has bound, and that are not committed yet.
        held_keys = [key for key in dict.fromkeys(keys) if key in self._open]
        if held_keys:
            self._keys_of_holder[uid] = held_keys
        for key in held_keys:
            self._open[key].holders.add(uid)
        return Reserved(
            tuple(self._open[key].binding for key in held_keys),
            tuple(binding.change for binding in new_bindings),
        )

    def forget(self, uid: str) -> tuple[StorageChange, ...]:
        """Undo the bindings of which a pod was the only holder; return the changes."""
        # Claims whose allocation is undone; keys of claims that were created for the pod.
        freed, removed = self._devices.forget(uid)
        undone = []
        if freed or removed:
            undone.append(StorageChange(device_claims=freed, removed_claims=removed))
        for key in self._keys_of_holder.pop(uid, ()):
            open_binding = self._open.get(key)
            if open_binding is None:
                # Another holder was committed.
                continue
            open_binding.holders.discard(uid)
            if not open_binding.holders:
                del self._open[key]
                self.storage.apply(open_binding.undo)
                undone.append(open_binding.undo)
        return tuple(undone)

    def confirm(self, uid: str) -> tuple[StorageChange, ...]:
        """Make the bindings of a committed pod permanent, also if they have other holders.

        Return the changes: the pod becomes a consumer of its claims of devices.
        """
        for key in self._keys_of_holder.pop(uid, ()):
            self._open.pop(key, None)
        consumed = self._devices.confirm(uid)
        return (StorageChange(device_claims=consumed),) if consumed else ()

    def release(self, uids: Sequence[str]) -> tuple[StorageChange, ...]:
        """Free the claims of devices of pods that ended; return the changes."""
        changes = []
        for freed, removed in map(self._devices.forget, uids):
            if freed or removed:
                changes.append(StorageChange(device_claims=freed, removed_claims=removed))
        changed, removed = released(self.storage.devices, uids)
        if changed or removed:
            changes.append(StorageChange(device_claims=changed, removed_claims=removed))
            self.storage.apply(changes[-1])
        return tuple(changes)

    def deallocate(self, claims: Iterable[tuple[str, str]]) -> tuple[StorageChange, ...]:
        """Deallocate claims of devices, so that a pod can get other devices; return the changes.

        claims: (key of a claim, UID of the pod). A claim that another pod reserves, or that is in
        flight, keeps its allocation. A claim that an earlier attempt created for the pod is
        deleted.
        """
        changed, removed = [], []
        for key, uid in claims:
            claim = self.storage.devices.claims.get(key)
            if claim is not None and claim.is_for_extended_resources and claim.owner_uid == uid:
                removed += [] if claim.is_in_flight else [key]
            elif claim is not None and claim.allocation is not None and not claim.is_in_flight:
                free = deallocated(without_consumers(claim, frozenset({uid})))
                changed += [free] if free.allocation is None else []
        if not (changed or removed):
            return ()
        change = StorageChange(device_claims=tuple(changed), removed_claims=tuple(removed))
        self.storage.apply(change)
        return (change,)

    def holders(self) -> tuple[str, ...]:
        """Return the UIDs of the pods that hold claims."""
        return tuple(dict.fromkeys((*self._keys_of_holder, *self._devices.holders())))

    def keys_of(self, uid: str) -> tuple[str, ...]:
        """Return the claims (`namespace/name`) that a pod holds."""
        return (*self._keys_of_holder.get(uid, ()), *self._devices.keys_of(uid))

    def try_out(self, received: AttemptBindings, pod: PodFacts, node: NodeFacts) -> TriedOut | None:
        """Apply a pod's bindings that another process found; the caller may undo them.

        Returns None and changes nothing if a claim or a volume is not free, the node does not reach
        a volume, or a claim of the pod would remain unbound. Bindings that already exist are
        skipped.
        """
        tried_devices = self._devices.try_out(received.device_claims, pod, node)
        if tried_devices is None:
            return None
        # The claims' former state and the keys of created ones; the claims' new state.
        (old_claims, created), new_claims = tried_devices
        undo = StorageChange(device_claims=old_claims, removed_claims=created)
        change = StorageChange(device_claims=new_claims)
        has_volumes = bool(pod.volumes or received.bindings)
        tried = self._try_volumes(received.bindings, pod, node) if has_volumes else _NOTHING_TRIED
        if tried is None:
            self.storage.apply(undo)
            return None
        if not new_claims:
            return tried
        return TriedOut((*tried.changes, change), (*tried.undos, undo))

    def _try_volumes(
        self, bindings: tuple[Binding, ...], pod: PodFacts, node: NodeFacts
    ) -> TriedOut | None:
        new_bindings = [
            each for each in bindings if self.storage.claims.get(each.claim.key) != each.claim
        ]
        new_keys = {each.claim.key for each in new_bindings}
        try:
            waiting_keys = {claim.key for claim in claims_of(self.storage, pod).waiting}
        except ClaimError:
            return None
        if waiting_keys != new_keys or not all(self._is_free(each, node) for each in new_bindings):
            return None
        undos = tuple(self.storage.apply(each.change) for each in new_bindings)[::-1]
        return TriedOut(tuple(each.change for each in new_bindings), undos)

    def _is_free(self, binding: Binding, node: NodeFacts) -> bool:
        claim = self.storage.claims.get(binding.claim.key)
        if claim is None or claim.volume_name:
            return False
        if not reaches(binding.volume.node_terms, dict(node.labels)):
            return False
        volume = self.storage.volumes.get(binding.volume.name)
        # Bindings are received from another process, which also creates volumes: a new one must be
        # exactly what the class would create.
        if volume is None:
            return provisioned(self.storage, claim, node) == replace(
                binding.volume, claim=None, phase=""
            )
        return volume.claim is None or is_volume_bound_to_claim(volume, claim)

    def validate(self) -> None:
        """Assert that every open claim is bound and has a holder."""
        self.storage.validate()
        self._devices.validate()
        for key, each in self._open.items():
            assert each.holders, f"{key} has no holder"
            assert self.storage.claims[key] == each.binding.claim, f"{key} is not as it was bound"
            assert all(key in self._keys_of_holder[uid] for uid in each.holders), (
                f"{key} is not among the claims of a holder"
            )
