"""What CacheActor does of changes of the cluster: nodes that go, pods that change."""

from __future__ import annotations

from collections.abc import Sequence

from roadstead.actors.binder.recovery import identity_of
from roadstead.actors.messages import RunningPods, pod_batch
from roadstead.actors.messages.changes import OBSERVE, ClusterChanges, NodeNames
from roadstead.actors.names import QUEUE
from roadstead.actors.revisions import Revisions
from roadstead.actors.seam import NOTHING, Directory, Nothing, PatientRef
from roadstead.cache import CacheCore
from roadstead.facts.pod import unnominated
from roadstead.placements import Delta, DeltaKind
from roadstead.run import RunPlan


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
