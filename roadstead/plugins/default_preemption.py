"""DefaultPreemption: if no node is feasible, evict pods of lower priority from one.

    eligible?    preemptionPolicy is not Never, and no victim of an earlier preemption still
                 terminates on the pod's nominated node
    dry run      on the nodes refused with Unschedulable, until max(minCandidateNodesPercentage %
                 of them, minCandidateNodesAbsolute) candidates are found
    choice       the candidate with the smallest loss (`Candidate.loss`: PDB violations, then the
                 priorities of the victims); `pick` chooses among candidates that are equally good

A candidate is a node with the victims that must leave it. Nodes that were refused with
Unschedulable are *helpful*: removing pods may help there.

The dry run itself is in `roadstead.preemption`: the caller of the plugin makes it between
`dry_run_size`, which says how many candidates it should find, and `post_filter`, which turns its
result (`PostFilterView.dry_run_result`) into a nomination or into upstream's message.

Upstream: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go and
pkg/scheduler/framework/preemption/preemption.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

from roadstead.config.plugin_args import DefaultPreemptionArgs
from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.pod import PodFacts
from roadstead.framework.events import (
    ActionType,
    EventPod,
    EventResource,
    ObjectChange,
    QueueingHint,
    RegisteredEvent,
    on,
)
from roadstead.framework.plugin import EnqueueExtensions, PostFilterPlugin, PreEnqueuePlugin, Reads
from roadstead.framework.post_filter_answers import PostFilterResult, PostFilterView
from roadstead.framework.victims import DryRunResult
from roadstead.preemption.choice import best
from roadstead.preemption.dry_run import NO_VICTIMS
from roadstead.protocol.errors import UnsupportedError
from roadstead.protocol.status import SUCCESS, Code, Status, error, unschedulable

NOT_HELPFUL = "Preemption is not helpful for scheduling"
_NEVER = unschedulable("preemption: not eligible due to preemptionPolicy=Never.")
_WAITS = unschedulable("preemption: not eligible due to a terminating pod on the nominated node.")
_NONE_LEFT = unschedulable("preemption: no candidate node for preemption")
_PERCENT = 100


class DefaultPreemption(PostFilterPlugin, PreEnqueuePlugin, EnqueueExtensions):
    name = "DefaultPreemption"
    reads = Reads.NODE
    shares_by_shape = True

    def __init__(self, args: DefaultPreemptionArgs) -> None:
        self._args = args

    def pre_enqueue(self, pod: PodFacts) -> Status:
        """Return Success: a pod whose victims are not yet evicted is in flight, not queued."""
        return SUCCESS

    def events_to_register(self) -> tuple[RegisteredEvent, ...]:
        return (on(EventResource.POD, ActionType.DELETE, self.after_pod_deleted),)

    def after_pod_deleted(
        self, pod: PodFacts, change: ObjectChange[EventPod], cluster: ClusterFacts
    ) -> QueueingHint:
        """Never queue: the plugins that refused the nodes have hints of their own."""
        return QueueingHint.QUEUE_SKIP

    def dry_run_size(self, pod: PodFacts, failed: PostFilterView) -> int | None:
        # `lowest`: the lowest priority of all pods on nodes.
        helpful, lowest = self._count_helpful_nodes(failed), failed.lowest_priority
        if pod.preemption_policy == "Never" or not helpful:
            return None
        if lowest is None or lowest >= pod.priority:
            return None
        share = helpful * self._args.min_candidate_nodes_percentage // _PERCENT
        return min(max(share, self._args.min_candidate_nodes_absolute), helpful)

    def post_filter(self, pod: PodFacts, failed: PostFilterView) -> PostFilterResult:
        if pod.preemption_policy == "Never":
            return PostFilterResult(_NEVER)
        wanted, helpful, dry_run_result = (
            self.dry_run_size(pod, failed),
            self._count_helpful_nodes(failed),
            failed.dry_run_result,
        )
        if wanted is None:
            # Without a helpful node or a pod of lower priority, a dry run would find no victims.
            dry_run_result = DryRunResult(nodes=helpful, reasons=((NO_VICTIMS, helpful),))
        if dry_run_result is None:
            # A dry run is wanted, and the caller made none.
            raise UnsupportedError(self.name, "", f"spec.priority: {pod.priority}")
        if not dry_run_result.candidates:
            return _no_candidate(failed.node_count, dry_run_result)
        # All candidates with the smallest loss: upstream would choose any of them.
        equals = best(dry_run_result.candidates)
        node = failed.pick([each.node_name for each in equals])
        return PostFilterResult(
            SUCCESS,
            node,
            candidates=dry_run_result.candidates,
            acceptable=tuple(each.node_name for each in equals),
            # A dry run for as many candidates as there are helpful nodes tries all of them.
            exhaustive=wanted is None or wanted >= helpful,
        )

    @staticmethod
    def _count_helpful_nodes(failed: PostFilterView) -> int:
        """Count the nodes on which preemption may help: all if PreFilter was Unschedulable."""
        if failed.pre_filter.code is Code.UNSCHEDULABLE:
            return failed.node_count
        return failed.helpful if failed.pre_filter.is_success else 0

    def sign(self, pod: PodFacts) -> Hashable:
        return (pod.priority, pod.preemption_policy)


def _no_candidate(nodes: int, dry_run_result: DryRunResult) -> PostFilterResult:
    if dry_run_result.waits:
        return PostFilterResult(_WAITS)
    if dry_run_result.refused_by_extenders:
        return PostFilterResult(_NONE_LEFT)
    if dry_run_result.errors:
        joined = ", ".join(dry_run_result.errors)
        text = joined if len(dry_run_result.errors) == 1 else f"[{joined}]"
        return PostFilterResult(error(f"preemption: {text}"))
    counts = Counter(dict(dry_run_result.reasons))
    counts[NOT_HELPFUL] += nodes - dry_run_result.nodes
    reasons = sorted(f"{count} {reason}" for reason, count in counts.items() if count)
    text = f"preemption: 0/{nodes} nodes are available: {', '.join(reasons)}."
    return PostFilterResult(unschedulable(text), nominated_node="")
