"""The reasons that are counted for pods that a kernel does not decide."""

from roadstead.framework.evaluation import Evaluation
from roadstead.protocol.status import Code
from tests.simulation.naive import failure_of

LEFT_OUT = "found_nodes, or failed"
FAILING = {"FailsOnSomeNodes", "IsMoody", "FailsToScore", "LikesDigits", "Overshoots"}
"""Users' plugins that sometimes fail for some nodes or scores: a kernel may not have noticed that
they would no longer fail.
"""


class Coverages:
    """Checks the counts of one cycle while batches are decided."""

    def __init__(self, cycle, profiles, coverage):
        self._cycle, self._profiles, self._coverage = cycle, profiles, coverage
        self._seen = 0

    def wrongly_left_out(self, pod):
        """Whether a pod was just left to the reference path because of an extender or a failed
        filter, and neither is true.
        """
        seen, self._seen = self._seen, self._coverage.by_reference[LEFT_OUT]
        is_outside = self._cycle.searches_nodes(pod) and not self._cycle.samples(pod)
        return self._seen > seen and not is_outside and not self._fails(pod)

    def _fails(self, pod):
        profile, table = self._profiles[pod.pod_class.facts.scheduler_name], self._cycle.table
        names = {each.name for each in (*profile.filter, *(e.plugin for e in profile.score))}
        if names & FAILING:
            return True
        evaluation = Evaluation(profile, pod.pod_class, table)
        evaluation.update(evaluation.run_pre_filter())
        is_error = evaluation.pre_filter.status.code is Code.ERROR
        return is_error or failure_of(evaluation) is not None
