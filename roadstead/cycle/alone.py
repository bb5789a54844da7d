"""One pod, decided by itself on a table that holds all nodes: Filter, the node search, PreScore,
Score.

    Alone(run, pod) ──► Filter ──► found ──► node search (sampling, extenders) ──► batch ──►
    decision

Whoever searches_nodes may block, as extenders do, so it is not done here. Nothing that is summed
up over nodes can be out of date: all of it is found anew for the pod.
"""

from __future__ import annotations

from roadstead.cycle.batch import Accelerator, BatchRun, ClassInput, PodInCycle
from roadstead.cycle.class_run import ClassRun
from roadstead.cycle.node_search import Found, found_of
from roadstead.framework.found_nodes import SearchResult
from roadstead.framework.scoring import NO_PRE_SCORE, PreScoreOutcome
from roadstead.framework.tie_break import Chooser


class Alone:
    """A pod's cycle as far as it has come. found: what Filter left; None where PreFilter refused.

    Raises UnsupportedError, without a pod's name, where a plugin that is not there would be needed.
    """

    def __init__(self, run: ClassRun, pod: PodInCycle) -> None:
        self.run, self.pod = run, pod
        self._evaluation = evaluation = run.evaluation
        self.pre_filter = evaluation.run_pre_filter()
        evaluation.update(self.pre_filter)
        run.search_result = None
        passed = evaluation.pre_filter.status.is_success
        self.found: Found | None = found_of(evaluation) if passed else None

    def restrict(self, search_result: SearchResult) -> None:
        """Takes what sampling and extenders leave of `found`."""
        self.run.search_result = search_result
        self._evaluation.restrict(search_result.found_nodes)

    def pre_score(self) -> PreScoreOutcome:
        """What PreScore says of the nodes that are left, if there are any."""
        if self._evaluation.pre_filter.status.is_success and self._evaluation.feasible.any():
            return self._evaluation.run_pre_score()
        return NO_PRE_SCORE

    def batch(
        self, chooser: Chooser, *, name_best: bool, accelerator: Accelerator | None = None
    ) -> BatchRun:
        """The pod's batch, ready to be decided."""
        table = self._evaluation.table
        classes = {self.pod.signature: ClassInput(self.run, self.pre_filter, self.pre_score())}
        return BatchRun(
            table,
            classes,
            chooser,
            name_best=name_best,
            accelerator=accelerator,
        )
