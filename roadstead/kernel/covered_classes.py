"""Which classes a kernel covers, and the data that they share."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from roadstead.framework.evaluation import Evaluation
from roadstead.framework.guarded import PluginFailure
from roadstead.framework.plugin import PreScorePlugin
from roadstead.framework.pre_filtering import PreFilterOutcome
from roadstead.framework.scoring import NO_PRE_SCORE, PreScoreOutcome
from roadstead.kernel.amounts import INEXACT_AMOUNTS
from roadstead.kernel.cover import why_not
from roadstead.kernel.lowering.lowerings import RowLowering
from roadstead.kernel.per_pod_filters import (
    PerPodFilters,
    filters_called_per_pod,
    with_per_pod_filters,
)
from roadstead.kernel.static_scores import StaticScores, key_of, static_scores_of
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import NodeTable


@dataclass(frozen=True, slots=True)
class KernelClass:
    """A class of a batch, after PreFilter and PreScore.

    evaluation: its own, or that of another class of its shape, valid except for resource amounts.
    """

    evaluation: Evaluation
    pod: PodClass
    pre_filter: PreFilterOutcome
    pre_score: PreScoreOutcome

    @property
    def reads_other_nodes(self) -> bool:
        """Whether PreFilter or PreScore stored state that may depend on other nodes.

        What filters store that are called before each pod of the class does not count.
        """
        profile = self.evaluation.profile
        states = self.pre_filter.state, self.pre_score.state
        unlisted = (p for p in profile.preparing_score if not isinstance(p, PreScorePlugin))
        per_pod = filters_called_per_pod(self.evaluation)
        plugins = (p for p in (*profile.cross_node, *unlisted) if p not in per_pod)
        return any(state.has(plugin.name) for plugin in plugins for state in states)

    def is_same(self, other: KernelClass) -> bool:
        """Whether both were built from the same objects."""
        mine, theirs = (
            (id(each.evaluation), id(each.pre_filter), id(each.pre_score)) for each in (self, other)
        )
        return mine == theirs


@dataclass(frozen=True, slots=True)
class SharedEvaluation:
    """Data shared by covered classes with one evaluation. index: its index in arrays.

    state_version: `Profile.state_version` of the first class when the kernel was built.
    per_pod_filters: if filters of the class are called before each of its pods.
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


class CoveredClasses:
    """The classes that are covered, and why others are not. covered, why_not: by signature.

    static_scores: those of covered classes, without duplicates; of each evaluation by itself if not
    shares_static. evaluations: in order of `index`.
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
            evaluation.restart(each.pre_filter)
            evaluation.restart_scores(each.pre_score)
            if why := why_not(evaluation):
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

        Only the rows that pass may change then, so what it computes for other nodes must not.
        """
        evaluation = each.evaluation
        name = filters_called_per_pod(evaluation)[0].name
        scores = static_scores_of(evaluation)
        if each.reads_other_nodes or each.pre_score.weighs_feasible or isinstance(scores, str):
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
