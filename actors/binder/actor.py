"""The binder's shell: messages to calls of `Binder` and back, in the order of the batches."""

from __future__ import annotations

import time

from roadstead.actors.binder.answers import BinderAnswers, keyed_batch, page_of
from roadstead.actors.binder.order import BindOrder
from roadstead.actors.logs import log
from roadstead.actors.messages import (
    ActorStatus,
    BindBatch,
    BoundPage,
    CommitPage,
    Evict,
    Evicted,
    NodeBatch,
    PageAsk,
    PodBatch,
    PreemptedPage,
    RunEnds,
    RunningPods,
)
from roadstead.actors.messages.changes import NodeNames
from roadstead.actors.messages.recovery import (
    Attempts,
    NodesPage,
    Owner,
    PodsGone,
    Revised,
    StandingPage,
    StorageLog,
    Uids,
    Words,
)
from roadstead.actors.seam import NOTHING, Directory, Nothing
from roadstead.binder import BindRequest
from roadstead.binder.answers import BindAnswers, bind_answers
from roadstead.journal import Journal, NullJournal
from roadstead.journal.disk import RealDisk
from roadstead.journal.files import FileJournal
from roadstead.run import RunPlan
from roadstead.run_parts import build_binder


class BinderActor:
    """Commits binds in order. `journal` is the seam where they become durable."""

    def __init__(self, plan: RunPlan, directory: Directory, journal: Journal | None = None) -> None:
        self.binder = build_binder(plan, journal or open_journal(plan))
        self.core = self.binder.core
        self._answers = BinderAnswers(self.binder)
        self._order = BindOrder()
        self._verifying_s = 0.0

    async def add_nodes(self, batch: NodeBatch) -> Nothing:
        """Nodes appear."""
        self.binder.add_nodes(batch.nodes, batch.revision)
        return NOTHING

    async def add_running(self, batch: RunningPods) -> Nothing:
        """Pods that run already: bound from the start."""
        self.binder.add_running(batch.pods.keyed(), batch.nodes, batch.pods.revision)
        return NOTHING

    async def add_pending(self, batch: PodBatch) -> Nothing:
        """Pods that may be bound from now on."""
        self.binder.add_pending(list(batch.keyed()), batch.revision)
        return NOTHING

    async def remove_nodes(self, gone: NodeNames) -> Nothing:
        """Nodes disappear; their pods stay bound to them."""
        self.binder.remove_nodes(gone.names, gone.revision)
        return NOTHING

    async def update_pods(self, batch: PodBatch) -> StandingPage:
        """Pods are other than they were, bound or not; those that are gone stay so."""
        records = self.binder.update_pods(list(batch.keyed()), batch.revision)
        return page_of(records, len(records), batch.revision)

    async def delete_pods(self, gone: PodsGone) -> PodBatch:
        """Pods are gone from the cluster, bound or not. Those that came again are left out."""
        return keyed_batch(self.binder.delete_pods(gone.uids, gone.revision), gone.revision)

    async def bind(self, batch: BindBatch) -> BindAnswers:
        """Commits a batch; the answers of its tokens, in their order."""
        await self._order.turn(batch.owner, batch.epoch, batch.number)
        started = time.perf_counter()
        requests = _requests(batch)
        decisions = self.binder.bind(requests, batch.volumes)
        self.binder.commits.mark(time.monotonic())
        self._verifying_s += time.perf_counter() - started
        answers = bind_answers(decisions)
        bound = len(answers.tokens) - len(answers.refused)
        log("binder", "batch committed", asked=len(requests), bound=bound)
        return answers

    async def evict(self, ask: Evict) -> Evicted:
        """Takes pods from the cluster; those that are not bound yet will never be."""
        gone = self.binder.evict(ask.uids, ask.preemptors)
        log("binder", "evicted", pods=len(gone), preemptors=len(set(ask.preemptors)))
        return Evicted(keyed_batch(gone))

    async def preempted(self, ask: PageAsk) -> PreemptedPage:
        """Evicted pods in the order of their eviction, a page at a time."""
        return self._answers.preempted_page(ask)

    async def bound(self, ask: PageAsk) -> BoundPage:
        """Committed binds in commit order, a page at a time."""
        return self._answers.bound_page(ask)

    async def commits(self, ask: PageAsk) -> CommitPage:
        """When binds were acknowledged, a page at a time."""
        return self._answers.commits_page(ask)

    async def revisions(self, _: Nothing) -> Revised:
        """The last change of each node and pod that changed."""
        return self._answers.revisions()

    async def nodes_page(self, ask: PageAsk) -> NodesPage:
        """Nodes in the order in which they came."""
        return self._answers.nodes_page(ask)

    async def standing_page(self, ask: PageAsk) -> StandingPage:
        """Pods that are here, in the order in which they came."""
        return self._answers.pods_page(ask)

    async def standing(self, ask: Uids) -> Words:
        """What became of pods."""
        return Words(self.binder.standing(ask.uids))

    async def resolve(self, ask: Attempts) -> Words:
        """What became of attempts, for good: those that committed nothing never will.

        BinderHaltedError where that could not be made durable.
        """
        return Words(self.binder.resolve(ask.uids, ask.tokens))

    async def fence_owner(self, owner: Owner) -> Nothing:
        """Earlier lives of a scheduler commit nothing any more, also after a recovery.

        BinderHaltedError where that could not be made durable.
        """
        self.binder.fence(owner.name, owner.epoch)
        return NOTHING

    async def evicted_pods(self, _: Nothing) -> PodBatch:
        """All that was evicted, see `Binder.evicted`."""
        return keyed_batch(self.binder.evicted())

    async def storage_log(self, _: Nothing) -> StorageLog:
        """All that commits changed of claims and volumes."""
        return StorageLog(tuple(self.binder.volumes.log))

    async def end_run(self, ends: RunEnds) -> Nothing:
        """All is decided, and the outcome is kept; coming twice, the last one counts.

        BinderHaltedError where that cannot be made durable.
        """
        self.binder.end_run(ends.digest)
        return NOTHING

    async def stop(self, _: Nothing) -> Nothing:
        """End the journal and leave it to others: nothing is committed any more."""
        self.binder.end()
        return NOTHING

    def crashed(self) -> None:
        """The folder is free for the next life."""
        self.binder.close()

    async def status(self, _: Nothing) -> ActorStatus:
        bound, batches = len(self.binder.outcomes.bound), self.binder.batches
        return ActorStatus(
            f"had committed {bound} binds in {batches} batches",
            error=self.binder.error,
            timings_s=(("bind", self._verifying_s),),
            counts=(("bound", bound), ("batches", batches)),
        )


def _requests(batch: BindBatch) -> list[BindRequest]:
    """What a batch asks for, one by one."""
    nothing_read, no_transactions = (0,) * len(batch.nodes), ("",) * len(batch.nodes)
    rows = zip(
        batch.pods.keyed(),
        batch.nodes,
        batch.tokens,
        batch.read_versions or nothing_read,
        batch.transactions or no_transactions,
        strict=True,
    )
    return [
        BindRequest(token, uid, key, node, facts, batch.owner, batch.epoch, read, transaction)
        for (uid, key, facts), node, token, read, transaction in rows
    ]


def open_journal(plan: RunPlan) -> Journal:
    """The journal of a run, which may hold its beginning. JournalError where it is in use."""
    folder = plan.settings.journal
    if folder is None:
        return NullJournal()
    return FileJournal(RealDisk(folder))
