"""ContinuingBatch: a batch that continues after a placement that may change results for other rows.

decide ──► may earlier placements change results for other rows? ── no ──► as in a `Batch`
                            └── yes ──► results that read other nodes are computed again

Pods with claims of devices are decided one by one, each on the devices that are left. Allocations
of this scheduler that the cache has not made yet are *ahead* (`DevicesAhead`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import takewhile

import numpy as np

from roadstead.cycle.batch import Batch, ClassInput, Decision, PodInCycle
from roadstead.cycle.class_scores import ClassScores
from roadstead.cycle.single_pod_cycle import SinglePodCycle
from roadstead.framework.evaluation import Evaluation
from roadstead.framework.post_filter import dry_run_size
from roadstead.kernel.arrays import U64
from roadstead.kernel.best_rows import BestRows


class ContinuingBatch(Batch):
    """Decide pods over all nodes, to the same result as one pod after another.

    allocates_devices: devices are allocated ahead to placed pods, so that the pods behind them are
    decided on the other devices. The user of the batch undoes that before it assumes the pods.
    _has_allocated_all: the devices of every pod placed so far were allocated.

    A pod's substitute is a class with the same results, evaluated in place of the pod's own: pods
    that differ only in the names of their device claims share one.
    """

    allocates_devices = False
    _has_allocated_all = True
    _has_claims_cached: bool | None = None

    def decide_by_kernel(self, pods: Sequence[PodInCycle]) -> list[Decision]:
        """As any batch, but a pod with claims of devices is decided alone."""
        first = pods[0] if pods else None
        if first is None or not self._has_claims():
            return super().decide_by_kernel(pods)
        if not first.pod_class.facts.device_claims:
            return super().decide_by_kernel(
                list(takewhile(lambda pod: not pod.pod_class.facts.device_claims, pods))
            )
        if first.substitute is None:
            return super().decide_by_kernel((first,))
        if not (self._has_allocated_all and self._has_valid_substitute(first)):
            return []
        decisions = super().decide_by_kernel((first,))
        for each in decisions:
            assert each.node_name is not None, "the kernel decides only pods that fit"
            self._has_allocated_all &= self._reserve(first, each.node_name)
        return decisions

    def _has_claims(self) -> bool:
        """Whether a class of the batch has claims of devices; computed once per batch."""
        if self._has_claims_cached is None:
            evaluations = (each.scores.evaluation for each in self._classes.values())
            self._has_claims_cached = any(each.pod.facts.device_claims for each in evaluations)
        return self._has_claims_cached

    def _has_valid_substitute(self, pod: PodInCycle) -> bool:
        """Whether the substitute of a pod's class still has the results of that class."""
        assert pod.substitute is not None
        profile = self._classes[pod.signature].scores.evaluation.profile
        return profile.substitutes_for(pod.substitute, pod.pod_class)

    def unlisted(self, pods: Sequence[PodInCycle]) -> list[PodInCycle]:
        """Return the pods whose best rows workers may list, so that the kernel evaluates few rows.

        Their classes are new to the kernel, and each is the only one of its class among `pods`.
        """
        code = None if self._compiled_kernel is None else self._compiled_kernel.code
        if code is None or self.table.nominations or self._name_best:
            return []
        counts = Counter(pod.signature for pod in pods)
        listable = {
            each for each in self._kernel_of_batch(code).listable_classes() if counts[each] == 1
        }
        return [pod for pod in pods if pod.signature in listable]

    def tie_break_hashes(self, pods: Sequence[PodInCycle]) -> U64:
        """Return the hash of each pod for tie-breaks: uint64[pod]."""
        pod_hash = self._chooser.tie_break.pod_hash
        return np.array([pod_hash(pod.key, pod.tie_break_number) for pod in pods], np.uint64)

    def use_lists(self, best: BestRows, pods: int) -> None:
        """Store workers' lists, by which the kernel decides if they suffice. pods: of the batch."""
        assert self._kernel is not None, "`unlisted` has built the kernel"
        self._kernel.use_lists(best, pods)

    def decide(self, pod: PodInCycle) -> Decision | None:
        """As any batch; the devices of a placed pod are allocated for those behind it."""
        decision = (
            super().decide(pod) if pod.substitute is None else self._decide_by_substitute(pod)
        )
        facts = pod.pod_class.facts
        if decision is not None and decision.node_name is not None and facts.device_claims:
            self._has_allocated_all &= self._reserve(pod, decision.node_name)
        return decision

    def _decide_by_substitute(self, pod: PodInCycle) -> Decision | None:
        """Decide a pod by the results of its substitute, or by its own if these may differ."""
        # Allocations of this batch that the cache does not have yet (`DevicesAhead`).
        ahead = self._classes[pod.signature].scores.evaluation.profile.storage.ahead
        if not self._has_allocated_all or ahead.concerns(pod.pod_class.facts):
            # As in `_decide_changed`: the pods before it must be assumed first.
            return None
        if self._has_valid_substitute(pod):
            decision = super().decide(pod)
            if decision is None or not _may_name_claims(decision):
                return decision
        return super().decide(self._without_substitute(pod))

    def _without_substitute(self, pod: PodInCycle) -> PodInCycle:
        """Return a pod as one without substitute, whose class is evaluated."""
        alone = pod.without_substitute()
        if alone is not pod:
            profile = self._classes[pod.signature].scores.evaluation.profile
            scores = ClassScores(Evaluation(profile, alone.pod_class, self.table))
            cycle = SinglePodCycle(scores, alone)
            own = ClassInput(scores, cycle.pre_filter, cycle.pre_score())
            self._classes = {**self._classes, alone.signature: own}
        return alone

    def _reserve(self, pod: PodInCycle, node_name: str) -> bool:
        """Allocate devices to a placed pod; return whether all its claims are allocated."""
        facts = pod.pod_class.facts
        if not self.allocates_devices or facts.volumes:
            return False
        columns, row = self.table.columns, self.table.row_of(node_name)
        profile = self._classes[pod.signature].scores.evaluation.profile
        return profile.storage.ahead.reserve(facts, columns.node(row))

    def _decide_changed(self, pod: PodInCycle, scores: ClassScores) -> Decision | None:
        """Return a decision that is computed for this pod alone on the current table.

        None if the pods before it must be assumed first. This is so for a pod with claims of
        volumes, or of devices that it shares with a placed pod: these are bound only when a pod is
        assumed. It is also so for a pod that would preempt: no pod is evicted because of pods that
        are not assumed yet.
        """
        facts, profile = pod.pod_class.facts, scores.evaluation.profile
        if facts.volumes or (facts.device_claims and not self._has_allocated_all):
            return None
        # It names a claim that is allocated ahead.
        if profile.storage.ahead.concerns(facts):
            return None
        alone = SinglePodCycle(scores, pod).batch(self._chooser, name_best=self._name_best)
        decision = alone.decide(pod)
        assert decision is not None, "one pod alone is always decided"
        if decision.node_name is not None:
            self._record_placement(pod.pod_class)
            return decision
        if facts.device_claims:
            return None
        diagnosis = decision.diagnosis
        # `dry_run_size`: None if no plugin wants to try a preemption.
        if diagnosis is None or dry_run_size(profile, facts, diagnosis) is None:
            return decision
        return None


def _may_name_claims(decision: Decision) -> bool:
    """Whether the text of a decision may name the pod's claims: an error or PreFilter's refusal."""
    diagnosis = decision.diagnosis
    return bool(decision.error) or (diagnosis is not None and not diagnosis.pre_filter.is_success)
