"""The pod classes that a kernel covers, and the data that classes with one evaluation share.

A class is covered if every plugin that is not skipped for it either reads NODE facts only, so that
placements do not change its results, or is computed by compiled code, or is called again after
each placement (`roadstead.kernel.per_pod_filters`).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from roadstead.framework.evaluation import Evaluation
from roadstead.framework.guarded import PluginFailure
from roadstead.framework.plugin import MAX_NODE_SCORE, Plugin, PreScorePlugin, Reads
from roadstead.framework.pre_filtering import PreFilterOutcome
from roadstead.framework.scoring import NO_PRE_SCORE, PreScoreOutcome
from roadstead.kernel.amounts import INEXACT_AMOUNTS
from roadstead.kernel.lowering import lowerings
from roadstead.kernel.lowering.lowerings import RowLowering
from roadstead.kernel.per_pod_filters import (
    PerPodFilters,
    filters_called_per_pod,
    with_per_pod_filters,
)
from roadstead.kernel.static_scores import StaticScores, key_of, static_scores_of
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import NodeTable
from roadstead.protocol.status import Code

HIGHEST_TOTAL = 2**30
"""Classes whose weights allow higher totals are not covered: totals are int32."""


@dataclass(frozen=True, slots=True)
class KernelClass:
    """A pod class of a batch, after PreFilter and PreScore.

    evaluation: of the class, or of another class of its shape, from which it differs in resource
    amounts only. pre_score: NO_PRE_SCORE if PreScore was not called, as no node is feasible.
    """

    evaluation: Evaluation
    pod: PodClass
    pre_filter: PreFilterOutcome
    pre_score: PreScoreOutcome

    @property
    def reads_other_nodes(self) -> bool:
        """Whether PreFilter or PreScore stored state that may depend on other nodes.

        State of filters that are called before each pod of the class is not counted.
        """
        profile = self.evaluation.profile
        states = self.pre_filter.state, self.pre_score.state
        # Plugins that prepare Score without PreScore: what they store may be about any node. Those
        # in `cross_node` declare that they read other nodes.
        only_preparing = (p for p in profile.preparing_score if not isinstance(p, PreScorePlugin))
        per_pod = filters_called_per_pod(self.evaluation)
        plugins = (p for p in (*profile.cross_node, *only_preparing) if p not in per_pod)
        return any(state.has(plugin.name) for plugin in plugins for state in states)

    def is_same(self, other: KernelClass) -> bool:
        """Whether both were built from the same objects."""
        return (
            self.evaluation is other.evaluation
            and self.pre_filter is other.pre_filter
            and self.pre_score is other.pre_score
        )


@dataclass(frozen=True, slots=True)
class SharedEvaluation:
    """Data shared by covered classes with one evaluation.

    index: the evaluation's, in arrays by evaluation. first_class: one of these classes.
    state_version: version of what its plugins read outside the table, when the kernel was built.
    lowering: its plugins as data for compiled code. per_pod_filters: None if no filter of the class
    is called before each of its pods.
    """

    index: int
    first_class: KernelClass
    static_scores: StaticScores
    state_version: Hashable
    lowering: RowLowering
    per_pod_filters: PerPodFilters | None = None


class CoveredClass(NamedTuple):
    """A class that a kernel covers. class_index: its index in all arrays."""

    class_index: int
    kernel_class: KernelClass
    shared: SharedEvaluation

    @property
    def has_independent_rows(self) -> bool:
        """Whether the total of a row depends only on the pod and this row.

        There must be a single normalization group, so that all rows have the same normalized score.
        Counters are not considered here, but by the caller.
        """
        kernel_class = self.kernel_class
        depends_on_more = (
            kernel_class.reads_other_nodes
            or kernel_class.pod.facts.may_bind_claims
            or kernel_class.evaluation.pre_filter.node_names is not None
        )
        return not depends_on_more and self.shared.static_scores.raw.shape[1] == 1


class CoveredClasses:
    """The classes that are covered, and why others are not. covered, why_not: by signature.

    shares_static: whether equal static scores are stored once; else there is one entry for each
    evaluation. static_scores: of covered classes. evaluations: in order of `index`.
    """

    def __init__(
        self,
        table: NodeTable,
        classes: Mapping[Hashable, KernelClass],
        *,
        shares_static: bool = True,
    ) -> None:
        self._shares_static = shares_static
        self.covered: dict[Hashable, CoveredClass] = {}
        self.why_not: dict[Hashable, str] = {}
        self.static_scores: dict[Hashable, StaticScores] = {}
        self.evaluations: list[SharedEvaluation] = []
        # By id of an evaluation; a string is why its classes are not covered.
        examined: dict[int, SharedEvaluation | str] = {}
        for signature, each in classes.items():
            shared = examined.get(id(each.evaluation))
            if shared is None:
                shared = examined[id(each.evaluation)] = self._examine(each)
                if isinstance(shared, SharedEvaluation):
                    self.evaluations.append(shared)
            if isinstance(shared, str):
                self.why_not[signature] = shared
            elif each.pod.is_large:
                self.why_not[signature] = INEXACT_AMOUNTS
            else:
                self.covered[signature] = CoveredClass(len(self.covered), each, shared)

    def _examine(self, each: KernelClass) -> SharedEvaluation | str:
        """Return the shared evaluation of a class, or why it is not covered."""
        evaluation = each.evaluation
        if each.pre_filter.status.is_success and each.pre_score is NO_PRE_SCORE:
            return "no node is feasible"
        try:
            # The evaluation may be of another class of the shape: it gets this class's outcomes.
            evaluation.restart(each.pre_filter)
            evaluation.restart_scores(each.pre_score)
            if why := _why_not(evaluation):
                return why
            if filters_called_per_pod(evaluation):
                return self._examine_per_pod(each)
            key = key_of(evaluation) if self._shares_static else len(self.evaluations)
            scores = (
                self.static_scores[key]
                if key in self.static_scores
                else static_scores_of(evaluation)
            )
            if isinstance(scores, str):
                return scores
            self.static_scores[key] = scores
            version = evaluation.profile.state_version(evaluation.pod)
            index = len(self.evaluations)
            return SharedEvaluation(index, each, scores, version, RowLowering(evaluation))
        except PluginFailure:
            return "a plugin failed"

    def _examine_per_pod(self, each: KernelClass) -> SharedEvaluation | str:
        """Do the same for a class with filters that are called before each of its pods.

        Between pods only the rows that pass are updated. So the class is not covered if other
        results could change: those that depend on other nodes, or on which rows are feasible.
        """
        evaluation = each.evaluation
        name = filters_called_per_pod(evaluation)[0].name
        scores = static_scores_of(evaluation)
        if each.reads_other_nodes or each.pre_score.reads_feasible or isinstance(scores, str):
            return name
        version = evaluation.profile.state_version(evaluation.pod)
        found = with_per_pod_filters(evaluation, each.pre_filter, scores)
        if found is None:
            return name
        scores, filters = found
        # Not shared, because the rows of each evaluation change by themselves.
        self.static_scores[object()] = scores
        index = len(self.evaluations)
        return SharedEvaluation(index, each, scores, version, RowLowering(evaluation), filters)


def _why_not(evaluation: Evaluation) -> str:
    """Return why a class is not covered, after PreFilter and PreScore; "" if it is."""
    if not evaluation.pre_filter.status.is_success:
        return "rejected by PreFilter"
    if not evaluation.pre_score.is_success:
        return "rejected by PreScore"
    profile = evaluation.profile
    if not profile.score:
        return "no score plugins"
    for plugin in profile.filter:
        if plugin.name in evaluation.state.skipped or plugin.runs_per_pod(evaluation.pod):
            continue
        if not _can_decide_by(plugin):
            return plugin.name
    for each in profile.score:
        if each.plugin.name not in evaluation.score_state.skipped and not _can_decide_by(
            each.plugin
        ):
            return each.plugin.name
    if _has_failed(evaluation):
        return "a Filter failed"
    if why := lowerings.why_not(profile, evaluation.pod):
        return why
    if evaluation.pod.facts.nominated_node_name:
        return "nominated"
    if sum(each.weight for each in profile.score) * MAX_NODE_SCORE > HIGHEST_TOTAL:
        return "weights"
    return ""


def _has_failed(evaluation: Evaluation) -> bool:
    codes = evaluation.static_results()[0]
    failed = [k for k, each in enumerate(evaluation.statuses, 1) if each.code is Code.ERROR]
    return any((codes == code).any() for code in failed)


def _can_decide_by(plugin: Plugin) -> bool:
    return plugin.reads is Reads.NODE or lowerings.is_compiled(plugin)
