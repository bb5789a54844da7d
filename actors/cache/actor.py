"""CacheActor: receives the messages for `SchedulerCache`, and streams its changes to followers."""

from __future__ import annotations

from roadstead.actors.cache.encoding import ChangeEncoder
from roadstead.actors.cache.recovery import CacheRecovery
from roadstead.actors.cache.release_reports import ReleaseReports
from roadstead.actors.cache.stream import ChangeStream
from roadstead.actors.interface import NOTHING, Directory, Nothing, clock_s
from roadstead.actors.messages import (
    ActorStatus,
    AssumeBatch,
    NodeBatch,
    NominateBatch,
    RunningPods,
    UpdateAssumptions,
    pod_list,
)
from roadstead.actors.messages.changes import NodeNames
from roadstead.actors.messages.recovery import (
    Differences,
    EndOwner,
    LastRevisions,
    Nominated,
    OwnerEpoch,
    PodRemoval,
    Restream,
    StorageLog,
    Uids,
)
from roadstead.cache import Assumption, SchedulerCache
from roadstead.cache.answers import CacheAnswer
from roadstead.facts.pod import PodIdentity
from roadstead.run import RunPlan
from roadstead.run_parts import build_cluster_state
from roadstead.storage.claim_messages import AttemptBindings


class CacheActor:
    """The cluster as the schedulers see it: nodes, bound and assumed pods.

    Changes are numbered and sent to all followers: schedulers and workers. is_new: this cache
    replaces another one. Its followers are new, too, and receive no changes until `restream` has
    sent them the whole state.
    """

    def __init__(self, plan: RunPlan, directory: Directory, *, is_new: bool = False) -> None:
        call_s = plan.settings.deadlines.call_s
        self.state = build_cluster_state(plan, is_new=is_new)
        self.core = self.state.core
        self.encoder = ChangeEncoder(self.state)
        self.stream = ChangeStream(plan, directory, self.encoder, is_new=is_new)
        self._cache = SchedulerCache(self.state, self.stream)
        self.release_reports = ReleaseReports(directory, call_s)
        self.recovery = CacheRecovery(self._cache, self.release_reports, directory, call_s)

    async def add_nodes(self, batch: NodeBatch) -> Nothing:
        """Add or change nodes; the first batches decide how zones are assigned to partitions."""
        self._cache.add_nodes(batch.nodes, batch.revision)
        await self.stream.flush()
        return NOTHING

    async def add_running(self, batch: RunningPods) -> Nothing:
        """Add pods that run already, with the times at which they were started."""
        pods = batch.pods
        self._cache.add_running(pods.pods(), batch.nodes, pods.revision, pods.starts())
        await self.stream.flush()
        return NOTHING

    async def update_running(self, batch: RunningPods) -> Nothing:
        """Change pods on their nodes; a pod that was evicted meanwhile is not added again."""
        self._cache.update_running(batch.pods.pods(), batch.nodes, batch.pods.revision)
        await self.stream.flush()
        return NOTHING

    async def remove_nodes(self, removed: NodeNames) -> Nothing:
        """Remove nodes; report their pods to the queue, since these no longer block other pods."""
        pods = self._cache.remove_nodes(removed.names, removed.revision)
        await self.stream.flush()
        await self.release_reports.report(pods)
        return NOTHING

    async def assume(self, batch: AssumeBatch) -> CacheAnswer:
        """Count pods on nodes before their commits.

        batch.bind_next: their binds are requested next, so that their deadlines begin now. An
        assumption that is not confirmed by its deadline expires.
        """
        self.recovery.start_expiring()
        rows = zip(batch.pods.keyed(), batch.nodes, batch.tokens, strict=True)
        assumptions = [Assumption(*pod, node, token) for pod, node, token in rows]
        outcome = self._cache.assume(assumptions, clock_s(), bind_next=batch.bind_next)
        return self._answer(outcome.refused, batch.known_changes, outcome.bound)

    async def update_assumptions(self, batch: UpdateAssumptions) -> CacheAnswer:
        """Forget, finish or confirm assumptions; report pods that no longer block others."""
        freed = self._cache.finish_attempts(
            batch.forget, batch.finish, batch.confirm, rows=batch.rows, now_s=clock_s()
        )
        await self.release_reports.report(freed)
        return self._answer((), batch.known_changes)

    async def nominate(self, batch: NominateBatch) -> CacheAnswer:
        """Remove evicted pods, and set or end nominations."""
        self._cache.deallocate(batch.deallocated)
        self._cache.nominate(batch.pods.pods(), batch.nodes, batch.preempts, batch.evicted)
        return self._answer((), batch.known_changes)

    def _answer(
        self,
        refused: tuple[tuple[str, str], ...],
        known_changes: int,
        bound: tuple[AttemptBindings, ...] = (),
    ) -> CacheAnswer:
        """Return the answer to a scheduler.

        known_changes: number of the changes of claims and volumes that it has; later ones are sent.
        """
        changes = self.state.volumes.changes_since(known_changes)
        return CacheAnswer(refused, self.stream.seq, bound, changes)

    async def remove_pods(self, pods: PodRemoval) -> Nothing:
        """Remove pods from the counts and the nominations."""
        self._cache.remove_pods(pods.uids, pods.revision)
        return NOTHING

    async def load_storage(self, message: StorageLog) -> Nothing:
        """Apply the changes that commits made to claims before this cache was started."""
        self._cache.load_storage(message.changes)
        return NOTHING

    async def merge_revisions(self, last_revisions: LastRevisions) -> Nothing:
        """Store revisions, so that older messages about nodes and pods are ignored."""
        self._cache.merge_revisions(last_revisions.nodes, last_revisions.pods, last_revisions.gone)
        return NOTHING

    async def restream(self, request: Restream) -> Nothing:
        """Send the whole state to a new follower; later changes follow it."""
        await self.stream.fill(request)
        return NOTHING

    async def nominated(self, _: Uids) -> Nominated:
        """Return all nominations in the cache; the request is not read."""
        nominations = self.core.placements.nominated
        # The cache does not store the names of nominated pods; the receiver needs only their UIDs.
        pods = [
            (PodIdentity(uid, pod.namespace, uid), pod) for uid, (_, pod) in nominations.items()
        ]
        return Nominated(pod_list(pods), tuple(node for node, _ in nominations.values()))

    async def assumed_by(self, owner: OwnerEpoch) -> Uids:
        """Return the pods that earlier incarnations of a scheduler assumed."""
        return Uids(tuple(self._cache.assumed_by(owner.name, owner.epoch)))

    async def end_owner(self, end: EndOwner) -> Nothing:
        """End a scheduler's earlier incarnations: confirm bound pods and forget the others."""
        await self.recovery.end_owner(end)
        return NOTHING

    async def compare(self, _: Nothing) -> Differences:
        """Return the differences from a cache rebuilt from scratch."""
        return Differences(tuple(self.recovery.compare()))

    def release(self) -> None:
        """Cancel all tasks."""
        self.stream.cancel_all()
        self.recovery.cancel()

    async def status(self, _: Nothing) -> ActorStatus:
        # `asked`: assumptions that expired, and whose outcome is requested from the binder.
        counts = self.core.counts()
        return ActorStatus(
            f"held {counts.nodes} nodes, {counts.assumed} assumed and {counts.added} confirmed "
            f"pods; had streamed {self.stream.seq} changes",
            error=self.stream.lost,
            metrics=(
                ("nodes", float(counts.nodes)),
                ("assumed", float(counts.assumed + counts.asked)),
                ("added", float(counts.added)),
                ("changes", float(self.stream.seq)),
                ("unfilled", float(len(self.stream.unfilled))),
            ),
        )
