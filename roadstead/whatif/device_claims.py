"""Claims of devices of the pods in a sandbox: for copies, and for pods that are restored.

A copy of a pod gets its own claims where the pod's were made from templates, as the claim
controller would make them. A removed pod loses its claims; with the pod they are restored.

Upstream: pkg/controller/resourceclaim/controller.go (handleClaim).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from roadstead.binder.binder import Binder
from roadstead.devices.state import DeviceState, pods_of
from roadstead.facts.devices import ClaimSpec, DeviceClaimFacts
from roadstead.facts.pod import PodClaim, PodFacts, PodIdentity, PodReference
from roadstead.local.run import LocalRun
from roadstead.storage.state import StorageChange


class SandboxClaims:
    """The claims of the pods of one run. Its binder must be a `Binder` without a journal.

    `of_copy` makes the claims of a copy, `add_new` adds them when the copy is submitted. `save`
    stores the claims of a pod before it is removed, `restore` adds them again.

    _specs: claim (`namespace/name`) → its spec. _new: claims of copies that are not submitted yet.
    _saved: UID of a removed pod → its claims when it was removed.
    """

    def __init__(self, run: LocalRun, claims: Iterable[DeviceClaimFacts]) -> None:
        assert isinstance(run.binder, Binder), "the binder has the claims, too"
        self._run, self._binder = run, run.binder
        self._specs: dict[str, ClaimSpec] = {each.key: each.spec for each in claims}
        self._new: list[DeviceClaimFacts] = []
        self._saved: dict[str, tuple[DeviceClaimFacts, ...]] = {}

    @property
    def _devices(self) -> DeviceState:
        return self._run.state.volumes.assumed_claims.storage.devices

    def of_copy(self, identity: PodIdentity, facts: PodFacts) -> PodFacts:
        """Return the facts of a copy, with claims of its own in place of those from templates."""
        # claims_as: the pod as owner and consumer of its claims.
        if facts.claims_as is None:
            return facts
        claims = tuple(self._own_claim(identity, each) for each in facts.device_claims)
        consumer = PodReference(identity.uid, identity.name)
        return replace(facts, device_claims=claims, claims_as=consumer)

    def _own_claim(self, identity: PodIdentity, claim: PodClaim) -> PodClaim:
        spec = self._specs.get(f"{identity.namespace}/{claim.generated}")
        if claim.template_name is None or not claim.generated or spec is None:
            return claim
        own = DeviceClaimFacts(
            identity.namespace,
            f"{identity.name}-{claim.name}",
            uid=f"{identity.uid}/{claim.name}",
            spec=spec,
            owner_uid=identity.uid,
            owner_kind="Pod",
        )
        self._new.append(own)
        return replace(claim, generated=own.name)

    def add_new(self) -> None:
        """Add the new claims of copies that are about to be submitted."""
        claims, self._new = self._new, []
        self._add(claims)

    def current(self) -> Mapping[str, DeviceClaimFacts]:
        """Return all claims in their current state, by `namespace/name`."""
        return dict(self._devices.claims)

    def save(self, uids: Iterable[str]) -> None:
        """Save the state of the claims of pods that are about to be removed."""
        devices = self._devices
        for uid in uids if devices.claims else ():
            if claims := devices.claims_of_pods([uid]):
                self._saved[uid] = tuple(claims)

    def save_evicted(self, uids: Sequence[str], before: Mapping[str, DeviceClaimFacts]) -> None:
        """Save the claims of pods that were preempted. before: all claims before the preemption."""
        evicted = set(uids)
        for claim in before.values() if evicted else ():
            for uid in evicted & pods_of(claim):
                self._saved[uid] = (*self._saved.get(uid, ()), claim)

    def restore(self, old_uid: str, identity: PodIdentity, facts: PodFacts) -> PodFacts:
        """Restore the claims of a removed pod that has another UID now; return its facts."""
        claims = [self._restored(each, old_uid, identity) for each in self._saved.pop(old_uid, ())]
        self._add(claims)
        if facts.claims_as is None:
            return facts
        return replace(facts, claims_as=PodReference(identity.uid, identity.name))

    def _restored(
        self, saved: DeviceClaimFacts, old_uid: str, identity: PodIdentity
    ) -> DeviceClaimFacts:
        consumers = [each for each in saved.reserved_for if each.uid == old_uid]
        renamed = tuple(replace(each, uid=identity.uid) for each in consumers)
        owner_uid = identity.uid if saved.owner_uid == old_uid else saved.owner_uid
        current = self._devices.claims.get(saved.key)
        if current is None:
            return replace(saved, reserved_for=renamed, owner_uid=owner_uid)
        # Other pods consume the claim, too, so it was not removed with this pod. It may have lost
        # its allocation meanwhile, with the finalizer that an allocated claim has.
        allocation = saved.allocation if current.allocation is None else current.allocation
        consuming = (*current.reserved_for, *renamed)
        return replace(
            current, allocation=allocation, reserved_for=consuming, finalizers=saved.finalizers
        )

    def _add(self, claims: Sequence[DeviceClaimFacts]) -> None:
        if claims:
            self._binder.volumes.apply([StorageChange(device_claims=tuple(claims))])
            self._run.add_device_claims(claims)
            self._specs.update((each.key, each.spec) for each in claims)
