"""BatchBuilder: builds the batches of a scheduler, over a node table that holds all nodes.

    begin(pods) ──► Batch over the table ──► decided pods are on the table
         ▲                                              │
         └── results of a class are cached ◄────────────┘
             while nothing that they depend on changes

The table follows the cache's changes, but not while a batch is decided. A pod that extenders handle
is a batch by itself: `begin` returns a `PendingSearch`, and `searched` receives its result. A pod
with a nominated node is also a batch by itself: that node is evaluated first
(`nominated_batch.py`). A pod for which `decide` returns None, and the pods behind it, are left for
the next batch.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from roadstead.cycle.batch import (
    Batch,
    ClassInput,
    CompiledKernel,
    PodInCycle,
    kernel_class,
    kernel_classes,
    may_be_covered,
)
from roadstead.cycle.class_cache import (
    ClassCache,
    max_batch_classes,
    max_cached_classes,
    prefix_length,
)
from roadstead.cycle.class_results import ClassResults, with_pod_name
from roadstead.cycle.class_scores import ClassScores
from roadstead.cycle.continuing_batch import ContinuingBatch
from roadstead.cycle.node_search import NodeSearch, OrderedNodesCache, PendingSearch
from roadstead.cycle.nominated_batch import NominatedBatch
from roadstead.cycle.sampled_batch import SampledBatch
from roadstead.cycle.single_pod_cycle import SinglePodCycle
from roadstead.extenders.sequence import Extenders
from roadstead.framework.evaluation import Evaluation
from roadstead.framework.found_nodes import SearchResult
from roadstead.framework.profile import Profile
from roadstead.framework.tie_break import Chooser, TieBreak
from roadstead.framework.worker_results import WorkerResults
from roadstead.kernel.kernel import Kernel
from roadstead.kernel.kernel_cache import KernelCache
from roadstead.kernel.single_pods import SinglePodKernel
from roadstead.nodes.table import NodeTable
from roadstead.protocol.errors import UnsupportedError

MAX_BATCH_PODS = 1 << 20
"""Maximum pods of a batch; hardly ever reached: the length doubles with each batch that is decided
to its end."""


class BatchBuilder:
    """Choose the pods of one batch at a time, evaluate their classes, and build the batch.

    profiles: by scheduler name. memory_sharers: number of builders that share the memory bounds of
    `class_cache`. allocates_devices: a batch allocates devices to the pods that it places, so that
    it may have several pods with device claims (`ContinuingBatch`).
    row_versions: by node, the versions of the rows that the last batches chose, for the binder to
        compare; empty if the binder compares none.
    _max_pods: maximum pods of the next batch. _single_pods: the kernel of `place_one`. _order: the
        ordered node list for node search. _searched_classes: results by class that extenders
        handle. _single_pod: the cycle of the pod that extenders handle, while it is the batch.
    """

    def __init__(
        self,
        table: NodeTable,
        profiles: Mapping[str, Profile],
        tie_break: TieBreak,
        *,
        name_best: bool = False,
        node_search: NodeSearch | None = None,
        compiled_kernel: CompiledKernel | None = None,
        memory_sharers: int = 1,
        allocates_devices: bool = False,
    ) -> None:
        self.table = table
        self.allocates_devices = allocates_devices
        self.compiled_kernel = compiled_kernel
        self.row_versions: dict[str, int] = {}
        self._profiles = profiles
        self._node_search = node_search
        self._chooser = Chooser(tie_break)
        self._name_best = name_best
        self._max_pods = MAX_BATCH_PODS
        self._memory_sharers = memory_sharers
        self._results = ClassResults(table, memory_sharers)
        self._kernels = KernelCache()
        self._single_pods = SinglePodKernel()
        self._searched_classes: ClassCache[ClassScores] = ClassCache(memory_sharers)
        self._single_pod: SinglePodCycle | None = None
        self._order = OrderedNodesCache()

    @property
    def extenders(self) -> Extenders | None:
        """The extenders of the configuration, if it has a node search."""
        return None if self._node_search is None else self._node_search.extenders

    def searches_nodes(self, pod: PodInCycle) -> bool:
        """Whether sampling or extenders apply to a pod: it needs the ordered node list."""
        return self._node_search is not None and self._node_search.applies_to(pod.pod_class.facts)

    def samples(self, pod: PodInCycle) -> bool:
        """Whether a pod's nodes are searched in order, and no extender handles the pod.

        Where any profile samples, this includes pods of other profiles (`NodeSearch.applies_to`).
        """
        node_search = self._node_search
        if node_search is None or not node_search.applies_to(pod.pod_class.facts):
            return False
        return not node_search.extenders.handles(pod.pod_class.facts)

    def next_batch(self, pods: Sequence[PodInCycle]) -> Sequence[PodInCycle]:
        """Return the pods of the next batch: the first ones, as many as may be decided together.

        Sampled pods form batches of their own; a pod that is nominated or that extenders handle is
        a batch by itself. Unless the batch allocates devices, it has one pod with device claims.
        After a batch that ended early the next one is short: the results for the pods behind such
        an end are computed in vain.
        """
        pods = self._limit_classes(pods[: self._max_pods])
        if not pods or self._is_single(pods[0]):
            return pods[:1]
        samples, has_claims = self.samples(pods[0]), False
        for index, pod in enumerate(pods):
            if pod.pod_class.facts.device_claims and (samples or not self.allocates_devices):
                if has_claims:
                    return pods[:index]
                has_claims = True
            if pod.pod_class.facts.nominated_node_name:
                return pods[:index]
            # Runs for every pod of every batch; mostly there is no node search.
            if self._node_search is not None and (
                self.searches_nodes(pod) is not samples or self.samples(pod) is not samples
            ):
                return pods[:index]
        return pods

    def _is_single(self, pod: PodInCycle) -> bool:
        if pod.pod_class.facts.nominated_node_name:
            return True
        return self.searches_nodes(pod) and not self.samples(pod)

    def _limit_classes(self, pods: Sequence[PodInCycle]) -> Sequence[PodInCycle]:
        """Return the first pods, as many as the memory bounds on classes allow."""
        rows = len(self.table)
        # First the bound on classes with results of their own: those of one shape may share them.
        most = max_cached_classes(rows, self._memory_sharers)
        if len({pod.signature for pod in pods}) <= most:
            return pods
        pods = pods[: prefix_length((self._sharing_key(pod) for pod in pods), most)]
        # Then the bound on all classes, because the kernel stores totals for each.
        most = max_batch_classes(rows, self._memory_sharers)
        return pods[: prefix_length((pod.signature for pod in pods), most)]

    def _sharing_key(self, pod: PodInCycle) -> Hashable:
        """Return a key that is equal for pods that share results: their shape or class."""
        profile = self._profiles[pod.pod_class.facts.scheduler_name]
        # Only the kernel decides by the results of another class. `has_shape`: all plugins have the
        # same results for all classes of the shape, apart from resource amounts.
        shares = self.compiled_kernel is not None and profile.has_shape(pod.pod_class)
        return pod.evaluated.shape if shares else pod.signature

    def record_length(self, begun: int, decided: int) -> None:
        """Adapt the length of the next batch: shorter after an early end, else longer.

        begun: number of the batch's pods. decided: how many of them were decided.
        """
        longer = min(MAX_BATCH_PODS, 2 * self._max_pods)
        self._max_pods = longer if decided == begun else max(1, decided)
        search_result = None if self._single_pod is None else self._single_pod.scores.search_result
        if search_result is not None and self._node_search is not None:
            self._node_search.advance(search_result)

    def missing_classes(
        self, pods: Sequence[PodInCycle], *, with_stored: bool = False
    ) -> list[PodInCycle]:
        """Return one pod of each class for which users' plugins would be called over all rows.

        with_stored: include classes with results from workers that are stored for the next batch.
        """
        if not pods or self.searches_nodes(pods[0]) or pods[0].pod_class.facts.nominated_node_name:
            return []
        return self._results.missing_classes(pods, self._profiles, with_stored=with_stored)

    def store_worker_results(self, signature: Hashable, results: WorkerResults) -> None:
        """Store workers' results for a class until its next batch; the oldest are dropped."""
        self._results.store_worker_results(signature, results)

    def begin(self, pods: Sequence[PodInCycle]) -> Batch | PendingSearch:
        """Return a batch that is ready to be decided, or one pod's search that calls extenders.

        Raises KeyError for a pod whose scheduler name has no profile.
        """
        self._single_pod = None
        searches_nodes = self.searches_nodes(pods[0])
        if searches_nodes and not self.samples(pods[0]):
            return self._search_or_batch(pods[0])
        if (nominated := self._nominated(pods[0])) is not None:
            return nominated
        # A search concerns one pod, so its class is evaluated for it alone.
        classes = self._classes_of(pods, without_substitutes=searches_nodes)
        if searches_nodes and self._node_search is not None:
            return SampledBatch(
                self.table,
                classes,
                self._chooser,
                self._node_search,
                self._order.snapshot(self.table),
                name_best=self._name_best,
                compiled_kernel=self.compiled_kernel,
                kernels=self._kernels,
            )
        batch = ContinuingBatch(
            self.table,
            classes,
            self._chooser,
            name_best=self._name_best,
            compiled_kernel=self.compiled_kernel,
            kernels=self._kernels,
        )
        batch.allocates_devices = self.allocates_devices
        return batch

    def _nominated(self, pod: PodInCycle) -> Batch | None:
        """Return the batch of a pod whose nominated node passes, else None."""
        try:
            return NominatedBatch.if_it_passes(
                self._profiles[pod.pod_class.facts.scheduler_name],
                self.table,
                pod,
                self._chooser,
                name_best=self._name_best,
                compiled_kernel=self.compiled_kernel,
            )
        except UnsupportedError as unsupported:
            raise with_pod_name(unsupported, pod) from unsupported

    def place_one(self, pod: PodInCycle) -> str | None:
        """Decide one pod by the kernel and place it; return its node.

        None, with nothing changed, if the kernel does not cover it or finds no node, or it has
        claims of devices: a batch decides it then. Call it only for a pod without a nominated node,
        on a table that has neither nominations nor unconfirmed placements.
        """
        compiled_kernel, signature = self.compiled_kernel, pod.signature
        if (
            compiled_kernel is None
            or compiled_kernel.code is None
            or pod.pod_class.facts.device_claims
        ):
            return None
        profile = self._profiles[pod.pod_class.facts.scheduler_name]
        class_input = self._results.of(pod, profile, compiled_kernel).class_input
        if not may_be_covered(class_input):
            return None
        covered = kernel_class(class_input)
        kernel = self._single_pods.kernel_for(
            compiled_kernel.code, self.table, signature, covered, self._chooser
        )
        node_name = None if kernel is None else kernel.place_one(pod)
        compiled_kernel.decision_counts.by_kernel += node_name is not None
        return node_name

    def kernel_of(self, pods: Sequence[PodInCycle]) -> Kernel:
        """Return a new kernel for the classes of pods, to evaluate them; it places no pods."""
        compiled_kernel = self.compiled_kernel
        assert compiled_kernel is not None, "there is a kernel"
        assert compiled_kernel.code is not None, "and its code"
        classes = kernel_classes(self._classes_of(pods))
        return Kernel(compiled_kernel.code, self.table, classes, self._chooser)

    def _classes_of(
        self, pods: Sequence[PodInCycle], *, without_substitutes: bool = False
    ) -> dict[Hashable, ClassInput]:
        """Return the classes of pods by signature.

        without_substitutes: each pod is evaluated by its own class.
        """
        first: dict[Hashable, PodInCycle] = {}
        for pod in pods:
            first.setdefault(pod.signature, pod)
        return {
            signature: self._results.of(
                pod.without_substitute() if without_substitutes else pod,
                self._profiles[pod.pod_class.facts.scheduler_name],
                self.compiled_kernel,
            ).class_input
            for signature, pod in first.items()
        }

    def _search_or_batch(self, pod: PodInCycle) -> Batch | PendingSearch:
        """Return the search for a pod that extenders handle; its batch if PreFilter refuses it."""
        profile = self._profiles[pod.pod_class.facts.scheduler_name]
        order = self._order.snapshot(self.table)
        alone = pod.without_substitute()
        scores = self._searched_classes.get(alone.signature) or ClassScores(
            Evaluation(profile, alone.evaluated, self.table)
        )
        self._searched_classes.put(alone.signature, scores, len(self.table))
        try:
            self._single_pod = cycle = SinglePodCycle(scores, pod)
        except UnsupportedError as unsupported:
            raise with_pod_name(unsupported, pod) from unsupported
        if cycle.filtered is None or self._node_search is None:
            return cycle.batch(self._chooser, name_best=self._name_best)
        return PendingSearch(self._node_search, profile, pod, order, cycle.filtered)

    def searched(self, search_result: SearchResult) -> Batch:
        """Return the batch of the pod whose nodes were searched."""
        assert self._single_pod is not None, "a search follows the Filter of its pod"
        self._single_pod.restrict(search_result)
        return self._single_pod.batch(self._chooser, name_best=self._name_best)
