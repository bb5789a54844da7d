"""LocalRun: queue, one scheduler, cache and binder in one process; the time is an argument.

    submit ──► SchedulingQueue ──► Scheduler ──► SchedulerCache ──► Binder ──► journal
                     ▲                 └── needs, answered ─────┘       │
                     └────────────────────── done, requeued ◄───────────┘

No messages, no threads, no clock: each call returns when all its consequences are applied. It
decides as actors with one scheduler do, since it consists of the same parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from roadstead.attempts.commands import PodReport
from roadstead.attempts.core import AttemptsCore
from roadstead.binder import BindRequest
from roadstead.binder.answers import BindAnswers, bind_answers
from roadstead.binder.pods import KeyedPod
from roadstead.cache import Assumption, ClusterState, SchedulerCache
from roadstead.cache.answers import CacheAnswer
from roadstead.cycle.batch import CompiledKernel
from roadstead.cycle.needs import CallExtenders, CatchUp, Prepare, WaitUntil
from roadstead.cycle.scheduling_cycle import CycleParts
from roadstead.extenders.caller import CallerOf
from roadstead.extenders.sequence import Extenders
from roadstead.facts.devices import DeviceClaimFacts
from roadstead.facts.node import NodeFacts
from roadstead.facts.node_list import NodeList
from roadstead.facts.pod import Pod, PodFacts, identity_of, without_nomination
from roadstead.framework.members import GroupMembers
from roadstead.journal import Journal, NullJournal
from roadstead.local.commits import BindWriter
from roadstead.local.drive import drive
from roadstead.local.nodes import LocalNodes
from roadstead.nodes.pod_class import PodClasses
from roadstead.queue.nominations import QueueSteps, SendNominations
from roadstead.queue.pods import QueueState
from roadstead.queue.reports import NodeChange, PendingReason
from roadstead.run import RunPlan, build_node_search, build_profiles
from roadstead.run_parts import build_binder, build_cluster_state, build_queue
from roadstead.scheduler.needs import (
    AssumePods,
    BindPods,
    EvictPods,
    LeasedPods,
    Need,
    NominatePods,
    RenewLeases,
    ReportPods,
    RequestLease,
    RunConcurrently,
    UpdateAttempts,
)
from roadstead.scheduler.scheduler import BatchDone, Scheduler
from roadstead.scheduler.volumes import SchedulerVolumes
from roadstead.storage import StorageChange
from roadstead.storage.claim_messages import AttemptBindings

ResultT = TypeVar("ResultT")
"""What steps of the queue return."""

OWNER, EPOCH = "scheduler-0", 1
"""The name of the only scheduler, and its epoch."""


class LocalRun:
    """One scheduler with queue, cache and binder. now_s: the current time, an argument of `run`.

    journal: records the binder's commits; by default nothing is recorded. compiled_kernel: None
    for decisions by the plugins alone. caller_of: returns the caller of an extender, by default
    over HTTP. binder, state: used in place of new ones that the plan describes. on_report: called
    with every report to the queue, before it is applied. failures: reports of attempts that failed.
    has_leased: whether the last `step` leased pods.
    """

    def __init__(
        self,
        plan: RunPlan,
        journal: Journal | None = None,
        compiled_kernel: CompiledKernel | None = None,
        caller_of: CallerOf | None = None,
        *,
        binder: BindWriter | None = None,
        state: ClusterState | None = None,
        on_report: Callable[[ReportPods], None] | None = None,
    ) -> None:
        settings = plan.settings
        assert settings.scheduler_count == 1, "one scheduler runs in one process"
        self.now_s = 0.0
        self.failures: list[PodReport] = []
        self._compiled_kernel, self.has_leased = compiled_kernel, False
        self.binder = binder or build_binder(plan, journal or NullJournal())
        self.state = state or build_cluster_state(plan)
        self._on_report = on_report
        # members: the pods of gangs, for the plugin Coscheduling.
        classes, members = PodClasses(), GroupMembers()
        self.profiles = profiles = build_profiles(plan, classes, members=members)
        self.nodes = LocalNodes(self.state, classes, settings)
        self.cache = SchedulerCache(self.state, self.nodes)
        self.queue = build_queue(plan)
        # All profiles have the same storage.
        self._volumes = SchedulerVolumes(next(iter(profiles.values())).storage)
        node_search = build_node_search(plan, caller_of)
        self.scheduler = Scheduler(
            AttemptsCore(OWNER, EPOCH, profiles),
            CycleParts(self.nodes, settings, profiles, node_search),
            *(self._volumes, Extenders() if node_search is None else node_search.extenders),
            *(classes, members),
            profile=settings.scheduler_profiles[0],
            on_failure=self.failures.append,
        )

    # The cluster, and pods that wait.

    def add_nodes(self, nodes: Iterable[NodeFacts]) -> None:
        """Add or change nodes; waiting pods that they may help are requeued."""
        new_nodes, nodes_before = list(nodes), self.state.core.placements.nodes
        node_list = NodeList.of(new_nodes)
        changes = [NodeChange(nodes_before.get(each.name), each) for each in new_nodes]
        self.binder.add_nodes(node_list)
        self.cache.add_nodes(node_list)
        self._drive_queue(self.queue.observe(changes, left=(), changed=(), now_s=self.now_s))

    def remove_nodes(self, names: Sequence[str]) -> None:
        """Remove nodes; their pods remain bound to them."""
        nodes_before = self.state.core.placements.nodes
        changes = [NodeChange(nodes_before[name], None) for name in names if name in nodes_before]
        self.binder.remove_nodes(names)
        # The pods of these nodes, which no longer block other pods.
        gone = self.cache.remove_nodes(names)
        self._drive_queue(self.queue.observe(changes, gone, changed=(), now_s=self.now_s))

    def add_running(self, pods: Sequence[Pod], nodes: Sequence[str]) -> None:
        """Add pods that already run, each on its node."""
        self.binder.add_running([_keyed(each) for each in pods], nodes)
        identities = [identity for identity, _ in pods]
        started_s = {each.uid: each.started_s for each in identities if each.started_s is not None}
        self.cache.add_running(pods, nodes, started_s=started_s)

    def delete_pods(self, uids: Sequence[str]) -> None:
        """Delete pods, bound or not; waiting pods that this may help are requeued."""
        deleted = [
            (identity_of(uid, key), facts) for uid, key, facts in self.binder.delete_pods(uids)
        ]
        self.cache.remove_pods(uids)
        self.queue.end_device_claims(uids)
        self.queue.remove_deleted(deleted, self.now_s)

    def submit(self, pods: Sequence[Pod]) -> tuple[str, ...]:
        """Submit pods to the queue; return the UIDs of those for which it has no room."""
        self.binder.add_pending([_keyed(each) for each in pods])
        return self._drive_queue(self.queue.submit(pods, self.now_s)).refused

    def add_device_claims(self, claims: Sequence[DeviceClaimFacts]) -> None:
        """Add claims of devices that were made for pods which are about to be submitted.

        They are not added to the binder: a caller whose binder checks claims must do that.
        """
        if claims:
            self.state.volumes.apply([StorageChange(device_claims=tuple(claims))])
            self.queue.add_device_claims(claims)

    def catch_up(self) -> None:
        """Apply the cache's changes of claims and volumes to the scheduler."""
        self._volumes.store_changes(self.state.volumes.changes_since(self._volumes.known))
        self._volumes.catch_up()

    def observe_bound(self, pods: Sequence[PodFacts], now_s: float) -> None:
        """Requeue waiting pods that may be helped by pods that were bound without the queue."""
        self._drive_queue(self.queue.observe_bound(pods, now_s))

    def observe_gone(self, pods: Sequence[Pod], now_s: float) -> None:
        """Requeue waiting pods that may be helped by pods that left their nodes."""
        self._drive_queue(self.queue.observe(nodes=(), left=pods, changed=(), now_s=now_s))

    # Scheduling.

    def advance(self, now_s: float) -> None:
        """Set the current time, unless that would set it back."""
        self.now_s = max(self.now_s, now_s)

    @property
    def is_busy(self) -> bool:
        """Whether a pod is in activeQ, leased or waits at Permit."""
        return bool(self.queue.core.active_count) or not self.scheduler.core.idle

    def run(self, now_s: float, *, until_refused: bool = False) -> int:
        """Decide and bind until no pod can be decided at this time; return how many were placed.

        until_refused: end after the lease in which a pod was found unschedulable.
        """
        placed = 0
        self.advance(now_s)
        while (done := self.step()) is not None or self.has_leased:
            placed += 0 if done is None else done.placed
            if until_refused and self._has_refused():
                break
        return placed

    def _has_refused(self) -> bool:
        pods = self.queue.core.pods
        return not pods(QueueState.IN_FLIGHT) and bool(pods(QueueState.UNSCHEDULABLE))

    def step(self) -> BatchDone | None:
        """Lease pods, or decide one batch and apply its consequences; None after a lease."""
        self.has_leased = False
        # Gangs (pods of which all are placed, or none) are tried one after another, in turns.
        self.queue.begin_gang_turn(self.now_s)
        return drive(self.scheduler.step(self.now_s), self._answer)

    # Results.

    def placements(self) -> Mapping[str, str]:
        """Return uid → node of the pods that were bound here, in the order of their commits."""
        return self.binder.outcomes.bound

    def pending(self) -> Sequence[PendingReason]:
        """Return why pods are pending."""
        return self.queue.pending()

    # Needs, answered without waiting.

    def _answer(self, need: Need) -> object:
        match need:
            case AssumePods() | UpdateAttempts() | NominatePods():
                return self._answer_of_cache(need)
            case BindPods():
                return self._bind(need)
            case RunConcurrently(steps):
                return drive(steps, self._answer)
            case EvictPods(uids, preemptors, claims):
                self.binder.deallocate(claims)
                evicted = self.binder.evict(uids, preemptors)
                return [(identity_of(uid, key), facts) for uid, key, facts in evicted]
            case RequestLease() | RenewLeases() | ReportPods():
                return self._answer_of_queue(need)
            case CallExtenders(_, work):
                return work()
            case Prepare():
                self.catch_up()
                return self._compiled_kernel
            case CatchUp():
                # The table has all changes of the cache already. So the cache has refused the
                # placements that it has not confirmed.
                self.nodes.tentative.undo_unconfirmed()
            case WaitUntil(at_s):
                self.advance(at_s)
        # The answer to CatchUp and WaitUntil; that to other needs, such as Phase, is ignored.
        return self.now_s

    def _answer_of_queue(self, need: RequestLease | RenewLeases | ReportPods) -> object:
        if isinstance(need, RequestLease):
            return self._lease(need)
        if isinstance(need, RenewLeases):
            return self.queue.renew(need.lease_ids, self.now_s)
        if self._on_report is not None:
            self._on_report(need)
        results = need.lease_id, need.bound, need.returned, need.pending_reasons, need.evicted
        self._drive_queue(self.queue.report(*results, self.now_s))
        self.queue.begin_gang_turn(self.now_s)
        return None

    def _lease(self, need: RequestLease) -> LeasedPods:
        # Pods of gangs that wait at Permit in the scheduler are leased with the next ones.
        self.queue.activate_gangs(need.gangs, self.now_s)
        batch = self.queue.lease(OWNER, EPOCH, need.max_pods, self.now_s, need.profile)
        self.has_leased = bool(batch.pods)
        return LeasedPods(
            batch.lease_id,
            [(pod.identity.uid, pod.identity.key, pod.facts) for pod in batch.pods],
            [pod.attempts for pod in batch.pods],
            [pod.tie_break_number for pod in batch.pods],
            self.queue.core.active_count,
            gangs=self.queue.bound_of_gangs(batch),
        )

    def _answer_of_cache(self, need: AssumePods | UpdateAttempts | NominatePods) -> CacheAnswer:
        refused: tuple[tuple[str, str], ...] = ()
        bound: tuple[AttemptBindings, ...] = ()
        if isinstance(need, AssumePods):
            assumed = [
                Assumption(a.uid, a.key, without_nomination(a.facts), a.node_name, a.token)
                for a in need.attempts
            ]
            outcome = self.cache.assume(assumed, self.now_s, bind_next=need.bind_next)
            refused, bound = outcome.refused, outcome.bound
        elif isinstance(need, UpdateAttempts):
            gone = self.cache.finish_attempts(
                need.forget, need.sent_to_binder, need.confirm, need.row_versions, self.now_s
            )
            if gone:
                self._drive_queue(
                    self.queue.observe(nodes=(), left=gone, changed=(), now_s=self.now_s)
                )
        else:
            pods = [(identity_of(n.uid, n.key), n.facts) for n in need.nominations]
            nodes = [n.node_name for n in need.nominations]
            preempts = [bool(n.victims) for n in need.nominations]
            self.cache.deallocate((n.deallocates, n.uid) for n in need.nominations)
            self.cache.nominate(pods, nodes, preempts, need.evicted)
        storage = self.state.volumes.changes_since(need.known_changes)
        # seq: the number of the cache's change that the table must reach before the answer is used;
        # 0, as this table has all changes.
        return CacheAnswer(refused, seq=0, volumes=bound, storage=storage)

    def _bind(self, need: BindPods) -> BindAnswers:
        count = len(need.attempts)
        versions = need.read_versions or (0,) * count
        transactions = need.transactions or ("",) * count
        rows = zip(need.attempts, versions, transactions, strict=True)
        requests = [
            BindRequest(
                *(a.token, a.uid, a.key, a.node_name, without_nomination(a.facts)),
                *(OWNER, EPOCH, version, transaction),
            )
            for a, version, transaction in rows
        ]
        return bind_answers(self.binder.bind(requests, need.volumes))

    def _drive_queue(self, steps: QueueSteps[ResultT]) -> ResultT:
        """Return the result of the queue's steps; their nominations are sent to the cache."""
        return drive(steps, self._nominate)

    def _nominate(self, need: SendNominations) -> float:
        self.cache.nominate(need.pods, need.nodes, preempts=[False] * len(need.pods))
        return self.now_s


def _keyed(pod: Pod) -> KeyedPod:
    """Return UID, key and facts of a pod."""
    identity, facts = pod
    return identity.uid, identity.key, facts
