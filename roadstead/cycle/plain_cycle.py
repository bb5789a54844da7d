"""PlainCycle: decides pods one by one on one table; only evaluations are reused from pod to pod.

It is the reference with which batches are compared in tests, and it explains pods.
"""

from __future__ import annotations

from collections.abc import Mapping

from roadstead.cycle.batch import Batch, CompiledKernel, Decision, PodInCycle
from roadstead.cycle.class_cache import ClassCache
from roadstead.cycle.class_scores import ClassScores
from roadstead.cycle.explain import Explanation, explain, with_post_filter
from roadstead.cycle.extender_preemption import call_extenders
from roadstead.cycle.node_search import NodeSearch, OrderedNodesCache
from roadstead.cycle.nominated_batch import NominatedBatch
from roadstead.cycle.preempting import dry_run_to_make, post_filter_result
from roadstead.cycle.single_pod_cycle import SinglePodCycle
from roadstead.framework.evaluation import Evaluation
from roadstead.framework.profile import Profile, binding_profiles
from roadstead.framework.scoring import NO_PRE_SCORE
from roadstead.framework.tie_break import Chooser, TieBreak
from roadstead.framework.victims import DryRunResult
from roadstead.nodes.snapshots import take_snapshot
from roadstead.nodes.table import NodeTable
from roadstead.preemption.dry_run import dry_run
from roadstead.storage import AssumedClaims


class PlainCycle:
    """Decide pods one by one over a table that it also updates."""

    def __init__(
        self,
        table: NodeTable,
        profiles: Mapping[str, Profile],
        tie_break: TieBreak,
        *,
        name_best: bool = False,
        node_search: NodeSearch | None = None,
        compiled_kernel: CompiledKernel | None = None,
    ) -> None:
        self.table = table
        self._compiled_kernel = compiled_kernel
        self._profiles = profiles
        self._chooser = Chooser(tie_break)
        self._name_best = name_best
        self._node_search = node_search
        self._ordered_nodes = OrderedNodesCache()
        self._scores: ClassCache[ClassScores] = ClassCache()
        # Which profiles bind claims; the claims of other profiles' pods are ignored.
        self._binding = binding_profiles(profiles.values())
        self._assumed_claims = AssumedClaims(next(iter(profiles.values())).storage)

    def decide(self, pod: PodInCycle) -> Decision:
        """Decide one pod, and place it on the table if a node is feasible.

        Raises KeyError if no profile has its scheduler name, and UnsupportedError if a plugin
        does not support it.
        """
        pod = pod.without_substitute()
        # A cycle begins with a snapshot, as upstream; `arrived` counts the nodes added so far.
        take_snapshot(self.table, self.table.arrived)
        scores = self._scores_of(pod)
        batch = self._nominated(pod) or self._batch_of(scores, pod)
        decision = next(iter(batch.decide_by_kernel([pod])), None) or batch.decide(pod)
        batch.flush()
        assert decision is not None, "one pod alone is always decided"
        if decision.node_name is not None:
            self.bind_claims(pod, decision.node_name)
        if decision.diagnosis is None:
            return decision
        profile, tie_break = scores.evaluation.profile, self._chooser.tie_break
        request = dry_run_to_make(profile, pod, decision.diagnosis, tie_break)
        dry_run_result = (
            None if request is None else self._call_extenders(pod, batch.dry_run(pod, request))
        )
        result = post_filter_result(profile, pod, decision.diagnosis, tie_break, dry_run_result)
        return decision._replace(post_filter=result)

    def _nominated(self, pod: PodInCycle) -> Batch | None:
        """Return the batch of a pod that passes on its nominated node, else None.

        None also for a pod that extenders handle: its search evaluates the nominated node.
        """
        if self._node_search is not None and self._node_search.extenders.handles(
            pod.pod_class.facts
        ):
            return None
        profile = self._profiles[pod.pod_class.facts.scheduler_name]
        return NominatedBatch.if_it_passes(
            profile,
            self.table,
            pod,
            self._chooser,
            name_best=self._name_best,
            compiled_kernel=self._compiled_kernel,
        )

    def _batch_of(self, scores: ClassScores, pod: PodInCycle) -> Batch:
        cycle = SinglePodCycle(scores, pod)
        self._restrict(cycle)
        if scores.search_result is not None and self._node_search is not None:
            self._node_search.advance(scores.search_result)
        return cycle.batch(
            self._chooser, name_best=self._name_best, compiled_kernel=self._compiled_kernel
        )

    def _call_extenders(self, pod: PodInCycle, dry_run_result: DryRunResult) -> DryRunResult:
        extenders = None if self._node_search is None else self._node_search.extenders
        return call_extenders(extenders, pod, dry_run_result)

    def bind_claims(self, pod: PodInCycle, node_name: str) -> None:
        """Reserve the volumes and devices of a placed pod."""
        facts = self._binding.without_ignored_claims(pod.pod_class.facts)
        if facts.may_bind_claims:
            node = self.table.facts(self.table.row_of(node_name))
            self._assumed_claims.assume(pod.uid, facts, node)

    def forget(self, pod: PodInCycle, node_name: str) -> None:
        """Undo a placement and the reservation of its volumes and devices."""
        self.table.remove_pod(node_name, pod.pod_class, uid=pod.uid)
        self._assumed_claims.forget(pod.uid)

    def confirm(self, pod: PodInCycle) -> None:
        """Commit a placement: the pod's claims are bound for good."""
        self._assumed_claims.confirm(pod.uid)

    def explain(self, pod: PodInCycle) -> Explanation:
        """Return every node's result for one pod; places nothing."""
        pod = pod.without_substitute()
        take_snapshot(self.table, self.table.arrived)
        scores = self._scores_of(pod)
        evaluation, cycle = scores.evaluation, SinglePodCycle(scores, pod)
        self._restrict(cycle)
        pre_score = NO_PRE_SCORE
        if evaluation.pre_filter.status.is_success:
            pre_score = evaluation.run_pre_score()
        failure = scores.filter(cycle.pre_filter)
        name = pod.pod_class.facts.nominated_node_name
        is_chosen = self.table.has_node(name) and evaluation.feasible[self.table.row_of(name)]
        if is_chosen or not failure:
            # If the pod passes on its nominated node, filters that fail on others do not matter.
            scores.score(pre_score)
        profile, tie_break = evaluation.profile, self._chooser.tie_break
        explanation = explain(evaluation, pod, scores.search_result, tie_break)
        if explanation.dry_run is None:
            return explanation
        budgets = evaluation.profile.budgets
        dry_run_result = self._call_extenders(
            pod, dry_run(evaluation, explanation.dry_run, budgets)
        )
        return with_post_filter(explanation, profile, pod, tie_break, dry_run_result)

    def _restrict(self, cycle: SinglePodCycle) -> None:
        """Apply sampling and extenders, for this pod only."""
        node_search, pod = self._node_search, cycle.pod
        if (
            node_search is None
            or cycle.filtered is None
            or not node_search.applies_to(pod.pod_class.facts)
        ):
            return
        order, profile = self._ordered_nodes.snapshot(self.table), cycle.scores.evaluation.profile
        cycle.restrict(node_search.search(profile, pod, order, cycle.filtered))

    def _scores_of(self, pod: PodInCycle) -> ClassScores:
        scores = self._scores.get(pod.signature)
        if scores is None:
            profile = self._profiles[pod.pod_class.facts.scheduler_name]
            evaluation = Evaluation(profile, pod.pod_class, self.table)
            scores = ClassScores(evaluation)
            self._scores.put(pod.signature, scores, len(self.table))
        return scores
