"""BinderActor: receives the messages for `Binder`; commits each scheduler's batches in order."""

from __future__ import annotations

import time

from roadstead.actors.binder.copy_link import CopyLink
from roadstead.actors.binder.journal import copied_journal, open_journal
from roadstead.actors.binder.order import BindOrder
from roadstead.actors.binder.pages import BinderPages, keyed_pod_list, pods_page_of
from roadstead.actors.interface import NOTHING, Directory, Nothing
from roadstead.actors.logs import log
from roadstead.actors.messages import (
    BIND,
    STATUS,
    ActorStatus,
    BindBatch,
    BoundPage,
    ClaimsPage,
    CommitPage,
    Evict,
    Evicted,
    NodeBatch,
    OutcomePart,
    OutcomeSize,
    PageRequest,
    PodList,
    PreemptedPage,
    RunEnded,
    RunningPods,
)
from roadstead.actors.messages.changes import NodeNames
from roadstead.actors.messages.journal_copy import PAIR_AGAIN
from roadstead.actors.messages.recovery import (
    LastRevisions,
    NodesPage,
    OwnerEpoch,
    PodNodes,
    PodRemoval,
    PodsPage,
    ResolveAttempts,
    StorageLog,
    Uids,
)
from roadstead.binder import BindRequest
from roadstead.binder.answers import BindAnswers, bind_answers
from roadstead.journal import Journal
from roadstead.journal.disk import Disk
from roadstead.journal.files import FileJournal
from roadstead.journal.outcome import OutcomeFile
from roadstead.run import RunPlan
from roadstead.run_parts import build_binder


