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
from dataclasses import dataclass

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
from roadstead.framework.scoring import NO_PRE_SCORE
from roadstead.framework.tie_break import Chooser, TieBreak
from roadstead.framework.validity import Inputs, Validity, inputs_of, lasting_inputs_of
from roadstead.framework.worker_results import WorkerResults, worker_calls
from roadstead.kernel.kernel import Kernel
from roadstead.kernel.kernel_cache import KernelCache
from roadstead.kernel.per_pod_filters import filters_called_per_pod
from roadstead.kernel.single_pods import SinglePodKernel
from roadstead.nodes.table import NodeTable
from roadstead.protocol.errors import UnsupportedError

MAX_BATCH_PODS = 1 << 20
"""Where doubling the length of batches ends (`BatchBuilder.record_length`); hardly ever reached."""

MAX_WORKER_RESULTS = 512
"""Classes whose results from workers are stored for a later batch."""


@dataclass(slots=True)
class _CachedClass:
    """The cached results of a class, and their validity.

    lasting: the inputs without the state that some filters read anew at each call
    (`FilterPlugin.reads_current`).
    """

    class_input: ClassInput
    validity: Validity
    lasting: Inputs = (-1, None)

    def holds(self, inputs: Inputs, table: NodeTable, profile: Profile) -> bool:
        """Whether the results are still valid; shared results may have been computed again."""
        shared, pod = self.class_input.shared_evaluation, self.class_input.scores.evaluation.pod
        if self.validity.inputs != inputs or not (shared is None or shared.is_for(*inputs)):
            return False
        return self.validity.holds(table, profile, profile.cross_node, pod)

    def holds_without_current(self, lasting: Inputs, table: NodeTable, profile: Profile) -> bool:
        """Whether the results are valid, except those of filters that read the current state.

        The kernel calls such filters before each pod, and an evaluation filters again once their
        state differs. lasting: the inputs without that state.
        """
        class_input, evaluation = self.class_input, self.class_input.scores.evaluation
        current = filters_called_per_pod(evaluation)
        if not current or self.lasting != lasting or class_input.shared_evaluation is not None:
            return False
        if kernel_class(class_input).reads_other_nodes or class_input.pre_score.weighs_feasible:
            return False
        plugins = [each for each in profile.cross_node if each not in current]
        return self.validity.holds(table, profile, plugins, evaluation.pod)

    def renew(self, inputs: Inputs, table: NodeTable, profile: Profile) -> bool:
        """Bring own results up to date if only nodes changed since; return whether they are.

        The outcomes remain the same objects, by which a kernel knows that it is still valid. False
        where an outcome depends on other nodes, as the kernel has added its own placements to it.
        """
        class_input, scores = self.class_input, self.class_input.scores
        before, pod = self.validity.inputs, scores.evaluation.pod
        if class_input.shared_evaluation is not None or before[1] != inputs[1] or before == inputs:
            return False
        if not self.validity.holds(table, profile, profile.cross_node, pod):
            return False
        rerun = _run_class(scores)
        if not _are_outcomes_equal(class_input, rerun):
            return False
        self.validity.inputs = inputs
        return True


