"""Volumes of pods on their way, between cache, schedulers, workers and binder.

The cache binds a pod's claims when it assumes the pod, since it sees all schedulers. The changes go
to every worker in its stream of deltas, and back to the scheduler with the answer, numbered from
0; the bindings themselves go with the pod to the binder, which checks them against its own state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from roadstead.actors.messages import BoundVolumes, StorageNews
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts
from roadstead.framework.profile import Profile
from roadstead.protocol.status import SUCCESS, Status, unschedulable
from roadstead.run import RunPlan
from roadstead.storage import Binding, StorageChange, StorageState, VolumeLedger

_TAKEN = unschedulable("the volumes of its claims are taken")


class CacheVolumes:
    """The cache's part. `log`: every change so far, in order."""

    def __init__(self, plan: RunPlan) -> None:
        self.log: list[StorageChange] = []
        self.ledger = VolumeLedger(StorageState(plan.cluster.storage))
        self._binding = {
            profile.scheduler_name
            for profile in plan.config().profiles
            if any(ref.name == "VolumeBinding" for ref in profile.at("reserve"))
        }

    def assume(self, uid: str, pod: PodFacts, node: NodeFacts | None) -> tuple[Binding, ...] | None:
        """The bindings of a pod that is assumed on a node; None where there are none to be had."""
        if not pod.volumes or pod.scheduler_name not in self._binding or node is None:
            return ()
        reserved = self.ledger.assume(uid, pod, node)
        if reserved is None:
            return None
        self.log += reserved.changes
        return reserved.bindings

    def forget(self, uids: Sequence[str]) -> None:
        """Pods are not placed after all."""
        for uid in uids:
            self.log += self.ledger.forget(uid)

    def take(self, changes: Sequence[StorageChange]) -> None:
        """What commits changed before this cache began."""
        self.log += changes
        for change in changes:
            self.ledger.storage.apply(change)

    def news(self, known: int) -> StorageNews:
        """What changed after the first `known` changes."""
        return StorageNews(known, tuple(self.log[known:]))


class SchedulerVolumes:
    """A scheduler's part: the storage state of its profiles, and the bindings of its attempts.

    News waits until `catch_up`: in the middle of a batch it would not fit what was asked.
    """

    def __init__(self, storage: StorageState) -> None:
        self._storage = storage
        self._waiting: list[StorageChange] = []
        self.known = 0
        self._bindings: dict[str, tuple[Binding, ...]] = {}

    def take(self, news: StorageNews, bound: Sequence[BoundVolumes] = ()) -> None:
        """Takes what the cache answered; news that came before is skipped."""
        self._waiting += news.changes[max(0, self.known - news.start) :]
        self.known = max(self.known, news.start + len(news.changes))
        self._bindings |= {each.token: each.bindings for each in bound}

    def catch_up(self) -> None:
        """Makes the changes that were taken."""
        for change in self._waiting:
            self._storage.apply(change)
        self._waiting.clear()

    def of(self, tokens: Sequence[str]) -> tuple[BoundVolumes, ...]:
        """The bindings that go to the binder with these attempts."""
        return tuple(
            BoundVolumes(token, self._bindings[token])
            for token in tokens
            if token in self._bindings
        )

    def drop(self, tokens: Sequence[str]) -> None:
        """Attempts that have ended."""
        for token in tokens:
            self._bindings.pop(token, None)


class BinderVolumes:
    """The binder's part: what is bound for good. log: every change that commits made, in order."""

    def __init__(self, profiles: Mapping[str, Profile]) -> None:
        self._profiles = profiles
        self._undos: list[StorageChange] = []
        self._ledger = VolumeLedger(next(iter(profiles.values())).storage)
        self._asked: dict[str, tuple[Binding, ...]] = {}
        self.log: list[StorageChange] = []
        self._known = 0

    def begin(self, asked: Sequence[BoundVolumes]) -> None:
        """A batch comes: the bindings of its attempts."""
        self._asked = {each.token: each.bindings for each in asked}
        self._undos.clear()
        self._known = len(self.log)

    def news(self) -> Sequence[StorageChange]:
        """What commits changed since the batch began."""
        return self.log[self._known :]

    def take(self, changes: Sequence[StorageChange]) -> None:
        """Changes of earlier commits, as the journal has them."""
        self.log += changes
        for change in changes:
            self._ledger.storage.apply(change)

    def try_out(self, token: str, pod: PodFacts, node: NodeFacts) -> Status:
        """As `commit`, until `undo`; nothing enters the log."""
        if not self._profiles[pod.scheduler_name].binds_volumes:
            return SUCCESS
        undos = self._ledger.try_out(self._asked.get(token, ()), pod, node)
        if undos is None:
            return _TAKEN
        self._undos += reversed(undos)
        return SUCCESS

    def undo(self) -> None:
        """All that was tried out or committed since the batch began is as before."""
        while self._undos:
            self._ledger.storage.apply(self._undos.pop())
        del self.log[self._known :]

    def commit(self, token: str, pod: PodFacts, node: NodeFacts) -> Status:
        """Binds a pod's claims together with the pod, all or none.

        Refused where a claim or a volume is taken meanwhile, or a claim would stay unbound.
        """
        asked = self._asked.get(token, ())
        claims = self._ledger.storage.claims
        new = [each.change for each in asked if claims.get(each.claim.key) != each.claim]
        status = self.try_out(token, pod, node)
        if status.is_success and self._profiles[pod.scheduler_name].binds_volumes:
            self.log += new
        return status
