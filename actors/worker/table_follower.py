"""TableFollower: a node table that follows the cache's numbered stream of changes.

    cache ── DeltaBatch ──► in order? ── yes ──► table, `applied`
                               └── no ──► waits for the changes before it

Schedulers and workers each have one. A new incarnation waits for `restore`, the whole cluster
state; a worker that missed a change starts from it again. The fields of a batch are explained at
`DeltaBatch`; the arrival number of a node is its place in the order in which the cache received
the nodes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np

from roadstead.actors.interface import NOTHING, ActorError, DeadlineError, Nothing
from roadstead.actors.messages import (
    CHANGES_APPLIED,
    STORAGE,
    VERSION,
    ChangesApplied,
    DeltaBatch,
    PackedChanges,
)
from roadstead.actors.messages.recovery import Restore
from roadstead.facts.node import NodeFacts
from roadstead.facts.wire import decode_facts
from roadstead.nodes.changed_nodes import ChangedNodes
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import NodeTable
from roadstead.placements import DeltaKind
from roadstead.storage import StorageChange

MAX_WAITING_BATCHES = 10_000
"""Batches of changes that may wait for an earlier one."""


class TableFollower:
    """A node table and `applied`, the number of the last change in it.

    call_s: how long to wait for changes. is_new: it replaces another follower, and first waits for
    the whole cluster state, with -1 as `applied`. is_paused: changes wait. touched: names of
    changed nodes by number of the change. _parts: received parts of the cluster state, by number of
    its change and of the part. _waiting_batches: by number of their first change.
    """

    def __init__(
        self, name: str, table: NodeTable, call_s: float, *, is_new: bool = False, epoch: int = 1
    ) -> None:
        self._name = name
        self._epoch = epoch
        self._call_s = call_s
        self.table = table
        self.is_paused = False
        self.applied = -1 if is_new else 0
        self._parts: dict[tuple[int, int], Restore] = {}
        self._waiting_batches: dict[int, DeltaBatch] = {}
        self._advanced = asyncio.Condition()
        self.touched = ChangedNodes()

    async def apply(self, changes: PackedChanges) -> ChangesApplied:
        """Apply changes of the cache, except those sent to an earlier incarnation.

        An earlier cache may have sent these, and numbered other changes with the same numbers.
        """
        if not 0 < changes.epoch < self._epoch:
            await self.receive(changes.unpacked())
        return CHANGES_APPLIED

    async def receive(self, batch: DeltaBatch) -> None:
        """Apply changes in order; early ones wait for those before them."""
        if len(self._waiting_batches) >= MAX_WAITING_BATCHES:
            raise ActorError(f"{self._name}: delta {self.applied + 1} never came")
        self._waiting_batches[batch.first_seq] = batch
        await self._advance()

    async def _advance(self) -> None:
        """Apply waiting batches up to the first missing change; wake those who wait for them."""
        while (
            self.applied >= 0
            and not self.is_paused
            and (next_batch := self._next_batch()) is not None
        ):
            self._apply(next_batch)
        async with self._advanced:
            self._advanced.notify_all()

    def _next_batch(self) -> DeltaBatch | None:
        """Remove and return a waiting batch that has the next change, or only earlier ones."""
        if self.is_paused:
            return None
        for first in sorted(self._waiting_batches):
            if first <= self.applied + 1:
                return self._waiting_batches.pop(first)
        return None

    def _apply(self, batch: DeltaBatch) -> None:
        # Changes that are applied already are skipped.
        last_seq = batch.first_seq + batch.count - 1
        if last_seq <= self.applied:
            # A duplicate: `touched` has later changes already, and must stay in order.
            return
        # Claims and volumes belong to no single node: perhaps all rows are affected.
        self.touched.note(last_seq, None if STORAGE in batch.kinds else batch.names)
        self._add_new_nodes(batch)
        first_seq = batch.first_seq + len(batch.new_nodes)
        nodes = zip(batch.nodes, batch.arrivals, strict=True)
        changes, versions = iter(batch.changes), iter(batch.versions)
        pod_classes = [self.table.classes.pod_class(decode_facts(data)) for data in batch.classes]
        # A batch of added pods only, as after an assumption, is applied in one pass.
        if not batch.started_s and batch.kinds.count(DeltaKind.ADD_POD) == len(batch.kinds):
            self._add_pods_only(batch, pod_classes, max(0, self.applied + 1 - first_seq))
            self.applied = max(self.applied, first_seq + len(batch.kinds) - 1)
            return
        rows = zip(batch.kinds, batch.names, batch.pods, strict=True)
        started_s = dict(batch.started_s)
        for index, (kind, name, pod) in enumerate(rows):
            seq = first_seq + index
            with_node = kind in (DeltaKind.ADD_NODE, DeltaKind.UPDATE_NODE)
            facts, arrival = next(nodes) if with_node else (None, 0)
            change = next(changes, None) if kind == STORAGE else None
            version = next(versions) if kind == VERSION else 0
            if seq <= self.applied:
                continue
            if change is not None:
                self._apply_storage(change)
            elif kind == VERSION:
                self._set_version(name, version)
            elif kind == DeltaKind.ADD_POD:
                uid, key = batch.uids[index], batch.keys[index]
                self._add_pod(name, pod_classes[pod], uid, key, started_s.get(index))
            elif kind == DeltaKind.REMOVE_POD:
                self._remove_pod(name, pod_classes[pod], batch.uids[index])
            elif kind == DeltaKind.NOMINATE:
                self._add_nomination(name, pod_classes[pod], batch.uids[index])
            elif kind == DeltaKind.WITHDRAW:
                self._remove_nomination(name, pod_classes[pod], batch.uids[index])
            elif kind == DeltaKind.REMOVE_NODE:
                self._remove_node(name)
            elif kind == DeltaKind.ADD_NODE and facts is not None:
                self._add_node(facts, arrival)
            elif facts is not None:
                self._update_node(facts)
            self.applied = seq

    def _add_new_nodes(self, batch: DeltaBatch) -> None:
        applied_count = max(0, self.applied + 1 - batch.first_seq)
        new_nodes = batch.new_nodes[applied_count:]
        if new_nodes:
            self.table.add_nodes(
                new_nodes, np.frombuffer(batch.new_arrivals, np.int64)[applied_count:]
            )
            self.applied += len(new_nodes)

    def _add_node(self, facts: NodeFacts, arrival: int) -> None:
        self.table.add_node(facts, arrival)

    def _update_node(self, facts: NodeFacts) -> None:
        self.table.update_node(facts)

    def _remove_node(self, name: str) -> None:
        self.table.remove_node(name)

    def _add_pods_only(
        self, batch: DeltaBatch, pod_classes: Sequence[PodClass], start: int
    ) -> None:
        """Apply a batch of added pods only; those before `start` are on the table."""
        names, uids, keys = batch.names[start:], batch.uids[start:], batch.keys[start:]
        self._add_pods(names, uids, keys, [pod_classes[pod] for pod in batch.pods[start:]])

    def _add_pods(
        self,
        names: Sequence[str],
        uids: Sequence[str],
        keys: Sequence[str],
        pod_classes: Sequence[PodClass],
    ) -> None:
        """Add pods, each once, to nodes."""
        rows = [self.table.row_of(name) for name in names]
        self.table.residents.add_all(names, uids, pod_classes, keys)
        self.table.add_pods(rows, pod_classes)

    def _remove_pod(self, name: str, pod_class: PodClass, uid: str) -> None:
        self.table.remove_pod(name, pod_class, uid=uid)

    def _add_nomination(self, name: str, pod_class: PodClass, uid: str) -> None:
        self.table.nominate(name, pod_class)

    def _remove_nomination(self, name: str, pod_class: PodClass, uid: str) -> None:
        self.table.withdraw(name, pod_class)

    def _add_pod(
        self, name: str, pod_class: PodClass, uid: str, key: str, started_s: float | None
    ) -> None:
        self.table.add_pod(name, pod_class, uid=uid, key=key, started_s=started_s)

    def _set_version(self, name: str, version: int) -> None:
        """Set the version of a node's row; ignored by followers that do not check versions."""

    def _apply_storage(self, change: StorageChange) -> None:
        """Change claims or volumes. Ignored by schedulers: the cache's answers contain it."""

    async def restore(self, part: Restore) -> Nothing:
        """Apply the whole cluster state, once all of its parts were received."""
        if part.epoch != self._epoch or not self._needs_restore(part.seq):
            return NOTHING
        self._parts[part.seq, part.part] = part
        numbers = [(part.seq, number) for number in range(part.parts)]
        if all(number in self._parts for number in numbers):
            batches = [self._parts[number].batch for number in numbers]
            self._clear()
            self.applied = batches[0].first_seq - 1
            for batch in batches:
                self._apply(batch)
            self.touched = ChangedNodes(self.applied)
            # Keep parts of a newer state that began to arrive: they are not sent again.
            self._parts = {
                at: each for at, each in self._parts.items() if self._needs_restore(at[0])
            }
            await self._advance()
        return NOTHING

    def _needs_restore(self, seq: int) -> bool:
        """Whether to apply the cluster state as of change `seq`; only a new incarnation does."""
        return self.applied < 0

    def _clear(self) -> None:
        """Clear the table before the whole state is applied; a new incarnation's is empty."""

    async def _wait_for(self, seq: int) -> None:
        if self.applied >= seq:
            return
        try:
            async with asyncio.timeout(self._call_s), self._advanced:
                await self._advanced.wait_for(lambda: self.applied >= seq)
        except TimeoutError:
            raise DeadlineError(
                f"{self._name} waited {self._call_s:g} s for change {seq}, has {self.applied}"
            ) from None
