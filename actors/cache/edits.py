"""Changes of the cluster at the cache: nodes and pods that go, pods that change."""

from __future__ import annotations

from roadstead.actors.binder.answers import identity_of
from roadstead.actors.cache.stream import ChangeStream
from roadstead.actors.messages import RunningPods, pod_batch
from roadstead.actors.messages.changes import OBSERVE, ClusterChanges, NodeNames
from roadstead.actors.messages.recovery import PodsGone
from roadstead.actors.names import QUEUE
from roadstead.actors.seam import Directory, PatientRef
from roadstead.cache import CacheCore
from roadstead.facts.pod import unnominated
from roadstead.placements import Delta, DeltaKind
from roadstead.revisions import Revisions


class CacheEdits:
    """Changes that are news to a cache's core, and to the followers of its stream."""

    def __init__(
        self,
        core: CacheCore,
        nodes_known: Revisions,
        pods_known: Revisions,
        stream: ChangeStream,
        directory: Directory,
        call_s: float,
    ) -> None:
        self._core, self._stream = core, stream
        self._nodes_known, self._pods_known = nodes_known, pods_known
        self._directory, self._call_s = directory, call_s

    async def update_running(self, batch: RunningPods) -> None:
        """Pods change on their nodes. One that was evicted meanwhile does not come again."""
        deltas: list[Delta] = []
        for (uid, _, facts), node_name in zip(batch.pods.keyed(), batch.nodes, strict=True):
            is_there = self._core.node_of(uid) == node_name
            if is_there and self._pods_known.comes(uid, batch.pods.revision):
                deltas += self._core.update_pod(uid, unnominated(facts), node_name)
        await self._stream.deliver(deltas)

    async def remove_nodes(self, gone: NodeNames) -> None:
        """Nodes disappear; what their pods kept from others, they do so no more."""
        news = [name for name in gone.names if self._nodes_known.goes(name, gone.revision)]
        here = [name for name in news if name in self._core.placements.nodes]
        deltas = [delta for name in here for delta in self._core.remove_node(name)]
        await self._stream.deliver(deltas)
        aside = [
            (identity_of(each.uid, self._core.key_of(each.uid)), each.pod)
            for each in deltas
            if each.kind is DeltaKind.REMOVE_POD and each.pod is not None
        ]
        if aside:
            changes = ClusterChanges(gone=pod_batch(aside))
            queue = PatientRef(self._directory.find(QUEUE))
            await queue.call(OBSERVE, changes, timeout_s=self._call_s)

    def remove_pods(self, pods: PodsGone) -> None:
        """Pods are gone; those that are counted, or nominated, are so no more."""
        uids = self._pods_known.leaves(pods.uids, pods.revision)
        here = [uid for uid in uids if self._core.node_of(uid) is not None]
        self._stream.send([*self._core.remove_pods(here), *self._core.withdraw(uids)])
