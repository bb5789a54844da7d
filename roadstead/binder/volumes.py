"""The binder's check of claims and volumes.

The cache has chosen the bindings of a pod's claims, when it assumed the pod. They are sent with the
bind request (`AttemptBindings`), and committed here if the binder's own state of claims and volumes
still allows them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from roadstead.config.intree import DEVICE_CLAIMS_PLUGIN
from roadstead.devices.claims import reservation_error
from roadstead.devices.gates import DeviceGates
from roadstead.facts.devices import DeviceClaimFacts
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.framework.failures import error_of_point
from roadstead.framework.profile import Profile, binding_profiles
from roadstead.protocol.status import SUCCESS, Code, Status, unschedulable
from roadstead.storage import AssumedClaims, StorageChange
from roadstead.storage.claim_messages import AttemptBindings

_NO_VOLUMES = unschedulable("the volumes of its claims are in use")
_NO_DEVICES = unschedulable("the devices of its claims are in use")


class BinderVolumes:
    """Claims and volumes as committed. log: every change by a commit, in order.

    Changes are tried out or committed in batches, so that a failed batch can be undone. _binding:
    the profiles that bind claims. _undos: the inverse of each change since the batch began, in the
    order of the changes.
    """

    def __init__(self, profiles: Mapping[str, Profile]) -> None:
        self._binding = binding_profiles(profiles.values())
        self._undos: list[StorageChange] = []
        self._claims = AssumedClaims(next(iter(profiles.values())).storage)
        self._requested: dict[str, AttemptBindings] = {}
        self.log: list[StorageChange] = []
        self._batch_start = 0

    def begin(self, requested: Sequence[AttemptBindings]) -> None:
        """Begin a batch. requested: the bindings of its attempts."""
        self._requested = {each.token: each for each in requested}
        self._undos.clear()
        self._batch_start = len(self.log)

    def batch_changes(self) -> Sequence[StorageChange]:
        """Return the changes of commits since the batch began."""
        return self.log[self._batch_start :]

    def apply(self, changes: Sequence[StorageChange]) -> None:
        """Apply changes of earlier commits, from the journal."""
        self.log += changes
        for change in changes:
            self._claims.storage.apply(change)

    @property
    def gates(self) -> DeviceGates:
        """The feature gates of devices."""
        return self._claims.storage.devices.gates

    @property
    def device_claims(self) -> Mapping[str, DeviceClaimFacts]:
        """The claims of devices by key, in the order in which they were added."""
        return self._claims.storage.devices.claims

    def release(self, uids: Sequence[str]) -> None:
        """Free the claims of devices of pods that ended, as a batch of its own."""
        self.begin(())
        self.log += self._claims.release(uids)

    def deallocate(self, claims: Sequence[tuple[str, str]]) -> None:
        """Deallocate claims of devices, each for a pod, as a batch of its own."""
        self.begin(())
        self.log += self._claims.deallocate(claims)

    def try_out(self, token: str, pod: PodFacts, node: NodeFacts) -> Status:
        """Bind claims as `commit`, until `undo`; nothing is added to the log."""
        return self._bind(token, pod, node, [])

    def _bind(self, token: str, pod: PodFacts, node: NodeFacts, log: list[StorageChange]) -> Status:
        pod = self._binding.without_ignored_claims(pod)
        if not pod.may_bind_claims:
            return SUCCESS
        if problem := reservation_error(self.device_claims, pod):
            return error_of_point("PreBind", Status(Code.ERROR, (problem,), DEVICE_CLAIMS_PLUGIN))
        tried = self._claims.try_out(
            self._requested.get(token, AttemptBindings(token, ())), pod, node
        )
        if tried is None:
            return _NO_DEVICES if pod.device_claims else _NO_VOLUMES
        self._undos += reversed(tried.undos)
        log += tried.changes
        return SUCCESS

    def undo(self) -> None:
        """Undo everything that was tried out or committed since the batch began."""
        while self._undos:
            self._claims.storage.apply(self._undos.pop())
        del self.log[self._batch_start :]

    def commit(self, token: str, pod: PodFacts, node: NodeFacts) -> Status:
        """Bind a pod's claims together with the pod, all or none.

        Refused if a claim, volume or device was bound to something else meanwhile, or a claim would
        stay unbound. An error if the API server would refuse to write a claim.
        """
        return self._bind(token, pod, node, self.log)
