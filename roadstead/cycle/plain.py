"""PlainCycle: one table, no shards; the same evaluation and the same batch logic.

The ground that sharded runs are compared with, and the embedded way to schedule.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from roadstead.cycle.batch import BatchRun, ClassInput, Decision, PodInCycle
from roadstead.cycle.class_run import ClassRun, Rest
from roadstead.cycle.explain import Explanation, explain
from roadstead.cycle.shard import view_of
from roadstead.framework.diagnosis import Diagnosis
from roadstead.framework.evaluation import Evaluation, Summaries
from roadstead.framework.profile import Profile
from roadstead.framework.tie_break import Chooser, TieBreak
from roadstead.nodes.snapshots import take_snapshot
from roadstead.nodes.table import NodeTable


class PlainCycle:
    """Decides pods one by one over a table that it also updates."""

    def __init__(
        self,
        table: NodeTable,
        profiles: Mapping[str, Profile],
        tie_break: TieBreak,
        *,
        name_best: bool = False,
    ) -> None:
        self.table = table
        self._profiles = profiles
        self._chooser = Chooser(tie_break)
        self._name_best = name_best
        self._runs: dict[Hashable, ClassRun] = {}

    def decide(self, pod: PodInCycle) -> Decision:
        """One pod, placed on the table if it fits. KeyError if no profile has its scheduler name.

        Raises UnsupportedError where a plugin that is not there yet would be needed.
        """
        take_snapshot(self.table, self.table.arrived)
        run = self._run_of(pod)
        evaluation = run.evaluation
        node_count = len(self.table)
        filters = evaluation.own_filter_summaries()
        evaluation.update(node_count, filters)
        scores: Summaries = {}
        if evaluation.pre_filter.status.is_success and evaluation.feasible.any():
            scores = evaluation.own_score_summaries()
        classes = {pod.signature: ClassInput(run, filters, scores)}
        batch = BatchRun(self.table, node_count, classes, self._chooser, name_best=self._name_best)
        decision = batch.decide(pod)
        assert decision is not None, "nothing is kept back from the only table"
        return decision

    def explain(self, pod: PodInCycle) -> Explanation:
        """Every node's answer for one pod; places nothing."""
        take_snapshot(self.table, self.table.arrived)
        run = self._run_of(pod)
        evaluation = run.evaluation
        filters = evaluation.own_filter_summaries()
        evaluation.update(len(self.table), filters)
        scores: Summaries = {}
        if evaluation.pre_filter.status.is_success:
            scores = evaluation.own_score_summaries()
        run.advance(len(self.table), filters, scores)
        return explain(evaluation.profile, pod, [view_of(evaluation)], filters, scores)

    def _run_of(self, pod: PodInCycle) -> ClassRun:
        run = self._runs.get(pod.signature)
        if run is None:
            profile = self._profiles[pod.info.facts.scheduler_name]
            evaluation = Evaluation(profile, pod.info, self.table)
            run = self._runs[pod.signature] = ClassRun(evaluation, Rest((), Diagnosis(0)))
        return run
