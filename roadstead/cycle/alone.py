"""One pod, decided by itself on a table that holds all nodes: Filter, narrowing, PreScore, Score.

    Alone(run, pod) ──► Filter ──► found ──► narrowed (sampling, extenders) ──► batch ──► decision

Whoever narrows may block, as extenders do, so it is not done here. Nothing that is summed up over
nodes can be out of date: all of it is found anew for the pod.
"""

from __future__ import annotations

from roadstead.cycle.batch import Accelerator, BatchRun, ClassInput, PodInCycle
from roadstead.cycle.class_run import ClassRun
from roadstead.cycle.narrowing import Found, found_of
from roadstead.framework.narrowed import Narrowing
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
        run.narrowing = None
        passed = evaluation.pre_filter.status.is_success
        self.found: Found | None = found_of(evaluation) if passed else None

    def narrow(self, narrowing: Narrowing) -> None:
        """Takes what sampling and extenders leave of `found`."""
        self.run.narrowing = narrowing
        self._evaluation.narrow(narrowing.narrowed)

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
