"""Cache: a shell around CacheCore. Assumes, confirms, forgets, and streams deltas to workers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from roadstead.actors.messages import (
    APPLY,
    ActorStatus,
    AssumeBatch,
    Assumed,
    ClassColumn,
    DeltaBatch,
    NodeBatch,
    RosterAsk,
    RosterPage,
    RunningPods,
    Settle,
)
from roadstead.actors.names import worker_name
from roadstead.actors.seam import NOTHING, Directory, Nothing, Ref
from roadstead.cache import Assumption, CacheCore, Placement
from roadstead.facts.node import NodeFacts
from roadstead.nodes.sharding import Sharding
from roadstead.nodes.table import NodeTable
from roadstead.placements import Delta, DeltaKind, TableStore
from roadstead.protocol.errors import RoadsteadError
from roadstead.run import RunPlan

ROSTER_PAGE_NODES = 5000

_NODE_KINDS = (DeltaKind.ADD_NODE, DeltaKind.UPDATE_NODE)


class CacheActor:
    """The cluster as the schedulers see it: bound pods, and those about to be bound."""

    def __init__(self, plan: RunPlan, directory: Directory) -> None:
        self._plan = plan
        self._directory = directory
        store = TableStore()
        self.core = CacheCore(store)
        self._table = store.table
        self.sharding = Sharding(plan.settings.shards)
        self._workers: list[Ref] = []
        self._seqs = [0] * plan.settings.shards
        self._streams: set[asyncio.Task[None]] = set()
        self._lost = ""

    async def add_nodes(self, batch: NodeBatch) -> Nothing:
        """Nodes appear; the first batches decide how zones are dealt to workers."""
        if not self.core.placements.store.node_names():
            self.sharding.plan(batch.nodes)
        deltas = [delta for facts in batch.nodes for delta in self._add_node(facts)]
        await self._deliver(deltas)
        return NOTHING

    def _add_node(self, facts: NodeFacts) -> list[Delta]:
        self.sharding.place(facts)
        return self.core.add_node(facts)

    async def add_running(self, batch: RunningPods) -> Nothing:
        """Pods that run already."""
        placements = [
            Placement(identity.uid, identity.key, facts, node)
            for (identity, facts), node in zip(batch.pods.pods(), batch.nodes, strict=True)
        ]
        await self._deliver(self.core.confirm(placements))
        return NOTHING

    async def assume(self, batch: AssumeBatch) -> Assumed:
        """Counts pods on nodes ahead of their commits."""
        rows = zip(batch.pods.pods(), batch.nodes, batch.tokens, strict=True)
        assumptions = [
            Assumption(identity.uid, identity.key, facts, node, token)
            for (identity, facts), node, token in rows
        ]
        answer = self.core.assume(assumptions, time.monotonic())
        self._stream(answer.deltas)
        token_of = dict(zip(batch.pods.uids, batch.tokens, strict=True))
        return self._answer([(token_of[r.uid], r.status.message) for r in answer.refused])

    async def settle(self, batch: Settle) -> Assumed:
        """Ends assumptions: forgotten, or finished and confirmed."""
        now_s = time.monotonic()
        forgotten = self.core.forget(batch.forget)
        self.core.finish_binding(batch.finish, now_s)
        confirmed = self.core.confirm([self.core.placement_of(uid) for uid in batch.confirm])
        self._stream([*forgotten.deltas, *confirmed])
        return self._answer(())

    async def roster(self, ask: RosterAsk) -> RosterPage:
        """A page of the nodes in their order; nothing new where `known` is the present version."""
        version = self._table.node_version
        names = () if ask.known == version else self._table.tree.listed()
        page = names[ask.start : ask.start + ROSTER_PAGE_NODES]
        rows = self._table.rows_of(page)
        return RosterPage(
            version,
            len(names),
            page,
            self._table.arrivals[rows].tobytes(),
            tuple(self._table.facts(row) for row in rows.tolist()) if ask.whole else (),
            tuple(self._seqs),
        )

    def _answer(self, refused: Sequence[tuple[str, str]]) -> Assumed:
        return Assumed(tuple(refused), tuple(self._seqs))

    async def _deliver(self, deltas: Sequence[Delta]) -> None:
        """Streams deltas and waits until every worker has them."""
        self._stream(deltas)
        await asyncio.gather(*self._streams)

    def _stream(self, deltas: Sequence[Delta]) -> None:
        """Hands each worker the deltas of its rows, numbered, without waiting for it."""
        if self._lost:
            raise RoadsteadError(self._lost)
        parts: dict[int, list[Delta]] = {}
        for delta in deltas:
            parts.setdefault(self.sharding.shard_of(delta.node_name), []).append(delta)
            if delta.kind is DeltaKind.REMOVE_NODE:
                self.sharding.remove(delta.node_name)
        for shard, part in parts.items():
            batch = _packed(self._seqs[shard] + 1, part, self._table)
            self._seqs[shard] += len(part)
            task = asyncio.create_task(self._send(shard, batch))
            self._streams.add(task)
            task.add_done_callback(self._streams.discard)

    async def _send(self, shard: int, batch: DeltaBatch) -> None:
        try:
            worker = self._worker(shard)
            await worker.call(APPLY, batch, timeout_s=self._plan.settings.deadlines.call_s)
        except RoadsteadError as failure:
            self._lost = f"{worker_name(shard)} no longer takes changes: {failure}"

    def _worker(self, shard: int) -> Ref:
        while len(self._workers) <= shard:
            self._workers.append(self._directory.find(worker_name(len(self._workers))))
        return self._workers[shard]

    async def status(self, _: Nothing) -> ActorStatus:
        counts = self.core.counts()
        return ActorStatus(
            f"held {counts.nodes} nodes, {counts.assumed} assumed and {counts.added} confirmed "
            f"pods; had streamed {sum(self._seqs)} changes",
            error=self._lost,
        )


def _packed(first_seq: int, deltas: Sequence[Delta], table: NodeTable) -> DeltaBatch:
    """Deltas as they travel; `table` knows when each node came."""
    nodes = [d.node for d in deltas if d.kind in _NODE_KINDS and d.node is not None]
    classes = ClassColumn()
    pods = []
    for delta in deltas:
        if delta.pod is None or delta.kind in (*_NODE_KINDS, DeltaKind.REMOVE_NODE):
            pods.append(-1)
        else:
            classes.add(delta.pod)
            pods.append(classes.column[-1])
    return DeltaBatch(
        first_seq,
        kinds=tuple(str(delta.kind) for delta in deltas),
        names=tuple(delta.node_name for delta in deltas),
        pods=tuple(pods),
        classes=classes.table,
        nodes=tuple(nodes),
        arrivals=tuple(int(table.arrivals[table.row_of(facts.name)]) for facts in nodes),
    )
