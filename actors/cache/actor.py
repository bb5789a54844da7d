"""Cache: a shell around CacheCore. Assumes, confirms, forgets, and streams what changes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from roadstead.actors.cache.edits import CacheEdits
from roadstead.actors.cache.recovery import CacheRecovery, storage_batch
from roadstead.actors.cache.row_versions import KnownVersions, RowVersion, version_batch
from roadstead.actors.cache.volumes import CacheVolumes
from roadstead.actors.messages import (
    APPLY,
    ActorStatus,
    AssumeBatch,
    Assumed,
    BoundVolumes,
    ClassColumn,
    DeltaBatch,
    NodeBatch,
    Nominations,
    RunningPods,
    Settle,
    nodes_batch,
)
from roadstead.actors.messages.changes import NodeNames
from roadstead.actors.names import QUEUE, WORKER, follower_names
from roadstead.actors.revisions import Revisions
from roadstead.actors.seam import NOTHING, Directory, Nothing, PatientRef, Ref, clock_s
from roadstead.cache import Assumption, CacheCore, CacheSettings, Placement, PodState
from roadstead.facts.node import NodeFacts
from roadstead.facts.node_list import NodeList
from roadstead.facts.pod import unnominated
from roadstead.nodes.partitioning import partitioning_over
from roadstead.placements import Delta, DeltaKind, TableStore
from roadstead.protocol.errors import RoadsteadError
from roadstead.run import RunPlan
from roadstead.storage import StorageChange

_NO_VOLUMES = "the volumes of its claims are taken"
_NODE_KINDS = (DeltaKind.ADD_NODE, DeltaKind.UPDATE_NODE)


class CacheActor(CacheRecovery):
    """The cluster as the schedulers see it: bound pods, and those about to be bound.

    Changes are numbered, and go to all followers: schedulers and workers. is_new: it takes the
    place of another one. Followers are new, too, and get all at once when it has all (`restream`):
    until then changes are only numbered.
    """

    def __init__(self, plan: RunPlan, directory: Directory, *, is_new: bool = False) -> None:
        self._plan = plan
        self._directory = directory
        store = TableStore()
        minds_s = plan.settings.deadlines.assume_s
        self.core = CacheCore(store, CacheSettings(bind_s=minds_s))
        self._table = store.table
        self._followers = follower_names(plan.settings)
        self._refs: dict[str, Ref] = {}
        self.partitioning = partitioning_over(plan.settings.part_count)
        self._seq = 0
        self._unfilled = {*self._followers} if is_new else set()
        self._streams: set[asyncio.Task[None]] = set()
        self._to_workers: set[asyncio.Task[None]] = set()
        self._lost = ""
        self._started_s: dict[str, float] = {}
        self._volumes = CacheVolumes(plan)
        self._nodes_known, self._pods_known = Revisions(), Revisions()
        self._versions = KnownVersions()
        self._edits = CacheEdits(
            *(self.core, self._nodes_known, self._pods_known),
            deliver=self._deliver,
            queue=lambda: PatientRef(directory.find(QUEUE)),
            call_s=plan.settings.deadlines.call_s,
        )

    async def add_nodes(self, batch: NodeBatch) -> Nothing:
        """Nodes appear; the first batches decide how zones are dealt to partitions."""
        news = batch.news(self._nodes_known)
        is_first = not self.core.placements.store.node_names()
        if self.core.add_nodes(news):
            self._stream_nodes(news)
            await self._deliver(())
        else:
            if is_first:
                self.partitioning.plan(news)
            await self._deliver([delta for facts in news for delta in self._add_node(facts)])
        return NOTHING

    def _stream_nodes(self, nodes: NodeList) -> None:
        """Streams nodes that have just come."""
        arrivals = self._table.arrivals[-len(nodes) :]
        self.partitioning.deal(nodes)
        self._start_sending(
            nodes_batch(self._seq + 1, nodes, arrivals, self._parts_of(nodes.names))
        )

    def _parts_of(self, node_names: Sequence[str]) -> tuple[int, ...]:
        """The partition of each node; () where the nodes are not partitioned."""
        if self._plan.settings.part_count == 1:
            return ()
        return tuple(map(self.partitioning.partition_of, node_names))

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
        self._started_s |= batch.pods.starts()
        await self._deliver(self.core.confirm(placements))
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
        self.mind()
        rows = zip(batch.pods.keyed(), batch.nodes, batch.tokens, strict=True)
        assumptions = [Assumption(*pod, node, token) for pod, node, token in rows]
        answer = self.core.assume(assumptions, clock_s())
        self._stream(answer.deltas)
        token_of = dict(zip(batch.pods.uids, batch.tokens, strict=True)) if answer.refused else {}
        refused = [(token_of[r.uid], r.status.message) for r in answer.refused]
        not_taken = {token for token, _ in refused}
        taken = [e for e in assumptions if e.facts.volumes and e.token not in not_taken]
        bound, without = self._take_volumes(taken)
        self._forget([(each.uid, each.token) for each in without])
        # Told before, and deleted meanwhile: nobody will ask to forget it.
        self._free([each.uid for each in answer.refused if self.core.node_of(each.uid) is None])
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
        self._stream_changes(self._volumes.log[known:])
        return bound, without

    def _forget(self, attempts: Sequence[tuple[str, str]]) -> None:
        """Ends assumptions, and what they alone held of volumes."""
        answer = self.core.forget(attempts)
        self._stream(answer.deltas)
        # One that was deleted while it was assumed is not there, and its claims are free again.
        kept = {each.uid for each in answer.refused if self.core.node_of(each.uid) is not None}
        self._free([uid for uid, _ in attempts if uid not in kept])

    def _free(self, uids: Sequence[str]) -> None:
        """What attempts that have ended alone held of volumes is free again."""
        known = len(self._volumes.log)
        self._volumes.forget(uids)
        self._stream_changes(self._volumes.log[known:])

    async def settle(self, batch: Settle) -> Assumed:
        """Ends assumptions: forgotten, or finished and confirmed."""
        now_s = clock_s()
        late = self._held_late(uid for uid, _ in batch.forget)
        self._forget(batch.forget)
        self.core.finish_binding(batch.finish, now_s)
        # One that was evicted meanwhile is counted no more, and stays so.
        self.core.confirm_assumed(batch.confirm)
        for uid in batch.confirm:
            self._volumes.ledger.confirm(uid)
        self._stream_versions(batch.rows)
        await self._tell_of_room(late)
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
        self._stream(deltas)
        return self._answer((), batch.known_changes)

    def _answer(
        self,
        refused: Sequence[tuple[str, str]],
        known_changes: int,
        bound: Sequence[BoundVolumes] = (),
    ) -> Assumed:
        news = self._volumes.news(known_changes)
        return Assumed(tuple(refused), self._seq, tuple(bound), news)

    async def _deliver(self, deltas: Sequence[Delta]) -> None:
        """Streams deltas and waits until every scheduler has them."""
        self._stream(deltas)
        await asyncio.gather(*self._streams)

    def _stream(self, deltas: Sequence[Delta]) -> None:
        """Sends deltas, numbered, without waiting for the replies."""
        if self._lost:
            raise RoadsteadError(self._lost)
        if not deltas:
            return
        for delta in deltas:
            if delta.kind is DeltaKind.REMOVE_NODE:
                self.partitioning.remove(delta.node_name)
                self._versions.drop(delta.node_name)
        self._start_sending(self._packed(self._seq + 1, deltas))

    def _stream_changes(self, changes: Sequence[StorageChange]) -> None:
        """Streams changes of claims and volumes."""
        if changes:
            self._start_sending(storage_batch(self._seq + 1, changes))

    def _stream_versions(self, told: Sequence[RowVersion]) -> None:
        """Streams new versions of rows, behind the changes that these count."""
        # Of a node that is away nothing is noted: it must be news when that is there again.
        here = [each for each in told if each[0] in self.core.placements.nodes]
        news = self._versions.take(here)
        if news:
            self._start_sending(version_batch(self._seq + 1, news))

    def _start_sending(self, batch: DeltaBatch) -> None:
        self._seq += batch.count
        for name in self._followers:
            if name not in self._unfilled:
                # Nobody waits for workers: decisions do not rest on them.
                streams = self._to_workers if name.startswith(WORKER) else self._streams
                task = asyncio.create_task(self._send(name, batch))
                streams.add(task)
                task.add_done_callback(streams.discard)

    async def _send(self, name: str, batch: DeltaBatch) -> None:
        try:
            follower = self._follower(name)
            await follower.call(APPLY, batch, timeout_s=self._plan.settings.deadlines.call_s)
        except RoadsteadError as failure:
            if name.startswith(WORKER):
                # It stays behind until another life of it gets all at once.
                self._unfilled.add(name)
                return
            self._lost = f"{name} no longer takes changes: {failure}"

    def _follower(self, name: str) -> Ref:
        if name not in self._refs:
            self._refs[name] = PatientRef(self._directory.find(name))
        return self._refs[name]

    def _packed(self, first_seq: int, deltas: Sequence[Delta]) -> DeltaBatch:
        """Deltas as they travel, with when each node came and who each pod is."""
        nodes = [d.node for d in deltas if d.kind in _NODE_KINDS and d.node is not None]
        arrival = self._table.arrivals
        classes, places = ClassColumn(), {id(None): -1}
        for known, facts in {id(delta.pod): delta.pod for delta in deltas}.items():
            if facts is not None:
                classes.add(facts)
                places[known] = classes.column[-1]
        return DeltaBatch(
            first_seq,
            kinds=tuple(str(delta.kind) for delta in deltas),
            names=tuple(delta.node_name for delta in deltas),
            pods=tuple([places[id(delta.pod)] for delta in deltas]),
            classes=classes.table,
            nodes=tuple(nodes),
            arrivals=tuple(int(arrival[self._table.row_of(facts.name)]) for facts in nodes),
            uids=tuple(delta.uid for delta in deltas),
            partitions=self._parts_of([facts.name for facts in nodes]),
            keys=self._keys_of(deltas),
            started_s=tuple(
                (place, self._started_s[delta.uid])
                for place, delta in enumerate(deltas)
                if delta.kind is DeltaKind.ADD_POD and delta.uid in self._started_s
            ),
        )

    def _keys_of(self, deltas: Sequence[Delta]) -> tuple[str, ...]:
        """The names of pods that come, where their UIDs do not tell them."""
        coming, key_of = DeltaKind.ADD_POD, self.core.key_of
        keys = [key_of(each.uid) if each.kind is coming else "" for each in deltas]
        return tuple([k if k != d.uid else "" for k, d in zip(keys, deltas, strict=True)])

    async def status(self, _: Nothing) -> ActorStatus:
        counts = self.core.counts()
        return ActorStatus(
            f"held {counts.nodes} nodes, {counts.assumed} assumed and {counts.added} confirmed "
            f"pods; had streamed {self._seq} changes",
            error=self._lost,
        )
