"""ClassResults: the results of pod classes over one node table, cached across batches.

of(pod) ──► cached and valid
     └────► else those of another class of the same shape
     └────► else cached, and brought up to date where nodes changed
     └────► else evaluated anew, with results of workers if they are stored

Inputs of results are the version of the nodes' facts and the plugins' own state of the pod. Lasting
inputs are without the state that only per-pod filters read: filters that a kernel calls again for
each pod (`FilterPlugin.runs_per_pod`).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from roadstead.cycle.batch import ClassInput, CompiledKernel, PodInCycle
from roadstead.cycle.cached_class import CachedClass, is_shareable, run_class
from roadstead.cycle.class_cache import ClassCache
from roadstead.cycle.class_scores import ClassScores
from roadstead.framework.evaluation import Evaluation
from roadstead.framework.profile import Profile
from roadstead.framework.validity import Inputs, Validity, inputs_of, lasting_inputs_of
from roadstead.framework.worker_results import WorkerResults, worker_calls
from roadstead.nodes.table import NodeTable
from roadstead.protocol.errors import UnsupportedError

MAX_WORKER_RESULTS = 512
"""Classes whose results from workers are stored for a later batch."""


class ClassResults:
    """The results of classes.

    memory_sharers: number of these objects that share the memory for classes. _own: results by
    class. _shared: results that classes of one shape (that differ in resource amounts only) share,
    by profile and shape. worker_results: of users' plugins, by class, until they are used.
    """

    def __init__(self, table: NodeTable, memory_sharers: int) -> None:
        self._table = table
        self._own: ClassCache[CachedClass] = ClassCache(memory_sharers)
        self._shared: ClassCache[CachedClass] = ClassCache(memory_sharers)
        self.worker_results: dict[Hashable, WorkerResults] = {}

    def missing_classes(
        self, pods: Sequence[PodInCycle], profiles: Mapping[str, Profile], *, with_stored: bool
    ) -> list[PodInCycle]:
        """Return one pod of each class; see `BatchBuilder.missing_classes`."""
        found: dict[Hashable, PodInCycle] = {}
        for pod in pods:
            profile = profiles.get(pod.pod_class.facts.scheduler_name)
            if pod.signature in found or profile is None:
                continue
            cached = self._own.get(pod.signature)
            inputs = inputs_of(self._table, profile, pod.evaluated)
            if pod.signature in self.worker_results and not with_stored:
                continue
            is_missing = cached is None or cached.validity.inputs != inputs
            # `worker_calls`: the users' plugins that workers can call, if there are any.
            if is_missing and worker_calls(profile):
                found[pod.signature] = pod
        return list(found.values())

    def store_worker_results(self, signature: Hashable, results: WorkerResults) -> None:
        """Store workers' results for a class until its next batch; the oldest are dropped."""
        self.worker_results[signature] = results
        while len(self.worker_results) > MAX_WORKER_RESULTS:
            del self.worker_results[next(iter(self.worker_results))]

    def of(
        self, pod: PodInCycle, profile: Profile, compiled_kernel: CompiledKernel | None
    ) -> CachedClass:
        """Return the results of a pod's class that are valid for the table as it is.

        compiled_kernel: if there is one, results of another class of the shape may be used. Raises
        UnsupportedError, with the pod's name, if a plugin does not support the pod.
        """
        cached = self._own.get(pod.signature)
        inputs = inputs_of(self._table, profile, pod.evaluated)
        if cached is None or not (
            cached.holds(inputs, self._table, profile)
            or (
                pod.substitute is not None
                and self._holds_without_per_pod_filters(cached, pod, profile, compiled_kernel)
            )
        ):
            cached = (
                self._shared_results(pod, profile, inputs, cached, compiled_kernel)
                or self._renewed(pod, profile, inputs, cached)
                or self._evaluated(pod, profile, inputs, cached)
            )
            shares = cached.class_input.shared_evaluation is not None
            self._own.put(pod.signature, cached, len(self._table), shares=shares)
        return cached

    def _holds_without_per_pod_filters(
        self,
        cached: CachedClass,
        pod: PodInCycle,
        profile: Profile,
        compiled_kernel: CompiledKernel | None,
    ) -> bool:
        """Whether cached results are valid for a kernel, which calls per-pod filters again."""
        if compiled_kernel is None or compiled_kernel.code is None:
            return False
        inputs = lasting_inputs_of(self._table, profile, pod.evaluated)
        return cached.holds_without_per_pod_filters(inputs, self._table, profile)

    def _shared_results(
        self,
        pod: PodInCycle,
        profile: Profile,
        inputs: Inputs,
        cached: CachedClass | None,
        compiled_kernel: CompiledKernel | None,
    ) -> CachedClass | None:
        """Return the results of another class of the same shape, if they are valid for this one."""
        # `has_shape`: no plugin's results differ within a shape, apart from resource amounts.
        if compiled_kernel is None or not profile.has_shape(pod.pod_class):
            return None
        shared = self._shared.get((profile.scheduler_name, pod.evaluated.shape))
        if shared is None:
            return None
        if not shared.holds(inputs, self._table, profile):
            shared = self._renewed(pod, profile, inputs, shared)
            if shared is None or not is_shareable(shared.class_input):
                return None
            # The class's own results are those that its shape shares: they were just renewed.
            if shared is cached:
                return shared
        if not shared.class_input.scores.evaluation.is_for(*inputs):
            return None
        scores = self._new_scores(profile, pod) if cached is None else cached.class_input.scores
        other, validity = shared.class_input, shared.validity
        # By constructor: `dataclasses.replace` takes several times as long, for each new class.
        class_input = ClassInput(scores, other.pre_filter, other.pre_score, other.scores.evaluation)
        # The same set object for all classes of the shape: a pod that does not affect one of these
        # classes does not affect the others.
        unaffected_by = validity.unaffected_by
        return CachedClass(class_input, Validity(validity.inputs, validity.changes, unaffected_by))

    def _renewed(
        self, pod: PodInCycle, profile: Profile, inputs: Inputs, cached: CachedClass | None
    ) -> CachedClass | None:
        """Return cached results, up to date after changes of nodes; None if that is impossible."""
        try:
            is_renewed = cached is not None and cached.renew(inputs, self._table, profile)
        except UnsupportedError as unsupported:
            raise with_pod_name(unsupported, pod) from unsupported
        return cached if is_renewed else None

    def _evaluated(
        self,
        pod: PodInCycle,
        profile: Profile,
        inputs: Inputs,
        cached: CachedClass | None,
    ) -> CachedClass:
        scores = self._new_scores(profile, pod) if cached is None else cached.class_input.scores
        scores.evaluation.worker_results = self.worker_results.pop(pod.signature, None)
        validity = Validity(inputs, self._table.columns.changes)
        lasting_inputs = lasting_inputs_of(self._table, profile, pod.evaluated)
        try:
            found = CachedClass(run_class(scores), validity, lasting_inputs)
        except UnsupportedError as unsupported:
            raise with_pod_name(unsupported, pod) from unsupported
        if profile.has_shape(pod.pod_class) and is_shareable(found.class_input):
            shape = profile.scheduler_name, pod.evaluated.shape
            self._shared.put(shape, found, len(self._table))
        return found

    def _new_scores(self, profile: Profile, pod: PodInCycle) -> ClassScores:
        return ClassScores(Evaluation(profile, pod.evaluated, self._table))


def with_pod_name(unsupported: UnsupportedError, pod: PodInCycle) -> UnsupportedError:
    """Return the error with the name of the pod that a plugin does not support."""
    return UnsupportedError(unsupported.plugin, f'Pod "{pod.key}"', unsupported.field)
