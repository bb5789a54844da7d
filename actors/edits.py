"""Changes of a cluster in the middle of a run: nodes and pods that go.

The binder hears of them first, then the cache (and so the workers), then the queue, whose waiting
pods they may help. What comes, comes by the messages with which a run begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from roadstead.actors.binder_recovery import identity_of
from roadstead.actors.messages import PodBatch, pod_batch
from roadstead.actors.recovery import Uids
from roadstead.actors.seam import NOTHING, Nothing, clock_s, method
from roadstead.binder import BinderCore, Effect, PodState
from roadstead.cache import CacheCore
from roadstead.placements import Delta


@dataclass(frozen=True, slots=True)
class NodeNames:
    """Client → binder and cache: these nodes are gone. Coming twice, it changes nothing more."""

    names: tuple[str, ...]


REMOVE_NODES = method("remove_nodes", NodeNames, Nothing)
DELETE_PODS = method("delete_pods", Uids, PodBatch)
"""Client → binder: these pods are gone; the answer is those that were there, or went before."""
LEAVE = method("leave", PodBatch, Nothing)
"""Client → queue: these pods are gone, wherever they were; what they held may help others."""


class BinderEdits:
    """What BinderActor does of it."""

    core: BinderCore

    def _perform(self, effects: Sequence[Effect]) -> object:
        raise AssertionError("of the actor")

    async def remove_nodes(self, gone: NodeNames) -> Nothing:
        """Nodes disappear; their pods stay bound to them."""
        here = [name for name in gone.names if name in self.core.placements.nodes]
        self._perform([effect for name in here for effect in self.core.remove_node(name)])
        return NOTHING

    async def delete_pods(self, gone: Uids) -> PodBatch:
        """Pods are gone from the cluster, bound or not."""
        known = [uid for uid in gone.uids if self._state(uid) is not PodState.UNKNOWN]
        self._perform(self.core.delete(known))
        pods = ((uid, *self.core.pod(uid)) for uid in known)
        return pod_batch((identity_of(uid, key), facts) for uid, key, facts in pods)

    def _state(self, uid: str) -> PodState:
        return self.core.standing(uid)[0]


class CacheEdits:
    """What CacheActor does of it."""

    core: CacheCore

    async def _deliver(self, deltas: Sequence[Delta]) -> None:
        raise AssertionError("of the actor")

    async def remove_nodes(self, gone: NodeNames) -> Nothing:
        """Nodes disappear."""
        here = [name for name in gone.names if name in self.core.placements.nodes]
        await self._deliver([delta for name in here for delta in self.core.remove_node(name)])
        return NOTHING


class QueueEdits:
    """What QueueActor does of it."""

    def _leave(self, gone: PodBatch, now_s: float) -> None:
        raise AssertionError("of the actor")

    def _wake(self) -> None:
        raise AssertionError("of the actor")

    async def leave(self, gone: PodBatch) -> Nothing:
        """Pods are gone."""
        self._leave(gone, clock_s())
        self._wake()
        return NOTHING
