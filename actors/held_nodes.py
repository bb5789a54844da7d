"""HeldNodes: all nodes beside the scheduler that decides on them; the cache keeps them up to date.

    catch up with the cache ──► decide: no changes come in ──► those that waited are made

What is decided stands on the table at once; the cache's change then finds it there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from roadstead.actors.messages import DeltaBatch, ViewAsk
from roadstead.actors.recovery import Restore
from roadstead.actors.rounds import UnsettledError, narrow_outside
from roadstead.actors.seam import ActorError, DeadlineError, Directory, Nothing
from roadstead.actors.worker import WorkerActor
from roadstead.cycle.batch import BatchRun, Decision, PodInCycle
from roadstead.cycle.messages import DryRunAsk, EvaluateRequest, ShardAnswer, ShardView
from roadstead.cycle.narrowing import Narrower
from roadstead.cycle.replica import ReplicaCycle
from roadstead.cycle.sharded import NarrowTask
from roadstead.framework.profile import Profile
from roadstead.framework.tie_break import TieBreak
from roadstead.framework.victims import Tried
from roadstead.nodes.pod_info import PodClasses, PodInfo
from roadstead.nodes.table import NodeTable
from roadstead.run import RunPlan
from roadstead.storage import StorageChange

Deciding = Callable[[BatchRun], Awaitable[tuple[list[Decision], int]]]
"""Decisions for the first pods of a batch, and how many of its pods are settled by them."""


class HeldNodes(WorkerActor):
    """The handlers of a worker, and batches without messages."""

    def __init__(
        self,
        name: str,
        plan: RunPlan,
        directory: Directory,
        classes: PodClasses,
        profiles: Mapping[str, Profile],
        *,
        tie_break: TieBreak,
        narrower: Narrower | None,
        is_new: bool,
        epoch: int,
    ) -> None:
        self._made = NodeTable(classes), profiles
        super().__init__(name, plan, directory, is_new=is_new, epoch=epoch)
        self.cycle = ReplicaCycle(self.table, profiles, tie_break, narrower=narrower)

    def _make(self, plan: RunPlan) -> tuple[NodeTable, Mapping[str, Profile]]:
        return self._made

    async def catch_up(self, seq: int) -> None:
        """The table as of change `seq`, without what was decided and did not come to be.

        UnsettledError where the cache's changes do not come in time.
        """
        try:
            await self._reach(seq)
        except DeadlineError as late:
            raise UnsettledError(str(late)) from late
        self.cycle.tentative.drop_rest()

    async def decide(
        self, pods: Sequence[PodInCycle], decide: Deciding
    ) -> tuple[list[Decision], int]:
        """A batch on the table, which `decide` decides; meanwhile nothing else changes the table.

        Changes that came meanwhile are made afterwards.
        """
        self.is_paused = True
        try:
            batch = self.cycle.begin_here(pods)
            if isinstance(batch, NarrowTask):
                batch = self.cycle.narrowed_here(await narrow_outside(batch))
            decisions, settled = await decide(batch)
            batch.settle()
            self.cycle.tentative.note(decisions)
        finally:
            self.is_paused = False
        await self._advance()
        return decisions, settled

    def _pods_come(self, batch: DeltaBatch, infos: Sequence[PodInfo], start: int) -> None:
        its_infos = [infos[pod] for pod in batch.pods[start:]]
        uids, names = batch.uids[start:], batch.names[start:]
        for place in self.cycle.tentative.confirm(uids, names, its_infos):
            key = batch.keys[start + place]
            super()._pod_comes(names[place], its_infos[place], uids[place], key, None)

    def _pod_comes(
        self, name: str, info: PodInfo, uid: str, key: str, started_s: float | None
    ) -> None:
        if self.cycle.tentative.confirm([uid], [name], [info]):
            super()._pod_comes(name, info, uid, key, started_s)

    def _nomination_ends(self, name: str, info: PodInfo, uid: str) -> None:
        # Counted by class: taken twice, it would be another pod's.
        if not self.cycle.tentative.has_given_up(uid, name):
            super()._nomination_ends(name, info, uid)

    def _storage_changes(self, change: StorageChange) -> None:
        """The scheduler learns of it with the next answer of the cache."""


class HoldsNodes:
    """An actor's handlers of a worker, where it holds the nodes itself."""

    _name: str
    _nodes: HeldNodes | None

    @property
    def _as_worker(self) -> HeldNodes:
        if self._nodes is None:
            raise ActorError(f"{self._name} holds no nodes")
        return self._nodes

    async def apply(self, batch: DeltaBatch) -> Nothing:
        return await self._as_worker.apply(batch)

    async def restore(self, part: Restore) -> Nothing:
        return await self._as_worker.restore(part)

    async def evaluate(self, request: EvaluateRequest) -> ShardAnswer:
        return await self._as_worker.evaluate(request)

    async def dry_run(self, request: DryRunAsk) -> Tried:
        return await self._as_worker.dry_run(request)

    async def view(self, request: ViewAsk) -> ShardView:
        return await self._as_worker.view(request)
