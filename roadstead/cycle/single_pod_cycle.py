"""SinglePodCycle: the cycle of one pod by itself: Filter, the node search, PreScore, Score.

    SinglePodCycle(scores, pod) ──► Filter ──► filtered ──► node search (sampling, extenders)
    ──► batch ──► decision

The caller runs the node search, which may block while extenders answer. Sums over nodes are never
out of date: they are computed for each pod.
"""

from __future__ import annotations

from roadstead.cycle.batch import Batch, ClassInput, CompiledKernel, PodInCycle
from roadstead.cycle.class_scores import ClassScores
from roadstead.cycle.node_search import FilteredNodes, filtered_nodes
from roadstead.framework.found_nodes import SearchResult
from roadstead.framework.scoring import NO_PRE_SCORE, PreScoreOutcome
from roadstead.framework.tie_break import Chooser


class SinglePodCycle:
    """One pod's cycle. filtered: the nodes that passed Filter; None if PreFilter refused the pod.

    Raises UnsupportedError, without the pod's name, if a plugin does not support it.
    """

    def __init__(self, scores: ClassScores, pod: PodInCycle) -> None:
        self.scores, self.pod = scores, pod
        self._evaluation = evaluation = scores.evaluation
        self.pre_filter = evaluation.run_pre_filter()
        evaluation.update(self.pre_filter)
        scores.search_result = None
        passed = evaluation.pre_filter.status.is_success
        self.filtered: FilteredNodes | None = filtered_nodes(evaluation) if passed else None

    def restrict(self, search_result: SearchResult) -> None:
        """Apply the result of sampling and extenders for `filtered`."""
        self.scores.search_result = search_result
        self._evaluation.restrict(search_result.found_nodes)

    def pre_score(self) -> PreScoreOutcome:
        """Run PreScore for the remaining nodes, if there are any."""
        if self._evaluation.pre_filter.status.is_success and self._evaluation.feasible.any():
            return self._evaluation.run_pre_score()
        return NO_PRE_SCORE

    def batch(
        self, chooser: Chooser, *, name_best: bool, compiled_kernel: CompiledKernel | None = None
    ) -> Batch:
        """Return the pod's batch, ready to be decided."""
        table = self._evaluation.table
        classes = {self.pod.signature: ClassInput(self.scores, self.pre_filter, self.pre_score())}
        return Batch(
            table,
            classes,
            chooser,
            name_best=name_best,
            compiled_kernel=compiled_kernel,
        )
