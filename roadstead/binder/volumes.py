"""The binder's check of claims and volumes; `roadstead/cache/volumes.py` explains the protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.framework.profile import Profile
from roadstead.protocol.status import SUCCESS, Status, unschedulable
from roadstead.storage import AssumedClaims, Binding, StorageChange
from roadstead.storage.news import BoundVolumes

_TAKEN = unschedulable("the volumes of its claims are in use")


class BinderVolumes:
    """Claims and volumes as committed. log: every change by a commit, in order."""

    def __init__(self, profiles: Mapping[str, Profile]) -> None:
        self._profiles = profiles
        self._undos: list[StorageChange] = []
        self._claims = AssumedClaims(next(iter(profiles.values())).storage)
        self._asked: dict[str, tuple[Binding, ...]] = {}
        self.log: list[StorageChange] = []
        self._known = 0

    def begin(self, asked: Sequence[BoundVolumes]) -> None:
        """Begin a batch. asked: the bindings of its attempts."""
        self._asked = {each.token: each.bindings for each in asked}
        self._undos.clear()
        self._known = len(self.log)

    def news(self) -> Sequence[StorageChange]:
        """Return the changes of commits since the batch began."""
        return self.log[self._known :]

    def apply(self, changes: Sequence[StorageChange]) -> None:
        """Apply changes of earlier commits, from the journal."""
        self.log += changes
        for change in changes:
            self._claims.storage.apply(change)

    def try_out(self, token: str, pod: PodFacts, node: NodeFacts) -> Status:
        """Bind claims as `commit`, until `undo`; nothing is added to the log."""
        if not self._profiles[pod.scheduler_name].binds_volumes:
            return SUCCESS
        undos = self._claims.try_out(self._asked.get(token, ()), pod, node)
        if undos is None:
            return _TAKEN
        self._undos += reversed(undos)
        return SUCCESS

    def undo(self) -> None:
        """Undo everything that was tried out or committed since the batch began."""
        while self._undos:
            self._claims.storage.apply(self._undos.pop())
        del self.log[self._known :]

    def commit(self, token: str, pod: PodFacts, node: NodeFacts) -> Status:
        """Bind a pod's claims together with the pod, all or none.

        Refused if a claim or volume was bound otherwise meanwhile, or a claim would stay unbound.
        """
        asked = self._asked.get(token, ())
        claims = self._claims.storage.claims
        new = [each.change for each in asked if claims.get(each.claim.key) != each.claim]
        status = self.try_out(token, pod, node)
        if status.is_success and self._profiles[pod.scheduler_name].binds_volumes:
            self.log += new
        return status
