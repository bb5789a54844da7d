"""Claims of devices of the pods in a sandbox: for copies, and for pods that are put back.

A copy of a pod gets its own claims where the pod's were made from templates, as the claim
controller would make them. A removed pod loses its claims; if it is put back, so are they.

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
    """The claims of the pods of one run. Its binder must be a `Binder` without a journal."""

    def __init__(self, run: LocalRun, claims: Iterable[DeviceClaimFacts]) -> None:
        assert isinstance(run.binder, Binder), "the binder has the claims, too"
        self._run, self._binder = run, run.binder
        self._specs: dict[str, ClaimSpec] = {each.key: each.spec for each in claims}
        self._made: list[DeviceClaimFacts] = []
        self._kept: dict[str, tuple[DeviceClaimFacts, ...]] = {}

    @property
    def _devices(self) -> DeviceState:
        return self._run.state.volumes.assumed_claims.storage.devices

    def of_copy(self, identity: PodIdentity, facts: PodFacts) -> PodFacts:
        """Return the facts of a copy, with claims of its own in place of those from templates."""
        if facts.claims_as is None:
            return facts
        claims = tuple(self._own(identity, each) for each in facts.device_claims)
        consumer = PodReference(identity.uid, identity.name)
        return replace(facts, device_claims=claims, claims_as=consumer)

    def _own(self, identity: PodIdentity, claim: PodClaim) -> PodClaim:
        spec = self._specs.get(f"{identity.namespace}/{claim.generated}")
        if claim.template_name is None or not claim.generated or spec is None:
            return claim
        made = DeviceClaimFacts(
            identity.namespace,
            f"{identity.name}-{claim.name}",
            uid=f"{identity.uid}/{claim.name}",
            spec=spec,
            owner_uid=identity.uid,
            owner_kind="Pod",
        )
        self._made.append(made)
        return replace(claim, generated=made.name)

    def add_made(self) -> None:
        """Add the claims that were made for copies, which are about to be submitted."""
        made, self._made = self._made, []
        self._add(made)

    def as_they_are(self) -> Mapping[str, DeviceClaimFacts]:
        """Return all claims in their current state, by `namespace/name`."""
        return dict(self._devices.claims)

    def keep(self, uids: Iterable[str]) -> None:
        """Keep the state of the claims of pods that are about to be removed."""
        devices = self._devices
        for uid in uids if devices.claims else ():
            if found := devices.claims_of_pods([uid]):
                self._kept[uid] = tuple(found)

    def keep_of_evicted(self, uids: Sequence[str], before: Mapping[str, DeviceClaimFacts]) -> None:
        """Keep the claims of pods that were preempted. before: all claims before that."""
        evicted = set(uids)
        for claim in before.values() if evicted else ():
            for uid in evicted & pods_of(claim):
                self._kept[uid] = (*self._kept.get(uid, ()), claim)

    def put_back(self, old_uid: str, identity: PodIdentity, facts: PodFacts) -> PodFacts:
        """Restore the claims of a removed pod that has another UID now; return its facts."""
        again = [self._restored(each, old_uid, identity) for each in self._kept.pop(old_uid, ())]
        self._add(again)
        if facts.claims_as is None:
            return facts
        return replace(facts, claims_as=PodReference(identity.uid, identity.name))

    def _restored(
        self, kept: DeviceClaimFacts, old_uid: str, identity: PodIdentity
    ) -> DeviceClaimFacts:
        consumers = [each for each in kept.reserved_for if each.uid == old_uid]
        renamed = tuple(replace(each, uid=identity.uid) for each in consumers)
        owner_uid = identity.uid if kept.owner_uid == old_uid else kept.owner_uid
        now = self._devices.claims.get(kept.key)
        if now is None:
            return replace(kept, reserved_for=renamed, owner_uid=owner_uid)
        # Other pods consume the claim, too.
        allocation = kept.allocation if now.allocation is None else now.allocation
        consuming = (*now.reserved_for, *renamed)
        return replace(
            now, allocation=allocation, reserved_for=consuming, finalizers=kept.finalizers
        )

    def _add(self, claims: Sequence[DeviceClaimFacts]) -> None:
        if claims:
            self._binder.volumes.apply([StorageChange(device_claims=tuple(claims))])
            self._run.add_device_claims(claims)
            self._specs.update((each.key, each.spec) for each in claims)
