"""SampledBatch: decides pods whose nodes are sampled, one after another, over one table.

    decide_by_kernel ──► the kernel evaluates as many rows as upstream would, in the node order
    decide     ──► Filter, search, PreScore, Score for one pod, on the reference path
                       │
                       └── either way the next search starts where this one ended

Each pod is evaluated separately, on the table with all placements before it, so that sums over
nodes are never out of date. Only claims that its placements bind are not visible: before a second
pod with claims, the batch ends.

Upstream: pkg/scheduler/schedule_one.go (findNodesThatPassFilters, numFeasibleNodesToFind).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from roadstead.cycle.batch import Batch, ClassInput, CompiledKernel, Decision, PodInCycle
from roadstead.cycle.node_search import NodeSearch, OrderedNodes
from roadstead.cycle.single_pod_cycle import SinglePodCycle
from roadstead.framework.tie_break import Chooser
from roadstead.kernel.kernel import Kernel
from roadstead.kernel.kernel_cache import KernelCache
from roadstead.kernel.pods import DecidedPods, Sampling
from roadstead.nodes.table import NodeTable


class SampledBatch(Batch):
    """A batch of sampled pods that no extender handles, on a table with all nodes of the order.

    _to_find: by scheduler name, the number of feasible nodes after which a search ends.
    _has_bound_claims: a placed pod has claims, which are bound only when the pod is assumed.
    """

    def __init__(
        self,
        table: NodeTable,
        classes: Mapping[Hashable, ClassInput],
        chooser: Chooser,
        node_search: NodeSearch,
        order: OrderedNodes,
        *,
        name_best: bool = False,
        compiled_kernel: CompiledKernel | None = None,
        kernels: KernelCache | None = None,
    ) -> None:
        super().__init__(
            table,
            classes,
            chooser,
            name_best=name_best,
            compiled_kernel=compiled_kernel,
            kernels=kernels,
        )
        self._node_search = node_search
        self._order = order
        profiles = {each.scores.evaluation.profile for each in classes.values()}
        self._to_find = {p.scheduler_name: node_search.to_find(p, len(table)) for p in profiles}
        self._has_bound_claims = False

    def _why_not(self, kernel: Kernel, signature: Hashable) -> str:
        if self._name_best:
            # The kernel's totals are of all rows, not only of those that a search visited.
            return "names of the best sampled nodes"
        return super()._why_not(kernel, signature) or kernel.why_not_sampled(signature)

    def _run_kernel(self, kernel: Kernel, pods: Sequence[PodInCycle]) -> DecidedPods:
        decided = kernel.decide(
            pods, Sampling(self._order.rows, self._node_search.start, self._to_find)
        )
        self._node_search.start = decided.next_start
        return decided

    def _decide(self, pod: PodInCycle) -> Decision | None:
        """Decide one pod with a search of its own; None ends the batch."""
        if self._has_bound_claims and pod.pod_class.facts.may_bind_claims:
            return None
        scores = self._classes[pod.signature].scores
        cycle = SinglePodCycle(scores, pod)
        if cycle.filtered is not None:
            profile = scores.evaluation.profile
            search_result = self._node_search.search(profile, pod, self._order, cycle.filtered)
            cycle.restrict(search_result)
            self._node_search.advance(search_result)
        decision = cycle.batch(self._chooser, name_best=self._name_best).decide(pod)
        assert decision is not None, "one pod alone is always decided"
        # With a search result, the class would not be covered by a later kernel (`may_be_covered`).
        scores.search_result = None
        if decision.node_name is not None:
            self._record_placement(pod.pod_class)
            self._has_bound_claims |= bool(pod.pod_class.facts.may_bind_claims)
        return decision