class BatchBuilder:
    """Chooses the pods of one batch at a time, evaluates their classes, and builds the batch.

    profiles: by scheduler name. memory_sharers: number of builders that share the memory for
    classes. allocates_devices: see `ContinuingBatch`.
    row_versions: by node, the versions of the rows that the last batches chose, for the binder to
        compare; empty if it does not.
    _max_pods: maximum pods of the next batch. _cached: results by class; _shared: results that
        classes of one shape share, by profile and shape; _searched_classes: by class that
        extenders handle.
    _single_pod: the cycle of the pod that extenders handle, while it is the batch. _worker_results:
        by class, until they are used.
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
        self._cached: ClassCache[_CachedClass] = ClassCache(memory_sharers)
        self._shared: ClassCache[_CachedClass] = ClassCache(memory_sharers)
        self._kernels = KernelCache()
        self._single_pods = SinglePodKernel()
        self._searched_classes: ClassCache[ClassScores] = ClassCache(memory_sharers)
        self._single_pod: SinglePodCycle | None = None
        self._order = OrderedNodesCache()
        self._worker_results: dict[Hashable, WorkerResults] = {}

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
        After an early end the next batch is short: results would be computed again.
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
        most = max_cached_classes(rows, self._memory_sharers)
        if len({pod.signature for pod in pods}) <= most:
            return pods
        pods = pods[: prefix_length((self._sharing_key(pod) for pod in pods), most)]
        most = max_batch_classes(rows, self._memory_sharers)
        return pods[: prefix_length((pod.signature for pod in pods), most)]

    def _sharing_key(self, pod: PodInCycle) -> Hashable:
        """Return a key that is equal for pods that share results: their shape or class."""
        profile = self._profiles[pod.pod_class.facts.scheduler_name]
        # Only the kernel decides by the results of another class.
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
        found: dict[Hashable, PodInCycle] = {}
        for pod in pods:
            profile = self._profiles.get(pod.pod_class.facts.scheduler_name)
            if pod.signature in found or profile is None:
                continue
            cached = self._cached.get(pod.signature)
            inputs = inputs_of(self.table, profile, pod.evaluated)
            if pod.signature in self._worker_results and not with_stored:
                continue
            if (cached is None or cached.validity.inputs != inputs) and worker_calls(profile):
                found[pod.signature] = pod
        return list(found.values())

    def store_worker_results(self, signature: Hashable, results: WorkerResults) -> None:
        """Store workers' results for a class until its next batch; the oldest are dropped."""
        self._worker_results[signature] = results
        while len(self._worker_results) > MAX_WORKER_RESULTS:
            del self._worker_results[next(iter(self._worker_results))]

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
            raise _with_pod(unsupported, pod) from unsupported

    def place_one(self, pod: PodInCycle) -> str | None:
        """Decide one pod by the kernel and place it; return its node.

        None, with nothing changed, if the kernel does not cover it or finds no node, or it has
        claims of devices: a batch decides it then. For pods without a nominated node, on a table
        without nominations and unconfirmed placements.
        """
        compiled_kernel, signature = self.compiled_kernel, pod.signature
        if (
            compiled_kernel is None
            or compiled_kernel.code is None
            or pod.pod_class.facts.device_claims
        ):
            return None
        profile = self._profiles[pod.pod_class.facts.scheduler_name]
        class_input = self._results_of(pod, profile).class_input
        if not may_be_covered(class_input):
            return None
        covered = kernel_class(class_input)
        kernel = self._single_pods.kernel_for(
            compiled_kernel.code, self.table, signature, covered, self._chooser
        )
        node_name = None if kernel is None else kernel.place_one(pod)
        compiled_kernel.coverage.by_kernel += node_name is not None
        return node_name

    def kernel_of(self, pods: Sequence[PodInCycle]) -> Kernel:
        """Return a new kernel for the classes of pods; no pod is decided on this table."""
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
            signature: self._results_of(
                pod.without_substitute() if without_substitutes else pod,
                self._profiles[pod.pod_class.facts.scheduler_name],
            ).class_input
            for signature, pod in first.items()
        }

    def _search_or_batch(self, pod: PodInCycle) -> Batch | PendingSearch:
        """Return the search for a pod that extenders handle; its batch if PreFilter refuses it."""
        profile = self._profiles[pod.pod_class.facts.scheduler_name]
        order = self._order.snapshot(self.table)
        alone = pod.without_substitute()
        scores = self._searched_classes.get(alone.signature) or self._new_scores(profile, alone)
        self._searched_classes.put(alone.signature, scores, len(self.table))
        try:
            self._single_pod = cycle = SinglePodCycle(scores, pod)
        except UnsupportedError as unsupported:
            raise _with_pod(unsupported, pod) from unsupported
        if cycle.found is None or self._node_search is None:
            return cycle.batch(self._chooser, name_best=self._name_best)
        return PendingSearch(self._node_search, profile, pod, order, cycle.found)

    def searched(self, search_result: SearchResult) -> Batch:
        """Return the batch of the pod whose nodes were searched."""
        assert self._single_pod is not None, "a search follows the Filter of its pod"
        self._single_pod.restrict(search_result)
        return self._single_pod.batch(self._chooser, name_best=self._name_best)

    def _results_of(self, pod: PodInCycle, profile: Profile) -> _CachedClass:
        cached = self._cached.get(pod.signature)
        inputs = inputs_of(self.table, profile, pod.evaluated)
        if cached is None or not (
            cached.holds(inputs, self.table, profile)
            or (pod.substitute is not None and self._holds_without_current(cached, pod, profile))
        ):
            cached = (
                self._shared_results(pod, profile, inputs, cached)
                or self._renewed(pod, profile, inputs, cached)
                or self._evaluated(pod, profile, inputs, cached)
            )
            shares = cached.class_input.shared_evaluation is not None
            self._cached.put(pod.signature, cached, len(self.table), shares=shares)
        return cached

    def _holds_without_current(
        self, cached: _CachedClass, pod: PodInCycle, profile: Profile
    ) -> bool:
        if self.compiled_kernel is None or self.compiled_kernel.code is None:
            return False
        lasting = lasting_inputs_of(self.table, profile, pod.evaluated)
        return cached.holds_without_current(lasting, self.table, profile)

    def _shared_results(
        self,
        pod: PodInCycle,
        profile: Profile,
        inputs: Inputs,
        cached: _CachedClass | None,
    ) -> _CachedClass | None:
        """Return the results of another class of the same shape, if they are valid for this one."""
        if self.compiled_kernel is None or not profile.has_shape(pod.pod_class):
            return None
        shared = self._shared.get((profile.scheduler_name, pod.evaluated.shape))
        if shared is None:
            return None
        if not shared.holds(inputs, self.table, profile):
            shared = self._renewed(pod, profile, inputs, shared)
            if shared is None or not _is_shareable(shared.class_input):
                return None
            if shared is cached:
                return shared
        if not shared.class_input.scores.evaluation.is_for(*inputs):
            return None
        scores = self._new_scores(profile, pod) if cached is None else cached.class_input.scores
        other, validity = shared.class_input, shared.validity
        # By constructor: `dataclasses.replace` takes several times as long, for each new class.
        class_input = ClassInput(scores, other.pre_filter, other.pre_score, other.scores.evaluation)
        unaffected_by = validity.unaffected_by
        return _CachedClass(class_input, Validity(validity.inputs, validity.changes, unaffected_by))

    def _renewed(
        self, pod: PodInCycle, profile: Profile, inputs: Inputs, cached: _CachedClass | None
    ) -> _CachedClass | None:
        """Return cached results, up to date after changes of nodes; None if that is impossible."""
        try:
            is_renewed = cached is not None and cached.renew(inputs, self.table, profile)
        except UnsupportedError as unsupported:
            raise _with_pod(unsupported, pod) from unsupported
        return cached if is_renewed else None

    def _evaluated(
        self,
        pod: PodInCycle,
        profile: Profile,
        inputs: Inputs,
        cached: _CachedClass | None,
    ) -> _CachedClass:
        scores = self._new_scores(profile, pod) if cached is None else cached.class_input.scores
        scores.evaluation.worker_results = self._worker_results.pop(pod.signature, None)
        validity = Validity(inputs, self.table.columns.changes)
        lasting = lasting_inputs_of(self.table, profile, pod.evaluated)
        try:
            found = _CachedClass(_run_class(scores), validity, lasting)
        except UnsupportedError as unsupported:
            raise _with_pod(unsupported, pod) from unsupported
        if profile.has_shape(pod.pod_class) and _is_shareable(found.class_input):
            shape = profile.scheduler_name, pod.evaluated.shape
            self._shared.put(shape, found, len(self.table))
        return found

    def _new_scores(self, profile: Profile, pod: PodInCycle) -> ClassScores:
        return ClassScores(Evaluation(profile, pod.evaluated, self.table))


