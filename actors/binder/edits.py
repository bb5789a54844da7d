"""Changes of the cluster at the binder: nodes and pods that go, pods that change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from roadstead.actors.binder.answers import page_of
from roadstead.actors.messages import PodBatch, pod_batch
from roadstead.actors.messages.changes import NodeNames
from roadstead.actors.messages.recovery import PodsGone, StandingPage
from roadstead.binder import BinderCore, Effect, PodState
from roadstead.facts.pod import identity_of, unnominated
from roadstead.revisions import Revisions


class BinderEdits:
    """Changes that are news to a binder's core. perform: makes effects durable, or raises."""

    def __init__(
        self,
        core: BinderCore,
        nodes_known: Revisions,
        pods_known: Revisions,
        perform: Callable[[Sequence[Effect]], None],
    ) -> None:
        self._core, self._perform = core, perform
        self._nodes_known, self._pods_known = nodes_known, pods_known

    def remove_nodes(self, gone: NodeNames) -> None:
        """Nodes disappear; their pods stay bound to them."""
        news = [name for name in gone.names if self._nodes_known.goes(name, gone.revision)]
        here = [name for name in news if name in self._core.placements.nodes]
        remove = self._core.remove_node
        self._perform([effect for name in here for effect in remove(name, gone.revision)])

    def update_pods(self, batch: PodBatch) -> StandingPage:
        """Pods are other than they were, bound or not; those that are gone stay so."""
        records = self._core.records(batch.uids)
        here = {each.uid for each in records}
        changed = [
            (uid, unnominated(facts))
            for uid, _, facts in batch.keyed()
            if uid in here and self._pods_known.comes(uid, batch.revision)
        ]
        self._perform(self._core.update_pods(changed, batch.revision))
        return page_of(records, len(records), batch.revision)

    def delete_pods(self, gone: PodsGone) -> PodBatch:
        """Pods are gone from the cluster, bound or not. Those that came again are left out."""
        known = [uid for uid in gone.uids if self._state(uid) is not PodState.UNKNOWN]
        news = [uid for uid in known if self._pods_known.goes(uid, gone.revision)]
        self._perform(self._core.delete(news, gone.revision))
        away = [uid for uid in known if self._state(uid) is PodState.DELETED]
        pods = ((uid, *self._core.pod(uid)) for uid in away)
        batch = pod_batch((identity_of(uid, key), facts) for uid, key, facts in pods)
        return replace(batch, revision=gone.revision)

    def _state(self, uid: str) -> PodState:
        return self._core.standing(uid)[0]
