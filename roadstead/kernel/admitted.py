"""Admission of classes to a kernel: which are covered, and the data that they share."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from roadstead.framework.evaluation import Evaluation
from roadstead.framework.guarded import PluginFailure
from roadstead.framework.plugin import PreScorePlugin
from roadstead.framework.pre_filtering import PreFilterOutcome
from roadstead.framework.scoring import NO_PRE_SCORE, PreScoreOutcome
from roadstead.kernel.amounts import LARGE_AMOUNTS
from roadstead.kernel.cover import why_not
from roadstead.kernel.current_rows import CurrentRows, current_filters, with_current
from roadstead.kernel.lowering.lowerings import RowLowering
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

        Without what filters store that are called before each pod of the class.
        """
        profile = self.evaluation.profile
        states = self.pre_filter.state, self.pre_score.state
        unlisted = (p for p in profile.preparing_score if not isinstance(p, PreScorePlugin))
        current = current_filters(self.evaluation)
        plugins = (p for p in (*profile.cross_node, *unlisted) if p not in current)
        return any(state.has(plugin.name) for plugin in plugins for state in states)

    def is_same(self, other: KernelClass) -> bool:
        """Whether both were built from the same objects."""
        mine, theirs = (
            (id(each.evaluation), id(each.pre_filter), id(each.pre_score)) for each in (self, other)
        )
        return mine == theirs


@dataclass(frozen=True, slots=True)
class Model:
    """Data shared by covered classes with one evaluation. index: its index among models.

    known: `Profile.state_version` of the first class when the kernel was built. current: the rows
    that pass now, if filters of the class are called before each of its pods.
    """

    index: int
    first: KernelClass
    static: StaticScores
    known: Hashable
    lowered: RowLowering
    current: CurrentRows | None = None


class Admitted(NamedTuple):
    """A covered class. class_index: its index in all arrays."""

    class_index: int
    kernel_class: KernelClass
    model: Model


class Admission:
    """The classes that are covered, and why others are not. admitted, why_not: by signature.

    static: the static scores of covered classes, without duplicates; of each model by itself if not
    shares_static. models: in order of `index`.
    """

    def __init__(
        self,
        table: NodeTable,
        classes: Mapping[Hashable, KernelClass],
        *,
        shares_static: bool = True,
    ) -> None:
        self._shares_static = shares_static
        self.admitted: dict[Hashable, Admitted] = {}
        self.why_not: dict[Hashable, str] = {}
        self.static: dict[Hashable, StaticScores] = {}
        self.models: list[Model] = []
        found: dict[int, Model | str] = {}
        for signature, each in classes.items():
            model = found.get(id(each.evaluation))
            if model is None:
                model = found[id(each.evaluation)] = self._examined(each)
                if isinstance(model, Model):
                    self.models.append(model)
            if isinstance(model, str):
                self.why_not[signature] = model
            elif each.pod.is_large:
                self.why_not[signature] = LARGE_AMOUNTS
            else:
                self.admitted[signature] = Admitted(len(self.admitted), each, model)

    def _examined(self, each: KernelClass) -> Model | str:
        """Return the model of a class, or why it is not covered."""
        evaluation = each.evaluation
        if each.pre_filter.status.is_success and each.pre_score is NO_PRE_SCORE:
            return "no node is feasible"
        try:
            evaluation.restart(each.pre_filter)
            evaluation.restart_scores(each.pre_score)
            if why := why_not(evaluation):
                return why
            if current_filters(evaluation):
                return self._with_current(each)
            key = key_of(evaluation) if self._shares_static else len(self.models)
            static = self.static[key] if key in self.static else static_scores_of(evaluation)
            if isinstance(static, str):
                return static
            self.static[key] = static
            known = evaluation.profile.state_version(evaluation.pod)
            return Model(len(self.models), each, static, known, RowLowering(evaluation))
        except PluginFailure:
            return "a plugin failed"

    def _with_current(self, each: KernelClass) -> Model | str:
        """Return the model of a class with filters that are called before each of its pods.

        Only these rows are to change then, so what it computes for other nodes must not.
        """
        evaluation = each.evaluation
        name = current_filters(evaluation)[0].name
        static = static_scores_of(evaluation)
        if each.reads_other_nodes or each.pre_score.weighs_feasible or isinstance(static, str):
            return name
        known = evaluation.profile.state_version(evaluation.pod)
        found = with_current(evaluation, each.pre_filter, static)
        if found is None:
            return name
        index = len(self.models)
        # Not shared, because the rows of each model change by themselves.
        self.static[object()] = found[0]
        return Model(index, each, found[0], known, RowLowering(evaluation), found[1])
