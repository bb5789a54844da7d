"""CachedClass: the results of a class that a batch begins with, and when they are still valid."""

from __future__ import annotations

from dataclasses import dataclass

from roadstead.cycle.batch import ClassInput, kernel_class
from roadstead.cycle.class_scores import ClassScores
from roadstead.framework.profile import Profile
from roadstead.framework.scoring import NO_PRE_SCORE
from roadstead.framework.validity import Inputs, Validity
from roadstead.kernel.per_pod_filters import filters_called_per_pod
from roadstead.nodes.table import NodeTable


@dataclass(slots=True)
class CachedClass:
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
        if kernel_class(class_input).reads_other_nodes or class_input.pre_score.reads_feasible:
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
        rerun = run_class(scores)
        if not are_outcomes_equal(class_input, rerun):
            return False
        self.validity.inputs = inputs
        return True


def run_class(scores: ClassScores) -> ClassInput:
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


def are_outcomes_equal(before: ClassInput, after: ClassInput) -> bool:
    """Whether a class has equal outcomes as before, none of which depends on other nodes."""
    if any(kernel_class(each).reads_other_nodes for each in (before, after)):
        return False
    return after.pre_filter.is_same(before.pre_filter) and after.pre_score.is_same(before.pre_score)


def is_shareable(class_input: ClassInput) -> bool:
    """Whether the results of a class that do not depend on rows are valid for its whole shape.

    Those of a PreScore that reads which rows are feasible are not: amounts decide that.
    """
    return (
        class_input.pre_filter.status.is_success
        and bool(class_input.scores.evaluation.feasible.any())
        and not class_input.pre_score.reads_feasible
    )
