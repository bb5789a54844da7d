"""VirtualCluster: the cluster of a simulated run, which decides as a live one does.

    place ── fits, and nothing waits before it ──► on its node
      └───── else ──► submit ──► LocalRun: queue, scheduler, cache, TrustedCommits ──► on its node
    remove ──► off its node ──► waiting pods that may fit now are tried again

In virtual time pods arrive one by one, and most of them fit immediately. Such a pod needs no queue,
no lease, no assumption and no transaction, as nothing could refuse it there: `place` decides it
with the scheduler's own batch builder and adds it to the table. It is a *direct* pod: queue, cache
and binder do not know it. All others are decided by `LocalRun`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from roadstead.binder.pods import KeyedPod
from roadstead.cache import CacheSettings, ClusterState
from roadstead.cache.core import CacheCore
from roadstead.cache.volumes import CacheVolumes
from roadstead.cycle.batch import CompiledKernel, PodInCycle
from roadstead.cycle.batch_builder import BatchBuilder
from roadstead.cycle.explain import Explanation
from roadstead.cycle.jobs import SimulatedLatency
from roadstead.cycle.node_search import PendingSearch
from roadstead.cycle.plain_cycle import PlainCycle
from roadstead.devices.claim_maker import ClaimMaker
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.disruption import DisruptionBudget
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import Pod, PodFacts
from roadstead.framework.tie_break import TieBreak
from roadstead.local.run import LocalRun
from roadstead.nodes.partitioning import partitioning_over
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import NodeTable
from roadstead.protocol.errors import InputError
from roadstead.protocol.fast_init import fast_init
from roadstead.queue.reports import PendingReason
from roadstead.run import RunPlan
from roadstead.scheduler.needs import ReportPods
from roadstead.simulator.claims_without_pod import claims_without_pod
from roadstead.simulator.trusted_commits import TrustedCommits
from roadstead.simulator.uncounted_nodes import UncountedNodes
from roadstead.storage import StorageChange

MAX_CLASSES: Final = 100_000
"""Maximum number of classes that `place` caches; beyond it the cache is cleared."""


@fast_init
@dataclass(frozen=True, slots=True)
class _DirectPod:
    """A direct pod on its node."""

    key: str
    node_name: str
    pod_class: PodClass


@dataclass(frozen=True, slots=True)
class _DirectClass:
    """Pods with certain facts, as `place` decides them.

    facts: stored so that no others get their id. signature: see `PodInCycle`. is_direct: whether
    `place` may decide such pods.
    """

    facts: PodFacts
    pod_class: PodClass
    signature: Hashable
    is_direct: bool


class VirtualCluster:
    """Nodes and pods of a simulated run; every call returns when its consequences are applied.

    compiled_kernel: without it, `LocalRun` decides every pod. on_report: called with each report of
    the scheduler to the queue, on the pods that were bound and those that returned.
    """

    def __init__(
        self,
        plan: RunPlan,
        compiled_kernel: CompiledKernel | None = None,
        on_report: Callable[[ReportPods], None] | None = None,
    ) -> None:
        self._commits = TrustedCommits(self._evict_direct)
        self._run = LocalRun(
            plan,
            compiled_kernel=compiled_kernel,
            binder=self._commits,
            state=_uncounted_state(plan),
            on_report=on_report,
        )
        self._plan, self._compiled_kernel = plan, compiled_kernel
        self._claim_maker = ClaimMaker(plan.cluster.devices.templates)
        # How many changes of claims `pop_claim_changes` has returned.
        self._claim_changes_read = 0
        # A scheduler with mode `exact` has one scope, all nodes.
        self._batches: BatchBuilder = self._run.scheduler.cycle.scopes[0].builder
        # By UID.
        self._direct: dict[str, _DirectPod] = {}
        # By id of the facts.
        self._classes: dict[int, _DirectClass] = {}
        # Whether `place` may decide any pod.
        self._may_place = compiled_kernel is not None and _decides_alone(plan, self._batches)

    @property
    def table(self) -> NodeTable:
        """The node table, with all pods on nodes."""
        return self._run.nodes.table

    # Nodes.

    def add_nodes(self, nodes: Iterable[NodeFacts]) -> None:
        """Add or change nodes; waiting pods that may fit now are requeued."""
        self._run.add_nodes(nodes)

    def remove_nodes(self, names: Sequence[str]) -> None:
        """Remove nodes, with the pods on them that are decided and not bound yet.

        Bound pods must have been removed before.
        """
        for name in names:
            # `residents` are the pods that the table counts, by node.
            for each in tuple(self.table.residents.on(name)):
                direct = self._direct.pop(each.uid, None)
                if direct is not None:
                    self.table.remove_pod(name, direct.pod_class, uid=each.uid)
        self._run.remove_nodes(names)

    def set_budgets(self, budgets: tuple[DisruptionBudget, ...]) -> None:
        """Replace the disruption budgets that preemption reads."""
        for profile in self._run.profiles.values():
            profile.budgets = budgets

    def facts(self) -> ClusterFacts:
        """Return the other objects of the cluster as they are now: budgets, volumes and claims."""
        profile = next(iter(self._run.profiles.values()))
        at_start, now = self._plan.cluster, self._run.state.volumes.assumed_claims.storage
        storage = replace(
            at_start.storage, claims=tuple(now.claims.values()), volumes=tuple(now.volumes.values())
        )
        devices = replace(at_start.devices, claims=tuple(now.devices.claims.values()))
        return replace(at_start, storage=storage, budgets=profile.budgets, devices=devices)

    # Pods.

    def add_running(self, pods: Sequence[Pod], nodes: Sequence[str]) -> None:
        """Add pods that run already, each on its node."""
        self._run.add_running(pods, nodes)

    def place(self, pod: Pod, now_s: float) -> str | None:
        """Decide a new pod immediately if nothing waits before it; return its node.

        None if the pod was not added; it is to be submitted then.
        """
        identity, facts = pod
        if not self._nothing_waits():
            return None
        direct_class = self._class_of(facts, identity.uid)
        if not direct_class.is_direct:
            return None
        uid, key = identity.uid, identity.key
        node_name = self._decide(
            PodInCycle(uid, key, direct_class.pod_class, direct_class.signature)
        )
        if node_name is None:
            return None
        self._direct[uid] = _DirectPod(key, node_name, direct_class.pod_class)
        # Pods that were refused may fit next to it: requeue them, as after a bind.
        if self._run.queue.core.has_pods:
            self._run.observe_bound([facts], now_s)
        return node_name

    def submit(self, pods: Sequence[Pod], now_s: float) -> tuple[str, ...]:
        """Add pending pods; return the UIDs of those for which the queue has no room."""
        self._run.advance(now_s)
        pods, claims = self._claim_maker.with_claims(pods)
        self._run.add_device_claims(claims)
        return self._run.submit(pods)

    def with_device_claim_names(self, pod: Pod) -> Pod:
        """Return a pod whose facts name the claims of devices that were created for it."""
        (named,), _ = self._claim_maker.with_claims([pod])
        return named

    def remove(self, pods: Sequence[Pod], now_s: float) -> None:
        """Remove pods, pending or on a node; waiting pods that may fit now are requeued."""
        self._run.advance(now_s)
        direct_pods, others = [], []
        for identity, facts in pods:
            direct = self._direct.pop(identity.uid, None)
            if direct is None:
                others.append(identity.uid)
                continue
            self.table.remove_pod(direct.node_name, direct.pod_class, uid=identity.uid)
            direct_pods.append((identity, facts))
        if others:
            self._run.delete_pods(others)
        if direct_pods and self._run.queue.core.has_pods:
            self._run.observe_gone(direct_pods, now_s)

    # Scheduling.

    def run(self, now_s: float) -> None:
        """Decide and bind until nothing is left to do at this time.

        First, pods whose backoff or longest wait in unschedulablePods is over are requeued, and
        waits at Permit that are over are ended.
        """
        self._run.run(now_s)

    @property
    def can_lease(self) -> bool:
        """Whether a pod can be leased, and so decided, now."""
        return self._run.queue.core.can_lease

    @property
    def waiting_count(self) -> int:
        """The number of pods that wait for a node."""
        return self._run.queue.core.counts().queued

    def step(self, now_s: float) -> int:
        """Lease pods if none are leased; decide and bind one batch; return how many pods it had."""
        self._run.advance(now_s)
        # A step of `LocalRun` decides a batch, which it returns, or else returns None: after it has
        # leased pods (`has_leased`) the next one decides them; else there is nothing to decide.
        while (done := self._run.step()) is None and self._run.has_leased:
            pass
        return 0 if done is None else done.pods

    def next_wakeup_s(self) -> float | None:
        """Return the next time at which the queue moves a pod by itself; None if there is none."""
        return self._run.queue.core.next_wakeup_s()

    def pop_bound(self) -> list[tuple[str, str]]:
        """Return pods bound by `run` or `step` since the last call, with nodes, in commit order."""
        return self._commits.pop_bound()

    def pop_evicted(self) -> list[tuple[str, str]]:
        """Return pods evicted since the last call, with the keys of their preemptors."""
        return self._commits.pop_evicted()

    def pop_claim_changes(self) -> Sequence[StorageChange]:
        """Return the changes of claims since the last call, in order."""
        changes = self._run.state.volumes.changes_since(self._claim_changes_read).changes
        self._claim_changes_read += len(changes)
        return changes

    def pending(self) -> Sequence[PendingReason]:
        """Return why pods are pending."""
        return self._run.pending()

    def node_of(self, uid: str) -> str | None:
        """Return the node of a pod; None if it is on none."""
        direct = self._direct.get(uid)
        return self._commits.bound.get(uid) if direct is None else direct.node_name

    # Explanations.

    def explain(self, pod: Pod, others: Sequence[Pod] = (), nominated: str = "") -> Explanation:
        """Explain a pod as if it were on no node. The cluster cannot be used afterwards.

        others: pods that are removed from their nodes, too. nominated: the node to which the pod is
        nominated. Extenders are not called, and nodes are not sampled. InputError for a pod of no
        profile.
        """
        table, settings = self.table, self._plan.settings
        # The scheduler applies the cache's changes of claims only before a batch.
        self._run.catch_up()
        devices = next(iter(self._run.profiles.values())).storage.devices
        for identity, facts in map(self.with_device_claim_names, (pod, *others)):
            if node := self.node_of(identity.uid):
                table.remove_pod(node, table.classes.pod_class(facts), uid=identity.uid)
                devices.apply(claims_without_pod(devices, identity.uid))
        identity, facts = self.with_device_claim_names(pod)
        pod_class = table.classes.pod_class(facts)
        if nominated:
            # A pod's own nomination must not count against it.
            table.withdraw(nominated, pod_class)
        profile = self._run.profiles.get(facts.scheduler_name)
        if profile is None:
            problem = f"is not a profile of the configuration ({', '.join(self._run.profiles)})"
            raise InputError(problem, obj=f'Pod "{identity.key}"', value=facts.scheduler_name)
        # A cycle without the kernel: the plugins decide, as they can explain each node.
        cycle = PlainCycle(table, self._run.profiles, TieBreak(settings.tie_break, settings.seed))
        signature = profile.signature_of(pod_class, identity.uid)
        return cycle.explain(PodInCycle(identity.uid, identity.key, pod_class, signature))

    # Pods that `place` decides.

    def _nothing_waits(self) -> bool:
        """Whether a submitted pod would be the next one decided, and no pod is nominated."""
        return not (self._run.is_busy or self.table.nominations)

    def _class_of(self, facts: PodFacts, uid: str) -> _DirectClass:
        # By id, as hashing facts takes longer than deciding a pod.
        direct_class = self._classes.get(id(facts))
        if direct_class is None:
            if len(self._classes) >= MAX_CLASSES:
                self._classes.clear()
            direct_class = self._classes[id(facts)] = self._new_class(facts, uid)
        return direct_class

    def _new_class(self, facts: PodFacts, uid: str) -> _DirectClass:
        pod_class = self.table.classes.pod_class(facts)
        profile = self._run.profiles.get(facts.scheduler_name)
        if profile is None or not self._may_place or not _is_plain(facts):
            return _DirectClass(facts, pod_class, None, is_direct=False)
        signature = profile.signature_of(pod_class, uid)
        # The answers for one pod are used for its class: all plugins must sign it, so that its pods
        # share results; no plugin may act between Reserve and PostBind; and a user's PreEnqueue
        # plugin (`is_guarded`) might change its answer.
        is_direct = (
            profile.is_signed(pod_class)
            and profile.binds_without_plugins
            and not any(plugin.is_guarded for plugin in profile.pre_enqueue)
            and profile.run_pre_enqueue(facts).is_success
        )
        return _DirectClass(facts, pod_class, signature, is_direct)

    def _decide(self, pod: PodInCycle) -> str | None:
        """Return the node that the kernel chooses, on which the pod is then counted, or None."""
        # The scheduler sets it when it begins a batch of its own, so before the first it is None.
        self._batches.compiled_kernel = self._compiled_kernel
        if (node_name := self._batches.place_one(pod)) is not None:
            return node_name
        # `place_one` does not cover all classes that a batch covers.
        batch = self._batches.begin([pod])
        assert not isinstance(batch, PendingSearch), "no extender is called for a direct pod"
        decisions = batch.decide_by_kernel([pod])
        if not decisions:
            return None
        batch.flush()
        return decisions[0].node_name

    def _evict_direct(self, uid: str) -> KeyedPod | None:
        """Remove a pod that `place` put on a node, for a preemptor; None for any other."""
        direct = self._direct.pop(uid, None)
        if direct is None:
            return None
        # The scheduler may have removed the victim from its table ahead of the cache's change
        # (`Tentative.preempt`), and would wait for that change. If not, it is removed here: the
        # cache, which sends the removals of other victims, does not know it.
        if not self._run.nodes.tentative.forget_removal(uid, direct.node_name):
            self.table.remove_pod(direct.node_name, direct.pod_class, uid=uid)
        return uid, direct.key, direct.pod_class.facts


def _is_plain(facts: PodFacts) -> bool:
    """Whether pods with these facts reserve nothing but a node, and wait for no other pods."""
    return not (
        facts.may_bind_claims
        or facts.pod_group
        or facts.nominated_node_name
        or facts.is_terminating
    )


def _uncounted_state(plan: RunPlan) -> ClusterState:
    """Return the state of a cache whose pods are counted by the scheduler's table alone."""
    settings = CacheSettings(bind_s=plan.settings.deadlines.assume_s)
    return ClusterState(
        CacheCore(UncountedNodes(), settings),
        NodeTable(),
        CacheVolumes(plan.storage_state(), plan.binding_profiles()),
        partitioning_over(1),
    )


def _decides_alone(plan: RunPlan, batches: BatchBuilder) -> bool:
    """Whether one pod is decided immediately, on the current table, without calls of extenders.

    Not with other schedulers, a table that is older on purpose (staleness), or a simulated latency.
    """
    settings = plan.settings
    return (
        settings.concurrency == "exact"
        and not settings.staleness_s
        and not SimulatedLatency(settings.decision_time).is_on
        and batches.extenders is None
    )
