"""AssumedClaims: the claims that assumed pods have bound, until a pod is committed or forgotten.

    FREE ── assume (first pod) ──> OPEN ── confirm (any holder) ──> BOUND
      ^                            │  ↺ assume, forget (others hold it)
      └── forget (last holder) ────┘

A claim is bound when the first pod that needs it is assumed. Until a pod with it is committed, the
assumed pods that use it are its holders. The binding is undone when the last holder is forgotten,
and becomes permanent when any holder is committed.

Upstream: plugins/volumebinding/{binder,assume_cache}.go (AssumePodVolumes,
RevertAssumedPodVolumes, BindPodVolumes).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.storage.binding import Binding, bindings_on, is_claims, provisioned, reaches
from roadstead.storage.claims import ClaimError, claim_keys, claims_of
from roadstead.storage.state import StorageChange, StorageState


@dataclass(frozen=True, slots=True)
class Reserved:
    """The result of assuming a pod.

    bindings: of all its claims that are not committed. changes: those that this pod made, in order.
    """

    bindings: tuple[Binding, ...] = ()
    changes: tuple[StorageChange, ...] = ()


@dataclass(slots=True)
class _OpenBinding:
    binding: Binding
    undo: StorageChange
    holders: set[str] = field(default_factory=set)


class AssumedClaims:
    """Claims of assumed pods, over one storage state of which it is the only writer."""

    def __init__(self, storage: StorageState) -> None:
        self.storage = storage
        self._open: dict[str, _OpenBinding] = {}
        self._keys_of_holder: dict[str, list[str]] = {}

    def assume(self, uid: str, pod: PodFacts, node: NodeFacts) -> Reserved | None:
        """Bind a pod's claims on a node; return None and change nothing if that is not possible.

        Idempotent.
        """
        keys = claim_keys(pod)
        if not keys:
            return Reserved()
        try:
            found = bindings_on(self.storage, pod, node)
        except ClaimError:
            found = None
        if found is None:
            return None
        for binding in found:
            undo = self.storage.apply(binding.change)
            self._open[binding.claim.key] = _OpenBinding(binding, undo)
        reserved = [key for key in dict.fromkeys(keys) if key in self._open]
        if reserved:
            self._keys_of_holder[uid] = reserved
        for key in reserved:
            self._open[key].holders.add(uid)
        return Reserved(
            tuple(self._open[key].binding for key in reserved),
            tuple(binding.change for binding in found),
        )

    def forget(self, uid: str) -> tuple[StorageChange, ...]:
        """Undo the bindings of which a pod was the only holder; return the changes."""
        undone = []
        for key in self._keys_of_holder.pop(uid, ()):
            each = self._open.get(key)
            if each is None:
                continue
            each.holders.discard(uid)
            if not each.holders:
                del self._open[key]
                self.storage.apply(each.undo)
                undone.append(each.undo)
        return tuple(undone)

    def confirm(self, uid: str) -> None:
        """Make the bindings of a committed pod permanent, whatever their other holders."""
        for key in self._keys_of_holder.pop(uid, ()):
            self._open.pop(key, None)

    def holders(self) -> tuple[str, ...]:
        """Return the UIDs of the pods that hold claims."""
        return tuple(self._keys_of_holder)

    def keys_of(self, uid: str) -> tuple[str, ...]:
        """Return the claims (`namespace/name`) that a pod holds."""
        return tuple(self._keys_of_holder.get(uid, ()))

    def try_out(
        self, bindings: tuple[Binding, ...], pod: PodFacts, node: NodeFacts
    ) -> tuple[StorageChange, ...] | None:
        """Apply a pod's bindings that another process found; return the changes that undo them.

        The last change is first. Returns None and changes nothing if a claim or a volume is not
        free, the node does not reach a volume, or a claim of the pod would remain unbound. Bindings
        that already exist are skipped.
        """
        new = [each for each in bindings if self.storage.claims.get(each.claim.key) != each.claim]
        bound = {each.claim.key for each in new}
        try:
            waiting = {claim.key for claim in claims_of(self.storage, pod).waiting}
        except ClaimError:
            return None
        if waiting != bound or not all(self._is_free(each, node) for each in new):
            return None
        return tuple(self.storage.apply(each.change) for each in new)[::-1]

    def _is_free(self, binding: Binding, node: NodeFacts) -> bool:
        claim = self.storage.claims.get(binding.claim.key)
        if claim is None or claim.volume_name:
            return False
        if not reaches(binding.volume.node_terms, dict(node.labels)):
            return False
        volume = self.storage.volumes.get(binding.volume.name)
        # A new volume must be exactly what the class would create (decision 12).
        if volume is None:
            return provisioned(self.storage, claim, node) == replace(
                binding.volume, claim=None, phase=""
            )
        return volume.claim is None or is_claims(volume, claim)

    def validate(self) -> None:
        """Assert that every open claim is bound and has a holder."""
        self.storage.validate()
        for key, each in self._open.items():
            assert each.holders, f"nobody holds {key}"
            assert self.storage.claims[key] == each.binding.claim, f"{key} is not as it was bound"
            assert all(key in self._keys_of_holder[uid] for uid in each.holders), (
                f"{key} is held unknown"
            )
