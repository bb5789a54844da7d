"""CachedClass: results of a pod class, kept for later batches, and whether they are still valid."""

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

    Inputs are the version of the nodes' facts and the plugins' own state of the pod.

    class_input: the results, as a batch begins with them. They may be shared: then their evaluation
    is that of another class of the same shape (`ClassInput.shared_evaluation`). validity: the
    inputs of the results, and the pods that were compared with them since.
    lasting_inputs: the inputs without the state that some filters read anew at each call
    (`FilterPlugin.runs_per_pod`; the kernel calls them before each pod); unset for shared results.
    """

    class_input: ClassInput
    validity: Validity
    lasting_inputs: Inputs = (-1, None)

    def holds(self, inputs: Inputs, table: NodeTable, profile: Profile) -> bool:
        """Whether the results are still valid.

        Not if shared results have since been computed for other inputs.
        """
        shared, pod = self.class_input.shared_evaluation, self.class_input.scores.evaluation.pod
        if self.validity.inputs != inputs or not (shared is None or shared.is_for(*inputs)):
            return False
        return self.validity.holds(table, profile, profile.cross_node, pod)

    def holds_without_per_pod_filters(
        self, lasting_inputs: Inputs, table: NodeTable, profile: Profile
    ) -> bool:
        """Whether the results are valid, except those of filters that read the current state.

        This suffices for a batch with the kernel: it calls these filters before each pod, and the
        evaluation runs Filter again when their state has changed.
        """
        class_input, evaluation = self.class_input, self.class_input.scores.evaluation
        per_pod = filters_called_per_pod(evaluation)
        is_shared = class_input.shared_evaluation is not None
        if not per_pod or is_shared or self.lasting_inputs != lasting_inputs:
            return False
        # The kernel counts its placements in the data of outcomes that depend on other nodes, so
        # these must be computed again. And a PreScore that read which rows are feasible does not
        # run again when these filters change them.
        if kernel_class(class_input).reads_other_nodes or class_input.pre_score.reads_feasible:
            return False
        plugins = [each for each in profile.cross_node if each not in per_pod]
        return self.validity.holds(table, profile, plugins, evaluation.pod)

    def renew(self, inputs: Inputs, table: NodeTable, profile: Profile) -> bool:
        """Compute results that are not shared again, if only nodes changed since.

        Return whether the outcomes of PreFilter and PreScore turned out equal, so that the results
        are valid for the new inputs. The outcomes remain the same objects, by which the kernel's
        arrays of the class remain valid. False if an outcome depends on other nodes: the kernel has
        counted its own placements in its data.
        """
        class_input, scores = self.class_input, self.class_input.scores
        (_, old_state), (_, new_state) = self.validity.inputs, inputs
        if class_input.shared_evaluation is not None or old_state != new_state:
            return False
        # With equal inputs, the caller called `holds` and got False: pods changed the results.
        if self.validity.inputs == inputs or not self.validity.holds(
            table, profile, profile.cross_node, scores.evaluation.pod
        ):
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
    # Filter, on the rows that changed.
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

    Not if PreScore reads which rows are feasible: that depends on the resource amounts, which
    differ within a shape.
    """
    return (
        class_input.pre_filter.status.is_success
        and bool(class_input.scores.evaluation.feasible.any())
        and not class_input.pre_score.reads_feasible
    )
