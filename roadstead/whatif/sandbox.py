"""Sandbox: a cluster in memory on which pods are scheduled, moved and removed to see the effect."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from roadstead.binder.binder import Binder
from roadstead.binder.outcomes import RemovedPod
from roadstead.config.concurrency import DecisionTime
from roadstead.config.settings import Settings
from roadstead.cycle.batch import CompiledKernel
from roadstead.facts.node import NodeFacts
from roadstead.facts.pod import Pod, PodFacts, PodIdentity
from roadstead.kernel.compiled_code import is_compiled, load, loaded
from roadstead.kernel.decision_counts import DecisionCounts
from roadstead.local.run import LocalRun
from roadstead.protocol.errors import InputError, RoadsteadError
from roadstead.queue.pods import QueueState
from roadstead.report.result import PendingPod, PreemptedPod
from roadstead.run import Progress, RunInputs, RunPlan
from roadstead.whatif.device_claims import SandboxClaims

KERNEL_PODS = 1024
"""Number of pods from which loading the kernel pays, if it is compiled already."""

COMPILED_PODS = 20_000
"""Number of pods from which it pays to compile the kernel, which takes up to a minute."""

BATCH_PODS = 512
"""Pods of one lease. Each refused pod is compared with all placements of its lease, so that a long
lease at the end of a count costs seconds. The decisions do not depend on it."""

NEVER_PODS = sys.maxsize
"""In place of KERNEL_PODS where the kernel cannot be loaded."""

WAITS_MAX = 100_000
"""Maximum number of waits for backoffs and gangs before all pods are decided."""

COPY_MARK = "+"
"""Between the name of a pod and the number of its copy: no name in a cluster contains it."""

OnProgress = Callable[[Progress], None]


def ignore(_: Progress) -> None:
    """Ignore progress."""


@dataclass(frozen=True, slots=True)
class Scheduled:
    """The result for some submitted pods.

    placed: UID → node. pending: pods without a node. preempted: pods that were evicted for others.
    """

    placed: Mapping[str, str]
    pending: tuple[PendingPod, ...]
    preempted: tuple[PreemptedPod, ...]

    @property
    def is_complete(self) -> bool:
        """Whether every pod has a node, and none was evicted for it."""
        return not self.pending and not self.preempted


def single_scheduler_plan(plan: RunPlan) -> RunPlan:
    """Return the plan for one scheduler without a journal, whose decisions are kube-scheduler's."""
    alone: dict[str, object] = {
        "schedulers": 1,
        "mode": None,
        "partitions": Settings.model_fields["partitions"].default,
        "workers": 0,
        "conflicts": "fit",
        "transaction": "incremental",
        "staleness_s": None,
        "decision_time": DecisionTime(),
        "journal": None,
        "batch": min(plan.settings.batch, BATCH_PODS),
    }
    return replace(plan, settings=plan.settings.model_copy(update=alone), resume=False)