def _with_pod(unsupported: UnsupportedError, pod: PodInCycle) -> UnsupportedError:
    """Return the error with the name of the pod that a plugin does not support."""
    return UnsupportedError(unsupported.plugin, f'Pod "{pod.key}"', unsupported.field)


def _run_class(scores: ClassScores) -> ClassInput:
    """Run PreFilter, Filter and PreScore for a class.

    PreScore runs even without a feasible row: a row may become feasible in the same batch, when a
    pod is placed to which this one has affinity, or later, when a pod leaves.
    """
    evaluation = scores.evaluation
    pre_filter = evaluation.run_pre_filter()
    evaluation.update(pre_filter)
    if not evaluation.pre_filter.status.is_success:
        return ClassInput(scores, pre_filter, NO_PRE_SCORE)
    return ClassInput(scores, pre_filter, evaluation.run_pre_score())


def _are_outcomes_equal(before: ClassInput, after: ClassInput) -> bool:
    """Whether a class has equal outcomes as before, none of which depends on other nodes."""
    if any(kernel_class(each).reads_other_nodes for each in (before, after)):
        return False
    return after.pre_filter.is_same(before.pre_filter) and after.pre_score.is_same(before.pre_score)


def _is_shareable(class_input: ClassInput) -> bool:
    """Whether the results of a class that do not depend on rows are valid for its whole shape.

    Those of a PreScore that reads which rows are feasible are not: amounts decide that.
    """
    return (
        class_input.pre_filter.status.is_success
        and bool(class_input.scores.evaluation.feasible.any())
        and not class_input.pre_score.weighs_feasible
    )
