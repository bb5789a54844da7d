"""TableCycle: decides batches of pods over a node table that holds all nodes.

    begin(pods) ──► BatchRun over the table ──► decided pods stand on it
         ▲                                              │
         └── what a class was found to be is kept ◄─────┘
             while nothing that it depends on changes

The table follows the cache's changes, but not while a batch is decided. A pod that extenders look
at is a batch of its own: `begin` returns a `PendingSearch`, and `searched` takes its result. So
is a pod that is nominated to a node, which is looked at before all others (`nominated.py`). A pod
that `decide` cannot settle (None) and those behind it go into the next batch.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

from roadstead.cycle.alone import Alone
from roadstead.cycle.batch import Accelerator, BatchRun, ClassInput, PodInCycle, kernel_classes
from roadstead.cycle.class_memory import ClassMemory, most_classes, most_together, within
from roadstead.cycle.class_run import ClassRun
from roadstead.cycle.node_search import NodeSearch, OrderedNodesOf, PendingSearch
from roadstead.cycle.nominated import NominatedBatch
from roadstead.cycle.sampled import SampledBatch
from roadstead.cycle.whole import WholeBatch
from roadstead.extenders.chain import Extenders
from roadstead.framework.evaluation import Evaluation
from roadstead.framework.found_nodes import SearchResult
from roadstead.framework.given import Given, answered_elsewhere
from roadstead.framework.profile import Profile
from roadstead.framework.scoring import NO_PRE_SCORE
from roadstead.framework.tie_break import Chooser, TieBreak
from roadstead.framework.validity import Inputs, Validity, inputs_of
from roadstead.kernel.keeper import KernelKeeper
from roadstead.kernel.kernel import Kernel
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import NodeTable
from roadstead.protocol.errors import UnsupportedError

MAX_REACH = 1 << 20

MOST_GIVEN = 512
"""Classes of which what workers found is kept for a batch that comes."""


@dataclass(slots=True)
class _Held:
    """What a class was found to be, and until when that holds."""

    given: ClassInput
    validity: Validity

    def holds(self, inputs: Inputs, table: NodeTable, profile: Profile) -> bool:
        """Whether it would be found to be the same. What it shares may be found anew meanwhile."""
        model, pod = self.given.model, self.given.run.evaluation.pod
        if self.validity.inputs != inputs or not (model is None or model.is_for(*inputs)):
            return False
        return self.validity.holds(table, profile, profile.cross_node, pod)


class TableCycle:
    """Decides batches of pods over a table that holds all nodes. One batch at a time.

    profiles: of the table's classes. sharers: how many such cycles share the memory for classes.
    """

    def __init__(
        self,
        table: NodeTable,
        profiles: Mapping[str, Profile],
        tie_break: TieBreak,
        *,
        name_best: bool = False,
        node_search: NodeSearch | None = None,
        accelerator: Accelerator | None = None,
        sharers: int = 1,
    ) -> None:
        self.table = table
        self.accelerator = accelerator
        self.row_versions: dict[str, int] = {}
        self._profiles = profiles
        self._node_search = node_search
        self._chooser = Chooser(tie_break)
        self._name_best = name_best
        self._reach = MAX_REACH
        self._sharers = sharers
        self._held: ClassMemory[_Held] = ClassMemory(sharers)
        self._models: ClassMemory[_Held] = ClassMemory(sharers)
        self._kernels = KernelKeeper()
        self._searched_runs: ClassMemory[ClassRun] = ClassMemory(sharers)
        self._alone: Alone | None = None
        self._order = OrderedNodesOf()
        self._given: dict[Hashable, Given] = {}

    @property
    def extenders(self) -> Extenders | None:
        """The extenders of the configuration, if there are any."""
        return None if self._node_search is None else self._node_search.extenders

    def searches_nodes(self, pod: PodInCycle) -> bool:
        """Whether sampling or extenders look at a pod: it needs all nodes in their order."""
        return self._node_search is not None and self._node_search.concerns(pod.info.facts)

    def samples(self, pod: PodInCycle) -> bool:
        """Whether a pod's nodes are sampled, and no extender has a say."""
        node_search = self._node_search
        if node_search is None or not node_search.concerns(pod.info.facts):
            return False
        return not node_search.extenders.looks_at(pod.info.facts)

    def together(self, pods: Sequence[PodInCycle]) -> Sequence[PodInCycle]:
        """The first pods, as many as to begin at once; sampled pods together, those that are
        nominated or that extenders look at alone.

        Where placements keep ending batches early, what would be found of pods that are not settled
        would only be found again.
        """
        pods = self._few_classes(pods[: self._reach])
        if not pods or self._goes_alone(pods[0]):
            return pods[:1]
        samples = self.samples(pods[0])
        for place, pod in enumerate(pods):
            if pod.info.facts.nominated_node_name:
                return pods[:place]
            # Asked of each pod of each batch, mostly where nothing searches_nodes.
            if self._node_search is not None and (
                self.searches_nodes(pod) is not samples or self.samples(pod) is not samples
            ):
                return pods[:place]
        return pods

    def _goes_alone(self, pod: PodInCycle) -> bool:
        if pod.info.facts.nominated_node_name:
            return True
        return self.searches_nodes(pod) and not self.samples(pod)

    def _few_classes(self, pods: Sequence[PodInCycle]) -> Sequence[PodInCycle]:
        """The first pods, of no more classes than what is found of them may take of memory."""
        rows = len(self.table)
        most = most_classes(rows, self._sharers)
        if len({pod.signature for pod in pods}) <= most:
            return pods
        pods = pods[: within((self._sharing_key(pod) for pod in pods), most)]
        most = most_together(rows, self._sharers)
        return pods[: within((pod.signature for pod in pods), most)]

    def _sharing_key(self, pod: PodInCycle) -> Hashable:
        """Equal for pods that share what is found of them."""
        profile = self._profiles[pod.info.facts.scheduler_name]
        shares = self.accelerator is not None and profile.has_shape(pod.info)
        return pod.info.shape if shares else pod.signature

    def settled(self, asked: int, decided: int) -> None:
        """Learns from a batch that took effect: ended early, the next is short; whole, longer."""
        longer = min(MAX_REACH, 2 * self._reach)
        self._reach = longer if decided == asked else max(1, decided)
        search_result = None if self._alone is None else self._alone.run.search_result
        if search_result is not None and self._node_search is not None:
            self._node_search.settle(search_result)

    def unfound(self, pods: Sequence[PodInCycle], *, with_given: bool = False) -> list[PodInCycle]:
        """One pod of each class of which users' plugins would be asked over all rows.

        with_given: also where workers were, and what they found waits for the next batch.
        """
        if not pods or self.searches_nodes(pods[0]) or pods[0].info.facts.nominated_node_name:
            return []
        found: dict[Hashable, PodInCycle] = {}
        for pod in pods:
            profile = self._profiles.get(pod.info.facts.scheduler_name)
            if pod.signature in found or profile is None:
                continue
            held = self._held.get(pod.signature)
            inputs = inputs_of(self.table, profile, pod.info)
            if pod.signature in self._given and not with_given:
                continue
            if (held is None or held.validity.inputs != inputs) and answered_elsewhere(profile):
                found[pod.signature] = pod
        return list(found.values())

    def give(self, signature: Hashable, given: Given) -> None:
        """Takes what workers found of a class for a batch that comes; old ones may be lost."""
        self._given[signature] = given
        while len(self._given) > MOST_GIVEN:
            del self._given[next(iter(self._given))]

    def begin(self, pods: Sequence[PodInCycle]) -> BatchRun | PendingSearch:
        """A batch that is ready to be decided; or, of one pod, the search that calls extenders.

        KeyError for a pod of no profile.
        """
        self._alone = None
        searches_nodes = self.searches_nodes(pods[0])
        if searches_nodes and not self.samples(pods[0]):
            return self._look(pods[0])
        if (nominated := self._nominated(pods[0])) is not None:
            return nominated
        classes = self._classes_of(pods)
        if searches_nodes and self._node_search is not None:
            return SampledBatch(
                self.table,
                classes,
                self._chooser,
                self._node_search,
                self._order.take(self.table),
                name_best=self._name_best,
                accelerator=self.accelerator,
                kernels=self._kernels,
            )
        return WholeBatch(
            self.table,
            classes,
            self._chooser,
            name_best=self._name_best,
            accelerator=self.accelerator,
            kernels=self._kernels,
        )

    def _nominated(self, pod: PodInCycle) -> BatchRun | None:
        """The batch of a pod that its nominated node takes."""
        try:
            return NominatedBatch.where_taken(
                self._profiles[pod.info.facts.scheduler_name],
                self.table,
                pod,
                self._chooser,
                name_best=self._name_best,
                accelerator=self.accelerator,
            )
        except UnsupportedError as missing:
            raise _of_pod(missing, pod) from missing

    def kernel_of(self, pods: Sequence[PodInCycle]) -> Kernel:
        """A kernel of its own for the classes of some pods that nobody decides on this table."""
        accelerator = self.accelerator
        assert accelerator is not None, "there is a kernel"
        assert accelerator.code is not None, "and its code"
        classes = kernel_classes(self._classes_of(pods))
        return Kernel(accelerator.code, self.table, classes, self._chooser)

    def _classes_of(self, pods: Sequence[PodInCycle]) -> dict[Hashable, ClassInput]:
        first: dict[Hashable, PodInCycle] = {}
        for pod in pods:
            first.setdefault(pod.signature, pod)
        return {
            signature: self._held_of(
                signature, pod, self._profiles[pod.info.facts.scheduler_name]
            ).given
            for signature, pod in first.items()
        }

    def _look(self, pod: PodInCycle) -> BatchRun | PendingSearch:
        """Filter for a pod that extenders look at, which goes alone."""
        profile = self._profiles[pod.info.facts.scheduler_name]
        order = self._order.take(self.table)
        run = self._searched_runs.get(pod.signature) or self._new_run(profile, pod.info)
        self._searched_runs.put(pod.signature, run, len(self.table))
        try:
            self._alone = one = Alone(run, pod)
        except UnsupportedError as missing:
            raise _of_pod(missing, pod) from missing
        if one.found is None or self._node_search is None:
            return one.batch(self._chooser, name_best=self._name_best)
        return PendingSearch(self._node_search, profile, pod, order, one.found)

    def searched(self, search_result: SearchResult) -> BatchRun:
        """The batch of the pod whose nodes were searched."""
        assert self._alone is not None, "a search follows the Filter of its pod"
        self._alone.restrict(search_result)
        return self._alone.batch(self._chooser, name_best=self._name_best)

    def _held_of(self, signature: Hashable, pod: PodInCycle, profile: Profile) -> _Held:
        held = self._held.get(signature)
        inputs = inputs_of(self.table, profile, pod.info)
        if held is None or not held.holds(inputs, self.table, profile):
            held = self._like_another(pod, profile, inputs, held) or self._found(
                pod, profile, inputs, held
            )
            shares = held.given.model is not None
            self._held.put(signature, held, len(self.table), shares=shares)
        return held

    def _like_another(
        self,
        pod: PodInCycle,
        profile: Profile,
        inputs: Inputs,
        held: _Held | None,
    ) -> _Held | None:
        """What another class of its kind was found to be, if that holds for this one, too."""
        if self.accelerator is None or not profile.has_shape(pod.info):
            return None
        model = self._models.get((profile.scheduler_name, pod.info.shape))
        if model is None or not model.holds(inputs, self.table, profile):
            return None
        if not model.given.run.evaluation.is_for(*inputs):
            return None
        run = self._new_run(profile, pod.info) if held is None else held.given.run
        given = replace(model.given, run=run, model=model.given.run.evaluation)
        return _Held(given, replace(model.validity))

    def _found(
        self,
        pod: PodInCycle,
        profile: Profile,
        inputs: Inputs,
        held: _Held | None,
    ) -> _Held:
        run = self._new_run(profile, pod.info) if held is None else held.given.run
        run.evaluation.given = self._given.pop(pod.signature, None)
        validity = Validity(inputs, self.table.columns.changes)
        try:
            found = _Held(_asked(run), validity)
        except UnsupportedError as missing:
            raise _of_pod(missing, pod) from missing
        if profile.has_shape(pod.info) and _is_model(found.given):
            shape = profile.scheduler_name, pod.info.shape
            self._models.put(shape, found, len(self.table))
        return found

    def _new_run(self, profile: Profile, info: PodClass) -> ClassRun:
        return ClassRun(Evaluation(profile, info, self.table))


def _of_pod(missing: UnsupportedError, pod: PodInCycle) -> UnsupportedError:
    return UnsupportedError(missing.plugin, f'Pod "{pod.key}"', missing.field)


def _asked(run: ClassRun) -> ClassInput:
    """A class after PreFilter, Filter and PreScore.

    PreScore also where no row is feasible: one may become so in the same batch, by a pod that this
    one wants to be near, or later, by a pod that leaves.
    """
    evaluation = run.evaluation
    pre_filter = evaluation.run_pre_filter()
    evaluation.update(pre_filter)
    if not evaluation.pre_filter.status.is_success:
        return ClassInput(run, pre_filter, NO_PRE_SCORE)
    return ClassInput(run, pre_filter, evaluation.run_pre_score())


def _is_model(found: ClassInput) -> bool:
    """Whether all that was found of a class beside rows holds for all of its kind."""
    return (
        found.pre_filter.status.is_success
        and bool(found.run.evaluation.feasible.any())
        and not found.pre_score.weighs_feasible
    )
