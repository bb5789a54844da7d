"""Binder: a shell around BinderCore. One writer: verify, append, flush, acknowledge."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from roadstead.actors.binder.answers import BinderAnswers
from roadstead.actors.binder.commits import CommitLog
from roadstead.actors.binder.edits import BinderEdits
from roadstead.actors.binder.order import BindOrder
from roadstead.actors.binder.outcomes import PodOutcomes
from roadstead.actors.binder.recovery import BinderRecovery
from roadstead.actors.binder.volumes import BinderVolumes
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
    pod_batch,
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
from roadstead.binder import (
    Acknowledge,
    AppendJournal,
    BinderCore,
    BinderHaltedError,
    BinderSettings,
    BindRequest,
    Bound,
    Effect,
    Halted,
    PodState,
    Released,
)
from roadstead.binder.answers import BindAnswers
from roadstead.binder.gangs import GangNeeds
from roadstead.binder.pods import COUNTED, Decision, Rejected
from roadstead.binder.verification import Verifier
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import PodFacts, identity_of, unnominated
from roadstead.facts.run_mark import FINISHED, RunMark
from roadstead.journal import Journal, JournalError, NullJournal, RecordKind
from roadstead.journal.disk import RealDisk
from roadstead.journal.files import FileJournal
from roadstead.placements import TableStore
from roadstead.protocol.status import Status
from roadstead.revisions import Revisions
from roadstead.run import RunPlan, build_profiles


class BinderActor:
    """Commits binds in order. `journal` is the seam where they become durable."""

    def __init__(self, plan: RunPlan, directory: Directory, journal: Journal | None = None) -> None:
        store = TableStore()
        profiles = build_profiles(plan, store.table.classes)
        self._verifier = Verifier(store.table, profiles)
        self._volumes = BinderVolumes(profiles)
        self._journal = journal or open_journal(plan)
        tells_all = not isinstance(self._journal, NullJournal)
        gangs = GangNeeds(plan.cluster, profiles, store.table)
        self.core = BinderCore(
            store,
            self._verify,
            BinderSettings(checks_versions=plan.settings.conflicts == "version"),
            tells_all=tells_all,
            missing=gangs.missing,
            fits=self._fits,
            undo=self._volumes.undo,
            verify_all=self._verify_all,
        )
        self._nodes_known, self._pods_known = Revisions(), Revisions()
        self._edits = BinderEdits(
            *(self.core, self._nodes_known, self._pods_known), self._perform_durably
        )
        self.outcomes = PodOutcomes()
        known = self._nodes_known, self._pods_known
        self.recovery = BinderRecovery(
            *(self.core, self._journal, self._volumes, self.outcomes), *known
        )
        self._answers = BinderAnswers(self.core, *known, self.outcomes)
        self._commits = CommitLog()
        self._order = BindOrder()
        self._batches = 0
        self._verifying_s = 0.0
        self._halted = ""
        if not self.recovery.recover():
            self._perform(self.recovery.begin(plan))

    def _verify(self, request: BindRequest) -> Status:
        return self._checked(request, self._volumes.commit)

    def _verify_all(self, requests: Sequence[BindRequest]) -> bool:
        if any(each.facts.volumes for each in requests):
            return False
        facts, nodes = [r.facts for r in requests], [r.node_name for r in requests]
        return self._verifier.verify_all(facts, nodes)

    def _fits(self, request: BindRequest) -> Status:
        return self._checked(request, self._volumes.try_out)

    def _checked(
        self, request: BindRequest, take: Callable[[str, PodFacts, NodeFacts], Status]
    ) -> Status:
        """All hard filters, and the claims that are taken with the pod."""
        status = self._verifier.verify(request.facts, request.node_name)
        if not status.is_success or not request.facts.volumes:
            return status
        node = self.core.placements.nodes[request.node_name]
        return take(request.token, request.facts, node)

    async def add_nodes(self, batch: NodeBatch) -> Nothing:
        """Nodes appear."""
        news = batch.news(self._nodes_known)
        self._perform_durably(self.core.add_nodes(news, batch.revision))
        return NOTHING

    async def add_running(self, batch: RunningPods) -> Nothing:
        """Pods that run already: bound from the start."""
        pods = [
            (identity.uid, identity.key, unnominated(facts), node)
            for (identity, facts), node in zip(batch.pods.pods(), batch.nodes, strict=True)
            if self._pods_known.comes(identity.uid, batch.pods.revision)
        ]
        self._perform_durably(self.core.load(pods))
        return NOTHING

    async def add_pending(self, batch: PodBatch) -> Nothing:
        """Pods that may be bound from now on."""
        news = batch.news_keyed(self._pods_known)
        pods = [(uid, key, unnominated(facts)) for uid, key, facts in news]
        self._perform_durably(self.core.add_pods(pods, batch.revision))
        return NOTHING

    async def remove_nodes(self, gone: NodeNames) -> Nothing:
        """Nodes disappear; their pods stay bound to them."""
        self._edits.remove_nodes(gone)
        return NOTHING

    async def update_pods(self, batch: PodBatch) -> StandingPage:
        """Pods are other than they were, bound or not; those that are gone stay so."""
        return self._edits.update_pods(batch)

    async def delete_pods(self, gone: PodsGone) -> PodBatch:
        """Pods are gone from the cluster, bound or not. Those that came again are left out."""
        return self._edits.delete_pods(gone)

    async def bind(self, batch: BindBatch) -> BindAnswers:
        """Commits a batch; the answers of its tokens, in their order."""
        await self._order.turn(batch.owner, batch.epoch, batch.number)
        started = time.perf_counter()
        nothing_read, no_transactions = (0,) * len(batch.nodes), ("",) * len(batch.nodes)
        rows = zip(
            batch.pods.keyed(),
            batch.nodes,
            batch.tokens,
            batch.read_versions or nothing_read,
            batch.transactions or no_transactions,
            strict=True,
        )
        requests = [
            BindRequest(token, uid, key, node, facts, batch.owner, batch.epoch, read, transaction)
            for (uid, key, facts), node, token, read, transaction in rows
        ]
        if self.core.current_epoch(batch.owner) is None:
            self.core.advance_epoch(batch.owner, batch.epoch)
        self._volumes.begin(batch.volumes)
        found = self._perform(self.recovery.with_claims(self.core.bind(requests)))
        self.recovery.bound_journal()
        self._commits.mark()
        self._verifying_s += time.perf_counter() - started
        self._batches += 1
        answers = _bind_answers({r.token: found[r.token] for r in requests if r.token in found})
        bound = len(answers.tokens) - len(answers.refused)
        log("binder", "batch committed", asked=len(requests), bound=bound)
        return answers

    async def evict(self, ask: Evict) -> Evicted:
        """Takes pods from the cluster; those that are not bound yet will never be."""
        state = {uid: self.core.standing(uid)[0] for uid in ask.uids}
        self.outcomes.begin_eviction(ask.uids, ask.preemptor, ask.node_name)
        bound = [uid for uid in ask.uids if state[uid] in COUNTED]
        effects = self.core.evict(bound, ask.preemptor)
        # A victim that is only assumed: its scheduler still has to ask for it.
        effects += self.core.delete(uid for uid in ask.uids if state[uid] is PodState.PENDING)
        self._perform_durably(effects)
        gone = [uid for uid in ask.uids if self.core.standing(uid)[0] is PodState.DELETED]
        log("binder", "evicted", pods=len(gone), preemptor=ask.preemptor, node=ask.node_name)
        pods = ((uid, *self.core.pod(uid)) for uid in gone)
        return Evicted(pod_batch((identity_of(uid, key), facts) for uid, key, facts in pods))

    async def preempted(self, ask: PageAsk) -> PreemptedPage:
        """Evicted pods in the order of their eviction, a page at a time."""
        return self.outcomes.preempted_page(ask)

    def _perform_durably(self, effects: Sequence[Effect]) -> None:
        """BinderHaltedError where the journal fails: what is not durable is not answered."""
        self._perform(effects)
        if self.core.halted is not None:
            raise BinderHaltedError(f"binder: halted: {self.core.halted.reason}")

    def _perform(self, effects: Sequence[Effect]) -> dict[str, Decision]:
        """Performs effects and those that follow from them; what is acknowledged, by token."""
        answers: dict[str, Decision] = {}
        listed = self.outcomes.bound
        waiting = deque(effects)
        while waiting:
            effect = waiting.popleft()
            if isinstance(effect, Acknowledge):
                token, _, decision = effect
                answers[token] = decision
                if isinstance(decision, Bound):
                    uid, node_name, _, _ = decision
                    # A token is answered as before, whatever became of its pod since.
                    if uid not in listed and self.core.is_bound_by(uid, token):
                        self._commits.note(uid)
                        listed[uid] = node_name
            elif isinstance(effect, AppendJournal):
                waiting += self._write(effect)
            elif isinstance(effect, Released):
                if effect.evicted:
                    self._pods_known.ends(effect.uid)
                self.outcomes.released(effect)
            elif isinstance(effect, Halted):
                durable = f"records 1 to {effect.flushed_lsn} of {effect.last_lsn} are durable"
                self._halted = f"{effect.reason}; {durable}"
        return answers

    def _write(self, effect: AppendJournal) -> list[Effect]:
        try:
            self._journal.append(effect.records)
            self._journal.flush()
        except Exception as failure:
            # Whatever it is: what is accepted and not in the journal may never be acknowledged.
            if not isinstance(failure, JournalError):
                log("binder", "journal failed", error=type(failure).__name__, text=str(failure))
            return self.core.flush_failed(str(failure) or type(failure).__name__)
        return self.core.flushed(effect.last_lsn)

    async def bound(self, ask: PageAsk) -> BoundPage:
        """Committed binds in commit order, a page at a time."""
        return self.outcomes.bound_page(ask)

    async def commits(self, ask: PageAsk) -> CommitPage:
        """When binds were acknowledged, a page at a time."""
        return self._commits.page(ask)

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
        return self._answers.nodes_of(ask.uids)

    async def resolve(self, ask: Attempts) -> Words:
        """What became of attempts, for good: those that committed nothing never will.

        BinderHaltedError where that could not be made durable.
        """
        pairs, node_of = zip(ask.uids, ask.tokens, strict=True), self._answers.node_of
        self._perform_durably(self.core.void(token for uid, token in pairs if not node_of(uid)))
        return self._answers.nodes_of(ask.uids)

    async def fence_owner(self, owner: Owner) -> Nothing:
        """Earlier lives of a scheduler commit nothing any more, also after a recovery.

        BinderHaltedError where that could not be made durable.
        """
        self._perform_durably(self.core.fence(owner.name, owner.epoch))
        return NOTHING

    async def evicted_pods(self, _: Nothing) -> PodBatch:
        """All that was evicted, see `BinderAnswers`."""
        return self._answers.evicted_pods()

    async def storage_log(self, _: Nothing) -> StorageLog:
        """All that commits changed of claims and volumes."""
        return StorageLog(tuple(self._volumes.log))

    async def end_run(self, ends: RunEnds) -> Nothing:
        """All is decided, and the outcome is kept; coming twice, the last one counts.

        BinderHaltedError where that cannot be made durable.
        """
        self._perform_durably(
            self.recovery.describe(RunMark(FINISHED, ends.digest), RecordKind.RUN)
        )
        return NOTHING

    async def stop(self, _: Nothing) -> Nothing:
        """End the journal and leave it to others: nothing is committed any more."""
        if isinstance(self._journal, FileJournal):
            self._journal.end()
        return NOTHING

    def crashed(self) -> None:
        """The folder is free for the next life."""
        self.recovery.crashed()

    async def status(self, _: Nothing) -> ActorStatus:
        return ActorStatus(
            f"had committed {len(self.outcomes.bound)} binds in {self._batches} batches",
            error=self._halted,
            timings_s=(("bind", self._verifying_s),),
            counts=(("bound", len(self.outcomes.bound)), ("batches", self._batches)),
        )


def _bind_answers(decisions: Mapping[str, Decision]) -> BindAnswers:
    """Decisions as they travel, by token."""
    found = decisions.values()
    return BindAnswers(
        tuple(decisions),
        tuple(each.uid for each in found),
        tuple(each.node_name if isinstance(each, Bound) else "" for each in found),
        tuple(each.lsn if isinstance(each, Bound) else 0 for each in found),
        tuple(each.version for each in found),
        tuple(
            (place, str(each.cause), each.status.reasons, each.row_version)
            for place, each in enumerate(found)
            if isinstance(each, Rejected)
        ),
    )


def open_journal(plan: RunPlan) -> Journal:
    """The journal of a run, which may hold its beginning. JournalError where it is in use."""
    folder = plan.settings.journal
    if folder is None:
        return NullJournal()
    return FileJournal(RealDisk(folder))