class BinderActor:
    """The binder of a run. journal: makes its binds durable; None for the journal of the plan.

    Messages about nodes and pods have a revision, by which late copies are ignored
    (`roadstead/revisions.py`). If the journal has a copy, a reply is sent after the copy has the
    records of all that the reply reports: the loss of one disk then undoes nothing that another
    process has read (docs/decisions/0049). The keys of `PodList.keyed` are namespace/name.
    """

    def __init__(
        self,
        plan: RunPlan,
        directory: Directory,
        journal: Journal | None = None,
        *,
        epoch: int = 1,
        least_lsn: int = 0,
        disk: Disk | None = None,
    ) -> None:
        """epoch: of this incarnation. least_lsn: number of the last acknowledged record: a journal
        without it is refused. disk: replaces the folder of a journal that has a copy.
        """
        self._link: CopyLink | None = None
        if journal is None and plan.settings.journal_copy is not None:
            journal, self._link = copied_journal(
                plan,
                directory,
                self._stop_acknowledging,
                epoch=epoch,
                least_lsn=least_lsn,
                disk=disk,
            )
        self._journal = journal or open_journal(plan)
        self._outcome: OutcomeFile | None = None
        self.binder = build_binder(plan, self._journal)
        self.core = self.binder.core
        self._pages = BinderPages(self.binder)
        self._order = BindOrder()
        self._bind_s = 0.0

    def _stop_acknowledging(self, why: str) -> None:
        """Halt the core, as after a failure of the journal: nothing more is committed."""
        self.core.flush_failed(why)

    async def before_reply(self, method_name: str) -> None:
        """Return when the reply to a call of this method may be sent."""
        if self._link is None:
            return
        if method_name in (STATUS.name, PAIR_AGAIN.name):
            # Not delayed: by these calls the supervisor finds and replaces a copy that is lost.
            # `start` is called here since it needs the actor's running event loop.
            self._link.start()
        elif method_name != BIND.name:
            # `bind` has waited itself. A second wait would include the batches handled meanwhile.
            await self._link.wait_confirmed()

    async def pair_again(self, _: Nothing) -> Nothing:
        """Send the journal to a new process of its copy."""
        if self._link is not None:
            self._link.pair_again()
        return NOTHING

    async def add_nodes(self, batch: NodeBatch) -> Nothing:
        """Add or change nodes."""
        self.binder.add_nodes(batch.nodes, batch.revision)
        return NOTHING

    async def add_running(self, batch: RunningPods) -> Nothing:
        """Add pods that run already; they count as bound."""
        self.binder.add_running(batch.pods.keyed(), batch.nodes, batch.pods.revision)
        return NOTHING

    async def add_pending(self, batch: PodList) -> Nothing:
        """Add pods that may be bound from now on."""
        self.binder.add_pending(list(batch.keyed()), batch.revision)
        return NOTHING

    async def remove_nodes(self, removed: NodeNames) -> Nothing:
        """Remove nodes; their pods stay bound to them."""
        self.binder.remove_nodes(removed.names, removed.revision)
        return NOTHING

    async def update_pods(self, batch: PodList) -> PodsPage:
        """Change pods, bound or pending; deleted ones stay deleted. Return those that exist."""
        records = self.binder.update_pods(list(batch.keyed()), batch.revision)
        return pods_page_of(records, batch.revision)

    async def delete_pods(self, removed: PodRemoval) -> PodList:
        """Delete pods, bound or pending. Return those that are deleted now, or were before."""
        return keyed_pod_list(
            self.binder.delete_pods(removed.uids, removed.revision), removed.revision
        )

    async def bind(self, batch: BindBatch) -> BindAnswers:
        """Commit a batch; return the answers of its tokens, in order.

        A request whose record could not be written to the journal has no answer.
        """
        await self._order.wait_for_previous(batch.owner, batch.epoch, batch.number)
        started = time.perf_counter()
        requests = _requests(batch)
        decisions = self.binder.bind(requests, batch.volumes)
        self._bind_s += time.perf_counter() - started
        if self._link is not None:
            await self._link.wait_confirmed()
        # The time at which the commits are acknowledged, and the processor time used until then.
        self.binder.commits.mark(time.monotonic(), time.process_time())
        answers = bind_answers(decisions)
        bound = len(answers.tokens) - len(answers.refused)
        log("binder", "batch committed", requests=len(requests), bound=bound)
        return answers

    async def evict(self, request: Evict) -> Evicted:
        """Evict pods; a pod that is not bound yet cannot be bound any more."""
        self.binder.deallocate(request.claims)
        evicted = self.binder.evict(request.uids, request.preemptors)
        log("binder", "evicted", pods=len(evicted), preemptors=len(set(request.preemptors)))
        return Evicted(keyed_pod_list(evicted))

    async def preempted(self, request: PageRequest) -> PreemptedPage:
        """Return evicted pods in the order of their eviction, page by page."""
        return self._pages.preempted_page(request)

    async def claims(self, request: PageRequest) -> ClaimsPage:
        """Return claims of devices, page by page."""
        return self._pages.claims_page(request)

    async def bound(self, request: PageRequest) -> BoundPage:
        """Return committed binds in commit order, page by page."""
        return self._pages.bound_page(request)

    async def commits(self, request: PageRequest) -> CommitPage:
        """Return the times at which binds were acknowledged, page by page."""
        return self._pages.commits_page(request)

    async def revisions(self, _: Nothing) -> LastRevisions:
        """Return the last revision of each node and pod that changed."""
        return self._pages.revisions()

    async def nodes_page(self, request: PageRequest) -> NodesPage:
        """Return nodes in the order in which they were added, page by page."""
        return self._pages.nodes_page(request)

    async def pods_page(self, request: PageRequest) -> PodsPage:
        """Return pods that exist, in the order in which they were added, page by page."""
        return self._pages.pods_page(request)

    async def pod_nodes(self, request: Uids) -> PodNodes:
        """Return the node of each pod; "" if it is pending, None if it is unknown or deleted."""
        return PodNodes(self.binder.bound_nodes(request.uids))

    async def resolve(self, request: ResolveAttempts) -> PodNodes:
        """Resolve attempts and answer like `pod_nodes`; uncommitted attempts never commit later.

        BinderHaltedError if that could not be made durable.
        """
        return PodNodes(self.binder.resolve(request.uids, request.tokens))

    async def fence_owner(self, owner: OwnerEpoch) -> Nothing:
        """Refuse binds of a scheduler's earlier incarnations, also after a recovery.

        BinderHaltedError if that could not be made durable.
        """
        self.binder.fence(owner.name, owner.epoch)
        return NOTHING

    async def evicted_pods(self, _: Nothing) -> PodList:
        """Return all deleted and evicted pods; see `Binder.evicted`."""
        return keyed_pod_list(self.binder.evicted())

    async def storage_log(self, _: Nothing) -> StorageLog:
        """Return all changes that commits made to claims and volumes."""
        return StorageLog(tuple(self.binder.volumes.log))

    async def store_outcome(self, part: OutcomePart) -> OutcomeSize:
        """Write a part of the run's outcome next to the journal."""
        if self._outcome is None:
            assert isinstance(self._journal, FileJournal), "an outcome without a journal"
            self._outcome = OutcomeFile(self._journal.disk)
        return OutcomeSize(self._outcome.store(part.offset, part.data, is_last=part.is_last))

    async def end_run(self, ends: RunEnded) -> Nothing:
        """Record that the run ended, with the digest of its outcome; a later call replaces it.

        BinderHaltedError if that cannot be made durable.
        """
        self.binder.end_run(ends.digest)
        return NOTHING

    async def stop(self, _: Nothing) -> Nothing:
        """End and release the journal; nothing is committed any more."""
        self.binder.end()
        return NOTHING

    def release(self) -> None:
        """Release the journal's folder for the next incarnation."""
        if self._link is not None:
            self._link.close()
        self.binder.close()

    async def status(self, _: Nothing) -> ActorStatus:
        bound, batches = len(self.binder.outcomes.bound), self.binder.batches
        return ActorStatus(
            f"had committed {bound} binds in {batches} batches",
            error=self.binder.error,
            timings_s=(("bind", self._bind_s),),
            counts=(("bound", bound), ("batches", batches)),
            metrics=self._journal_metrics(),
        )

    def _journal_metrics(self) -> tuple[tuple[str, float], ...]:
        """Return how much this process wrote to its journal; () without files."""
        journal = self._journal
        if not isinstance(journal, FileJournal):
            return ()
        written_bytes, syncs = float(journal.written_bytes), float(journal.syncs)
        return (("journal_bytes", written_bytes), ("journal_syncs", syncs))


def _requests(batch: BindBatch) -> list[BindRequest]:
    """Return the bind request of each pod of a batch.

    Version 0 for all if the binder compares none; transaction "" for a pod that is bound by itself.
    """
    no_versions, no_transactions = (0,) * len(batch.nodes), ("",) * len(batch.nodes)
    rows = zip(
        batch.pods.keyed(),
        batch.nodes,
        batch.tokens,
        batch.read_versions or no_versions,
        batch.transactions or no_transactions,
        strict=True,
    )
    return [
        BindRequest(token, uid, key, node, facts, batch.owner, batch.epoch, version, transaction)
        for (uid, key, facts), node, token, version, transaction in rows
    ]
