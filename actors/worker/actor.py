"""WorkerActor: evaluates its part of the nodes for the schedulers.

It receives the same changes as they do and keeps every Nth node by arrival. For pod classes it
calls users' plugins on these nodes, and lists the best of them. No decision depends on it: a
scheduler evaluates the rows itself if a worker is late, lost, or has other nodes in its table (each
answer has a digest of them).
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from roadstead.actors.interface import Directory, Nothing, clock_s
from roadstead.actors.logs import log
from roadstead.actors.messages import ActorStatus, ChangesApplied, DeltaBatch, PackedChanges
from roadstead.actors.names import index_of
from roadstead.actors.runtime.kernel_loader import LOAD_AFTER_PODS, KernelLoader
from roadstead.actors.worker.table_follower import TableFollower
from roadstead.cycle.merged_lists import MIN_NODES_FOR_LISTS
from roadstead.cycle.messages import RankAnswer, RankRequest, ScoreAnswer, ScoreRequest
from roadstead.cycle.ranker import Ranker
from roadstead.cycle.scorer import Scorer
from roadstead.facts.node import NodeFacts
from roadstead.nodes.pod_class import PodClass, PodClasses
from roadstead.nodes.table import NodeTable
from roadstead.run import RunPlan, build_profiles
from roadstead.storage import StorageChange

ACTIVE_S = 10.0
"""How long after a request a worker counts as active: the cache then sends it changes at once."""


class WorkerActor(TableFollower):
    """Worker for the nodes whose arrival number modulo the number of workers is its index."""

    def __init__(
        self,
        name: str,
        plan: RunPlan,
        directory: Directory,
        *,
        is_new: bool = False,
        epoch: int = 1,
    ) -> None:
        call_s = plan.settings.deadlines.call_s
        super().__init__(name, NodeTable(PodClasses()), call_s, is_new=is_new, epoch=epoch)
        self._plan = plan
        self._index, self._count = index_of(name), plan.settings.workers
        self._build_evaluators()
        self._kernel = KernelLoader(name, enabled=plan.settings.kernel)
        self._scored = self._ranked = 0
        self._scoring_s = self._ranking_s = 0.0
        self._last_request_s: float | None = None

    def _build_evaluators(self) -> None:
        """Build what depends on the table: plugins, scorer and ranker."""
        profiles = build_profiles(self._plan, self.table.classes)
        self._storage = next(iter(profiles.values())).storage
        self._scorer = Scorer(self.table, profiles)
        self._ranker = Ranker(self._scorer.by_arrival, self.table, profiles)

    def _needs_restore(self, seq: int) -> bool:
        """Whether the state is newer than the table: so also after missed changes."""
        return seq > self.applied

    def _clear(self) -> None:
        if self.applied >= 0:
            self.table = NodeTable(PodClasses())
            self._build_evaluators()

    async def apply(self, changes: PackedChanges) -> ChangesApplied:
        """Apply changes of the cache; answer whether the next ones should be sent at once."""
        await super().apply(changes)
        return ChangesApplied(
            self._last_request_s is not None and clock_s() - self._last_request_s < ACTIVE_S
        )

    async def score(self, request: ScoreRequest) -> ScoreAnswer:
        """Return results of users' plugins for classes, and the rows changed since `request.seq`.

        All results are of one state of the table, since nothing is awaited.
        """
        self._last_request_s = clock_s()
        began = time.perf_counter()
        names = self.touched.since(request.seq) if self.applied >= 0 else None
        # Arrival numbers of the changed nodes, int64; None if that is not known.
        touched = None
        classes = tuple(
            self._scorer.columns(facts, request.node_count) for facts in request.classes
        )
        if names is not None:
            present = {name for name in names if self.table.has_node(name)}
            touched = self._scorer.arrivals_of(present).tobytes()
        spent_s = time.perf_counter() - began
        self._scoring_s += spent_s
        self._scored += len(classes)
        log(self._name, "scored", classes=len(classes), applied=self.applied)
        return ScoreAnswer(
            seq=self.applied,
            rows=len(self.table),
            digest=self._scorer.digest,
            touched=touched,
            classes=classes,
            spent_s=spent_s,
        )

    async def rank(self, request: RankRequest) -> RankAnswer:
        """Return the best rows for classes of one pod each, as of change `request.seq` or later.

        All results are of one state of the table: nothing is awaited once that change is applied.
        """
        self._last_request_s = clock_s()
        await self._wait_for(request.seq)
        began = time.perf_counter()
        compiled_kernel = self._kernel.compiled_kernel(len(request.classes))
        names = self.touched.since(request.seq)
        # Without lists, if the changes or the kernel (off, or not loaded yet) are missing.
        if names is None or compiled_kernel is None or compiled_kernel.code is None:
            return RankAnswer(rows=len(self.table), digest=self._scorer.digest, touched=None)
        touched = self._scorer.arrivals_of({name for name in names if self.table.has_node(name)})
        answer = self._ranker.rank(request, compiled_kernel, touched)
        self._ranking_s += time.perf_counter() - began
        self._ranked += len(request.classes)
        log(self._name, "ranked", classes=len(request.classes), applied=self.applied)
        return answer

    def _owns(self, arrival: int) -> bool:
        return arrival % self._count == self._index

    def _add_new_nodes(self, batch: DeltaBatch) -> None:
        applied_count = max(0, self.applied + 1 - batch.first_seq)
        new_nodes = batch.new_nodes[applied_count:]
        arrivals = np.frombuffer(batch.new_arrivals, np.int64)[applied_count:]
        if len(arrivals) and arrivals[-1] >= MIN_NODES_FOR_LISTS:
            # Schedulers may request lists of so many nodes: begin to load the kernel for these.
            self._kernel.compiled_kernel(LOAD_AFTER_PODS)
        own = np.flatnonzero(arrivals % self._count == self._index)
        if len(own):
            self.table.add_nodes(new_nodes.at(own), arrivals[own])
        self.applied += len(new_nodes)

    def _add_node(self, facts: NodeFacts, arrival: int) -> None:
        if self._owns(arrival):
            super()._add_node(facts, arrival)

    def _update_node(self, facts: NodeFacts) -> None:
        if self.table.has_node(facts.name):
            super()._update_node(facts)

    def _remove_node(self, name: str) -> None:
        if self.table.has_node(name):
            super()._remove_node(name)

    def _add_pods(
        self,
        names: Sequence[str],
        uids: Sequence[str],
        keys: Sequence[str],
        pod_classes: Sequence[PodClass],
    ) -> None:
        present = [index for index, name in enumerate(names) if self.table.has_node(name)]
        super()._add_pods(
            [names[index] for index in present],
            [uids[index] for index in present],
            [keys[index] for index in present],
            [pod_classes[index] for index in present],
        )

    def _add_pod(
        self, name: str, pod_class: PodClass, uid: str, key: str, started_s: float | None
    ) -> None:
        if self.table.has_node(name):
            super()._add_pod(name, pod_class, uid, key, started_s)

    def _remove_pod(self, name: str, pod_class: PodClass, uid: str) -> None:
        if self.table.has_node(name):
            super()._remove_pod(name, pod_class, uid)

    def _apply_storage(self, change: StorageChange) -> None:
        self._storage.apply(change)

    async def status(self, _: Nothing) -> ActorStatus:
        return ActorStatus(
            f"held {len(self.table)} nodes; had applied {self.applied} changes, scored "
            f"{self._scored} classes and ranked its nodes for {self._ranked}",
            timings_s=(("score", self._scoring_s), ("rank", self._ranking_s)),
            counts=(
                ("nodes", len(self.table)),
                ("classes scored", self._scored),
                ("classes ranked", self._ranked),
            ),
            metrics=(("changes", float(self.applied)),),
        )
