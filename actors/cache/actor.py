"""Cache: a shell around CacheCore. Assumes, confirms, forgets, and streams what changes."""

from __future__ import annotations

from collections.abc import Sequence

from roadstead.actors.cache.attempts import AttemptEnds
from roadstead.actors.cache.edits import CacheEdits
from roadstead.actors.cache.encoding import ChangeEncoder
from roadstead.actors.cache.recovery import CacheRecovery
from roadstead.actors.cache.stream import ChangeStream
from roadstead.actors.cache.volumes import CacheVolumes
from roadstead.actors.messages import (
    ActorStatus,
    AssumeBatch,
    NodeBatch,
    Nominations,
    RunningPods,
    Settle,
    pod_batch,
)
from roadstead.actors.messages.changes import NodeNames
from roadstead.actors.messages.recovery import (
    Differences,
    Nominated,
    Owner,
    OwnerEnds,
    PodsGone,
    Restream,
    Revised,
    StorageLog,
    Uids,
)
from roadstead.actors.seam import NOTHING, Directory, Nothing, clock_s
from roadstead.cache import Assumption, CacheCore, CacheSettings, Placement, PodState
from roadstead.cache.answers import Assumed
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodIdentity, unnominated
from roadstead.nodes.partitioning import partitioning_over
from roadstead.placements import Delta, TableStore
from roadstead.revisions import Revisions
from roadstead.run import RunPlan
from roadstead.storage.news import BoundVolumes

_NO_VOLUMES = "the volumes of its claims are taken"


