"""Changes of a cluster in the middle of a run: nodes and pods that go, pods that change.

The binder hears of them first, then the cache (and so all that hold nodes), then the queue, whose
waiting pods they may help. What comes, comes by the messages with which a run begins; pods that
change while they wait come to the queue as submitted ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from roadstead.actors.binder_recovery import identity_of, page_of
from roadstead.actors.cluster_events import OBSERVE, ClusterChanges
from roadstead.actors.messages import PodBatch, RunningPods, pod_batch
from roadstead.actors.names import QUEUE
from roadstead.actors.recovery import PodsGone, StandingPage
from roadstead.actors.revisions import Revisions
from roadstead.actors.seam import NOTHING, Directory, Nothing, PatientRef, clock_s, method
from roadstead.binder import BinderCore, Effect, PodState
from roadstead.cache import CacheCore
from roadstead.facts.pod import unnominated
from roadstead.placements import Delta, DeltaKind
from roadstead.run import RunPlan


@dataclass(frozen=True, slots=True)
class NodeNames:
    """Client → binder and cache: these nodes are gone. Coming twice, it changes nothing more."""

    names: tuple[str, ...]
    revision: int = 0


REMOVE_NODES = method("remove_nodes", NodeNames, Nothing)
UPDATE_PODS = method("update_pods", PodBatch, StandingPage)
"""Client → binder: pods are other than they were; the answer is those that are here, as they are
now, with their nodes, "" for those that wait. Coming twice, or late, it changes nothing more."""
UPDATE_RUNNING = method("update_running", RunningPods, Nothing)
"""Client → cache: pods are other than they were, on their nodes; those not counted stay so."""
DELETE_PODS = method("delete_pods", PodsGone, PodBatch)
"""Client → binder: these pods are gone; the answer is those that were there, or went before."""
LEAVE = method("leave", PodBatch, Nothing)
"""Client → queue: these pods are gone, wherever they were; what they held may help others."""


class BinderEdits:
    """What BinderActor does of it."""

    core: BinderCore
    _nodes_known: Revisions
    _pods_known: Revisions

    def _perform_durably(self, effects: Sequence[Effect]) -> None:
        raise AssertionError("of the actor")

    async def remove_nodes(self, gone: NodeNames) -> Nothing:
        """Nodes disappear; their pods stay bound to them."""
        news = [name for name in gone.names if self._nodes_known.goes(name, gone.revision)]
        here = [name for name in news if name in self.core.placements.nodes]
        remove = self.core.remove_node
        self._perform_durably([effect for name in here for effect in remove(name, gone.revision)])
        return NOTHING

    async def update_pods(self, batch: PodBatch) -> StandingPage:
        """Pods are other than they were, bound or not; those that are gone stay so."""
        known = {each.uid for each in self.core.records(batch.uids)}
        here = [(uid, facts) for uid, _, facts in batch.keyed() if uid in known]
        news = [each for each in here if self._pods_known.comes(each[0], batch.revision)]
        changed = [(uid, unnominated(facts)) for uid, facts in news]
        self._perform_durably(self.core.update_pods(changed, batch.revision))
        records = self.core.records(batch.uids)
        return page_of(records, len(records), batch.revision)

    async def delete_pods(self, gone: PodsGone) -> PodBatch:
        """Pods are gone from the cluster, bound or not. Those that came again are left out."""
        known = [uid for uid in gone.uids if self._state(uid) is not PodState.UNKNOWN]
        news = [uid for uid in known if self._pods_known.goes(uid, gone.revision)]
        self._perform_durably(self.core.delete(news, gone.revision))
        away = [uid for uid in known if self._state(uid) is PodState.DELETED]
        pods = ((uid, *self.core.pod(uid)) for uid in away)
        batch = pod_batch((identity_of(uid, key), facts) for uid, key, facts in pods)
        return replace(batch, revision=gone.revision)

    def _state(self, uid: str) -> PodState:
        return self.core.standing(uid)[0]


class CacheEdits:
    """What CacheActor does of it."""

    core: CacheCore
    _directory: Directory
    _plan: RunPlan
    _nodes_known: Revisions
    _pods_known: Revisions

    async def _deliver(self, deltas: Sequence[Delta]) -> None:
        raise AssertionError("of the actor")

    async def update_running(self, batch: RunningPods) -> Nothing:
        """Pods change on their nodes. One that was evicted meanwhile does not come again."""
        deltas: list[Delta] = []
        for (uid, _, facts), node_name in zip(batch.pods.keyed(), batch.nodes, strict=True):
            is_there = self.core.node_of(uid) == node_name
            if is_there and self._pods_known.comes(uid, batch.pods.revision):
                deltas += self.core.update_pod(uid, unnominated(facts), node_name)
        await self._deliver(deltas)
        return NOTHING

    async def remove_nodes(self, gone: NodeNames) -> Nothing:
        """Nodes disappear; what their pods kept from others, they do so no more."""
        news = [name for name in gone.names if self._nodes_known.goes(name, gone.revision)]
        here = [name for name in news if name in self.core.placements.nodes]
        deltas = [delta for name in here for delta in self.core.remove_node(name)]
        await self._deliver(deltas)
        aside = [
            (identity_of(each.uid, self.core.key_of(each.uid)), each.pod)
            for each in deltas
            if each.kind is DeltaKind.REMOVE_POD and each.pod is not None
        ]
        if aside:
            queue = PatientRef(self._directory.find(QUEUE))
            changes = ClusterChanges(gone=pod_batch(aside))
            await queue.call(OBSERVE, changes, timeout_s=self._plan.settings.deadlines.call_s)
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