class Sandbox:
    """A cluster in memory. result_of_inputs: for the pending pods of the inputs.

    nodes: by name. max_pods: maximum number of pods in one submission.

    The pods that remain pending are removed, so that a later change affects only the pods that are
    submitted after it. Raises InputError for pods that cannot be submitted.
    """

    def __init__(self, inputs: RunInputs, plan: RunPlan, progress: OnProgress = ignore) -> None:
        self._progress = progress
        self._compiled_kernel = CompiledKernel(None, DecisionCounts())
        # The kernel is loaded when this many pods have been submitted.
        self._pods_submitted, self._kernel_pods = 0, KERNEL_PODS
        # Number of copies and restored pods so far; it makes the name or the UID of each unique.
        self._copies = 0
        self._now_s = 0.0
        self.max_pods = plan.settings.bounds.queue_max_pods
        self._run = LocalRun(single_scheduler_plan(plan), compiled_kernel=self._compiled_kernel)
        # Claims of devices: those of copies, and those of removed pods until they are restored.
        self._claims = SandboxClaims(self._run, plan.cluster.devices.claims)
        # By UID; evicted pods remain, so that they can be restored.
        self._pods: dict[str, Pod] = {}
        self._node_of: dict[str, str] = {}
        # Node → UID → pod.
        self._pods_by_node: dict[str, dict[str, Pod]] = {}
        self.nodes = {each.name: each for each in inputs.nodes}
        self._run.add_nodes(inputs.nodes)
        inputs.check_identities()
        on_known_nodes = [each for each in inputs.running if each[2] in self.nodes]
        self.add_running([((identity, facts), name) for identity, facts, name in on_known_nodes])
        self.result_of_inputs = self.schedule(inputs.pending)
        self.remove(each.uid for each in self.result_of_inputs.pending)

    # The cluster as it is.

    def node_of(self, uid: str) -> str:
        """Return the node of a pod; "" if it has none."""
        return self._node_of.get(uid, "")

    def pods_on(self, node_name: str) -> list[Pod]:
        """Return the pods on a node, in the order in which they were added or placed."""
        return list(self._pods_by_node.get(node_name, {}).values())

    def priorities(self) -> set[int]:
        """Return the priorities of all pods that have a node."""
        return {
            facts.priority for pods in self._pods_by_node.values() for _, facts in pods.values()
        }

    # Pods are scheduled and removed.

    def _preempted(self) -> Sequence[RemovedPod]:
        binder = self._run.binder
        assert isinstance(binder, Binder), "a sandbox commits as a live run does"
        return binder.outcomes.removed

    def schedule(self, pods: Sequence[Pod], *, until_refused: bool = False) -> Scheduled:
        """Submit pods and decide until nothing changes any more. Raises InputError if too many.

        until_refused: end soon after the first refusal; the pods that are not decided then count as
        pending, and the caller must remove all pending ones.
        """
        if not pods:
            return Scheduled({}, (), ())
        self._load_kernel(len(pods))
        self._claims.add_new()
        removed_before, claims = len(self._preempted()), self._claims.current()
        self._pods |= {identity.uid: (identity, facts) for identity, facts in pods}
        nominated = [pod for pod in pods if pod[1].nominated_node_name]
        if nominated:
            nodes = [facts.nominated_node_name for _, facts in nominated]
            preempts = [False] * len(nominated)
            self._run.cache.nominate(nominated, nodes, preempts)
        if refused := self._run.submit(pods):
            problem = f"allows {self.max_pods:,} waiting pods, of {len(pods):,} that are submitted"
            self.remove(refused)
            raise InputError(problem, source="settings", field="bounds.queue_max_pods")
        self._decide(until_refused=until_refused)
        scheduled = self._result(pods, removed_before)
        for uid, name in scheduled.placed.items():
            self._record_node(self._pods[uid], name)
        self._claims.save_evicted([each.uid for each in scheduled.preempted], claims)
        for each in scheduled.preempted:
            self._forget_node(each.uid)
        return scheduled

    def remove(self, uids: Iterable[str]) -> None:
        """Remove pods, bound or not. Claims of volumes that they bound stay bound."""
        removed = list(uids)
        if removed:
            self._claims.save(removed)
            self._run.delete_pods(removed)
        for uid in removed:
            self._forget_node(uid)
            self._pods.pop(uid, None)

    def restore_preempted(self, pods: Iterable[PreemptedPod]) -> None:
        """Add preempted pods to their nodes again, with the same names and new UIDs."""
        self.restore_removed([(self._pods.pop(each.uid), each.node) for each in pods])

    def restore_removed(self, pods: Iterable[tuple[Pod, str]]) -> None:
        """Add removed pods to their nodes again, with the same names and new UIDs."""
        renamed = []
        for (identity, facts), node_name in pods:
            self._copies += 1
            # A UID that was removed may not be added again.
            renewed = replace(
                identity, uid=f"{identity.uid.partition(COPY_MARK)[0]}{COPY_MARK}{self._copies}"
            )
            facts = self._claims.restore(identity.uid, renewed, facts)
            renamed.append(((renewed, facts), node_name))
        self.add_running(renamed)

    def add_running(self, pods: Sequence[tuple[Pod, str]]) -> None:
        """Add running pods, each on its node, without a decision."""
        if pods:
            self._pods |= {pod[0].uid: pod for pod, _ in pods}
            self._run.add_running([pod for pod, _ in pods], [name for _, name in pods])
            for pod, name in pods:
                self._record_node(pod, name)

    def copy_of(self, pod: Pod, **changes: object) -> Pod:
        """Return a pod like another one, with a UID and a name of its own.

        changes: of its facts. It is neither nominated nor being deleted. It has claims of devices
        of its own where those of the pod were made from templates, and consumes the same others.
        """
        original, facts = pod
        self._copies += 1
        name = f"{original.name.partition(COPY_MARK)[0]}{COPY_MARK}{self._copies}"
        plain = replace(facts, nominated_node_name="", is_terminating=False, is_preempted=False)
        identity = PodIdentity(
            f"{original.namespace}/{name}", original.namespace, name, original.started_s
        )
        changed = replace(plain, **changes) if changes else plain  # type: ignore[arg-type]
        return identity, self._claims.of_copy(identity, changed)

    # Nodes.

    def change_nodes(self, nodes: Sequence[NodeFacts]) -> None:
        """Add nodes, or change those of the same names."""
        self.nodes |= {each.name: each for each in nodes}
        self._run.add_nodes(nodes)

    def remove_nodes(self, names: Sequence[str]) -> None:
        """Remove nodes that have no pods any more."""
        assert not any(self._pods_by_node.get(name) for name in names), (
            "a removed node still has pods"
        )
        for name in names:
            del self.nodes[name]
        self._run.remove_nodes(names)

    def _record_node(self, pod: Pod, node_name: str) -> None:
        self._node_of[pod[0].uid] = node_name
        self._pods_by_node.setdefault(node_name, {})[pod[0].uid] = pod

    def _forget_node(self, uid: str) -> None:
        name = self._node_of.pop(uid, "")
        self._pods_by_node.get(name, {}).pop(uid, None)

    def _decide(self, *, until_refused: bool) -> None:
        core = self._run.queue.core
        for _ in range(WAITS_MAX):
            self._run.run(self._now_s, until_refused=until_refused)
            self._now_s = max(self._now_s, self._run.now_s)
            if until_refused and core.pods(QueueState.UNSCHEDULABLE):
                return
            states = (QueueState.ACTIVE, QueueState.BACKOFF, QueueState.IN_FLIGHT)
            if not any(core.pods(state) for state in states):
                return
            next_s = core.next_wakeup_s()
            if next_s is None or next_s <= self._now_s:
                break
            self._now_s = next_s
        raise RoadsteadError("some pods are neither placed nor pending: they are tried for ever")

    def _result(self, pods: Sequence[Pod], removed_before: int) -> Scheduled:
        uids = {identity.uid for identity, _ in pods}
        placed = self._run.placements()
        preempted = tuple(
            PreemptedPod(each.key, each.uid, each.node_name, each.preemptor)
            for each in self._preempted()[removed_before:]
            if each.preemptor
        )
        pending = tuple(
            PendingPod(each.key, each.uid, each.message, each.reasons, each.plugins)
            for each in self._run.pending()
            if each.uid in uids
        )
        # In the order of the pods, not of the set.
        return Scheduled(
            {identity.uid: placed[identity.uid] for identity, _ in pods if identity.uid in placed},
            pending,
            preempted,
        )

    def _load_kernel(self, pods: int) -> None:
        """Load the compiled kernel once it pays; without numba the plugins decide everything."""
        self._pods_submitted += pods
        if self._compiled_kernel.code is not None or self._pods_submitted < self._kernel_pods:
            return
        try:
            if self._pods_submitted < COMPILED_PODS and not _is_compiled():
                self._kernel_pods = COMPILED_PODS
                return
            self._compiled_kernel.code = load(lambda note: self._progress(Progress(note=note)))
        except ImportError:
            self._kernel_pods = NEVER_PODS


def _is_compiled() -> bool:
    try:
        return loaded() is not None or is_compiled()
    except RuntimeError:
        # numba has no folder for machine code; `load` uses a temporary one.
        return False


def without_preemption(facts: PodFacts) -> PodFacts:
    """Return the facts of a pod that evicts no other pod."""
    return replace(facts, preemption_policy="Never")