class CacheActor:
    """The cluster as the schedulers see it: bound pods, and those about to be bound.

    Changes are numbered, and go to all followers: schedulers and workers. is_new: it takes the
    place of another one. Followers are new, too, and get all at once when it has all (`restream`):
    until then changes are only numbered.
    """

    def __init__(self, plan: RunPlan, directory: Directory, *, is_new: bool = False) -> None:
        self._plan = plan
        store = TableStore()
        call_s, minds_s = plan.settings.deadlines.call_s, plan.settings.deadlines.assume_s
        self.core = CacheCore(store, CacheSettings(bind_s=minds_s))
        self.partitioning = partitioning_over(plan.settings.part_count)
        self._volumes = CacheVolumes(plan)
        self._encoder = ChangeEncoder(self.core, store.table, self._volumes, self.partitioning)
        self.stream = ChangeStream(plan, directory, self._encoder, is_new=is_new)
        self._nodes_known, self._pods_known = Revisions(), Revisions()
        self._edits = CacheEdits(
            *(self.core, self._nodes_known, self._pods_known, self.stream, directory, call_s)
        )
        self.attempts = AttemptEnds(
            *(self.core, self._volumes, self.stream, self._pods_known, directory, call_s)
        )
        self.recovery = CacheRecovery(self.core, self.attempts, directory, call_s)

    async def add_nodes(self, batch: NodeBatch) -> Nothing:
        """Nodes appear; the first batches decide how zones are dealt to partitions."""
        news = batch.news(self._nodes_known)
        is_first = not self.core.placements.store.node_names()
        if self.core.add_nodes(news):
            self.stream.send_nodes(news)
            await self.stream.deliver(())
        else:
            if is_first:
                self.partitioning.plan(news)
            await self.stream.deliver([delta for facts in news for delta in self._add_node(facts)])
        return NOTHING

    def _add_node(self, facts: NodeFacts) -> list[Delta]:
        self.partitioning.place(facts)
        return self.core.add_node(facts)

    async def add_running(self, batch: RunningPods) -> Nothing:
        """Pods that run already."""
        placements = [
            Placement(identity.uid, identity.key, unnominated(facts), node)
            for (identity, facts), node in zip(batch.pods.pods(), batch.nodes, strict=True)
            if self._pods_known.comes(identity.uid, batch.pods.revision)
        ]
        self._encoder.started_s |= batch.pods.starts()
        await self.stream.deliver(self.core.confirm(placements))
        return NOTHING

    async def update_running(self, batch: RunningPods) -> Nothing:
        """Pods change on their nodes. One that was evicted meanwhile does not come again."""
        await self._edits.update_running(batch)
        return NOTHING

    async def remove_nodes(self, gone: NodeNames) -> Nothing:
        """Nodes disappear; what their pods kept from others, they do so no more."""
        await self._edits.remove_nodes(gone)
        return NOTHING

    async def assume(self, batch: AssumeBatch) -> Assumed:
        """Counts pods on nodes ahead of their commits."""
        self.recovery.mind()
        rows = zip(batch.pods.keyed(), batch.nodes, batch.tokens, strict=True)
        assumptions = [Assumption(*pod, node, token) for pod, node, token in rows]
        answer = self.core.assume(assumptions, clock_s())
        self.stream.send(answer.deltas)
        token_of = dict(zip(batch.pods.uids, batch.tokens, strict=True)) if answer.refused else {}
        refused = [(token_of[r.uid], r.status.message) for r in answer.refused]
        not_taken = {token for token, _ in refused}
        taken = [e for e in assumptions if e.facts.volumes and e.token not in not_taken]
        bound, without = self._take_volumes(taken)
        self.attempts.forget([(each.uid, each.token) for each in without])
        # Told before, and deleted meanwhile: nobody will ask to forget it.
        self.attempts.free(
            [each.uid for each in answer.refused if self.core.node_of(each.uid) is None]
        )
        refused += [(each.token, _NO_VOLUMES) for each in without]
        return self._answer(refused, batch.known_changes, bound)

    def _take_volumes(
        self, taken: Sequence[Assumption]
    ) -> tuple[list[BoundVolumes], list[Assumption]]:
        """Binds claims of assumed pods; (what each is bound to, pods whose claims cannot be)."""
        bound, without = [], []
        known = len(self._volumes.log)
        for each in taken:
            node = self.core.placements.nodes.get(each.node_name)
            bindings = self._volumes.assume(each.uid, each.facts, node)
            if bindings is None:
                without.append(each)
            elif bindings:
                bound.append(BoundVolumes(each.token, bindings))
        self.stream.send_storage(self._volumes.log[known:])
        return bound, without

    async def settle(self, batch: Settle) -> Assumed:
        """Ends assumptions: forgotten, or finished and confirmed."""
        now_s = clock_s()
        late = self.attempts.deleted(uid for uid, _ in batch.forget)
        self.attempts.forget(batch.forget)
        self.core.finish_binding(batch.finish, now_s)
        # One that was evicted meanwhile is counted no more, and stays so.
        self.core.confirm_assumed(batch.confirm)
        for uid in batch.confirm:
            self._volumes.ledger.confirm(uid)
        # Of a node that is away nothing is noted: it must be news when that is there again.
        self.stream.send_versions([e for e in batch.rows if e[0] in self.core.placements.nodes])
        await self.attempts.report_room(late)
        return self._answer((), batch.known_changes)

    async def nominate(self, batch: Nominations) -> Assumed:
        """Pods are gone, and others are nominated to their nodes, or to none any more."""
        here = [uid for uid in batch.gone if self.core.state_of(uid) is not PodState.INITIAL]
        deltas = self.core.remove_pods(here)
        rows = zip(batch.pods.pods(), batch.nodes, batch.preempts, strict=True)
        for (identity, facts), node, preempts in rows:
            if self._pods_known.is_gone(identity.uid):
                continue
            deltas += self.core.nominate(identity.uid, node, facts, preempts=preempts)
        self.stream.send(deltas)
        return self._answer((), batch.known_changes)

    def _answer(
        self,
        refused: Sequence[tuple[str, str]],
        known_changes: int,
        bound: Sequence[BoundVolumes] = (),
    ) -> Assumed:
        news = self._volumes.news(known_changes)
        return Assumed(tuple(refused), self.stream.seq, tuple(bound), news)

    async def gone(self, pods: PodsGone) -> Nothing:
        """Pods are gone; those that are counted, or nominated, are so no more."""
        self._edits.remove_pods(pods)
        return NOTHING

    async def take_storage(self, message: StorageLog) -> Nothing:
        """What commits changed of claims, for a cache that begins, and for its followers."""
        if not self._volumes.log:
            self._volumes.take(message.changes)
            self.stream.send_storage(message.changes)
        return NOTHING

    async def take_revisions(self, known: Revised) -> Nothing:
        """What of nodes and pods is older than this, is no news."""
        self._nodes_known.learn(known.nodes)
        self._pods_known.learn(known.pods)
        return NOTHING

    async def restream(self, ask: Restream) -> Nothing:
        """All that the cluster holds, for a new follower; later changes come behind it."""
        await self.stream.fill(ask)
        return NOTHING

    async def nominated(self, _: Uids) -> Nominated:
        """Who is nominated, as far as schedulers are told."""
        found = self.core.placements.nominated
        pods = [(PodIdentity(uid, pod.namespace, uid), pod) for uid, (_, pod) in found.items()]
        return Nominated(pod_batch(pods), tuple(node for node, _ in found.values()))

    async def assumed_by(self, owner: Owner) -> Uids:
        """Pods that earlier lives of a scheduler assume."""
        return Uids(tuple(uid for uid, _ in self.attempts.of_earlier_lives(owner)))

    async def owner_ends(self, end: OwnerEnds) -> Nothing:
        """A scheduler's earlier lives are over: what is bound is confirmed, the rest forgotten."""
        await self.recovery.owner_ends(end)
        return NOTHING

    async def compare(self, _: Nothing) -> Differences:
        """Differences from a cache made anew of what this one knows."""
        return Differences(tuple(self.recovery.compare()))

    def crashed(self) -> None:
        """Nothing goes on."""
        self.stream.crashed()
        self.recovery.crashed()

    async def status(self, _: Nothing) -> ActorStatus:
        counts = self.core.counts()
        return ActorStatus(
            f"held {counts.nodes} nodes, {counts.assumed} assumed and {counts.added} confirmed "
            f"pods; had streamed {self.stream.seq} changes",
            error=self.stream.lost,
        )
