"""Batch: decides pods one after another over one table that holds all nodes.

Each placement changes its row, and that row is evaluated again for later classes. If a placement
may change the answers for other rows (a plugin that reads the cluster), `decide` returns None: the
batch ends, and the remaining pods form a new one. So a batch decides as one pod after another.
`ContinuingBatch` computes such answers again and continues.

Upstream: pkg/scheduler/schedule_one.go (schedulePod, selectHost), one pod at a time.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import NamedTuple

import numpy as np

from roadstead.cycle.class_scores import INFEASIBLE, ClassScores
from roadstead.cycle.placed_classes import PlacedClasses
from roadstead.facts.pod import PodIdentity
from roadstead.framework.diagnosis import Diagnosis
from roadstead.framework.evaluation import Evaluation
from roadstead.framework.post_filter import dry_run_size
from roadstead.framework.post_filter_answers import PostFilterResult
from roadstead.framework.pre_filtering import PreFilterOutcome
from roadstead.framework.profile import Profile
from roadstead.framework.scoring import PreScoreOutcome
from roadstead.framework.tie_break import Chooser
from roadstead.framework.victims import DryRun, DryRunResult
from roadstead.kernel.compiled_code import CompiledCode
from roadstead.kernel.covered_classes import KernelClass
from roadstead.kernel.decision_counts import DecisionCounts
from roadstead.kernel.kernel import Kernel
from roadstead.kernel.kernel_cache import KernelCache
from roadstead.kernel.pods import DecidedPods
from roadstead.nodes.pod_class import PodClass, PodClasses
from roadstead.nodes.table import NodeTable, Rows
from roadstead.preemption.dry_run import dry_run

MAX_NAMED_BEST = 50
"""Maximum names in `Decision.best`."""


class PodInCycle(NamedTuple):
    """A pod in the scheduling cycle.

    key: namespace/name. signature: equal for pods that share all results (`Profile.signature_of`).
    attempt: number of the attempt, from 1. tie_break_number: 1, plus 1 for each chosen node that
    failed. substitute: a class with the same results, by which the pod is evaluated, and whose
    signature it then has (`Profile.substitute`): pods that differ only in the names of their device
    claims have one substitute.
    """

    uid: str
    key: str
    pod_class: PodClass
    signature: Hashable
    attempt: int = 1
    tie_break_number: int = 1
    substitute: PodClass | None = None

    @property
    def evaluated(self) -> PodClass:
        """The class by which the pod is evaluated."""
        return self.substitute or self.pod_class

    def without_substitute(self) -> PodInCycle:
        """Return the pod without a substitute, as the only one of its signature."""
        if self.substitute is None:
            return self
        return self._replace(signature=(self.uid, self.pod_class), substitute=None)


def pod_in_cycle(
    pod: PodIdentity, pod_class: PodClass, profile: Profile, classes: PodClasses
) -> PodInCycle:
    """Return a pod at its first attempt."""
    substitute = profile.substitute(pod_class, classes)
    signature = profile.signature_of(substitute or pod_class, pod.uid)
    return PodInCycle(pod.uid, pod.key, pod_class, signature, substitute=substitute)


class Decision(NamedTuple):
    """The decision for one pod: a node, or the reasons why there is none, or an error.

    feasible: number of feasible nodes; with an error, of nodes that no filter refused. total: the
    node's total score; 0 if the node is the nominated one, or the only feasible one and scoring
    failed. best_size: number of the best nodes. best: their names, sorted, at most MAX_NAMED_BEST
    (only on request). post_filter: the result of PostFilter, if it has run.
    """

    pod: PodInCycle
    node_name: str | None
    feasible: int = 0
    total: int = 0
    best_size: int = 0
    best: tuple[str, ...] = ()
    diagnosis: Diagnosis | None = None
    post_filter: PostFilterResult | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class ClassInput:
    """The results of a class with which a batch begins: after PreFilter and PreScore.

    shared_evaluation: of a class that differs only in resource amounts. The kernel uses it in place
    of the class's own evaluation (that of `scores`), which then runs only for pods that the kernel
    does not decide.
    """

    scores: ClassScores
    pre_filter: PreFilterOutcome
    pre_score: PreScoreOutcome
    shared_evaluation: Evaluation | None = None


@dataclass(slots=True)
class CompiledKernel:
    """The compiled code, and counts of the pods that it decided, or why it did not.

    code: None until it is loaded, by a thread, possibly while a batch is decided.
    """

    code: CompiledCode | None
    decision_counts: DecisionCounts


class Batch:
    """Decide pods over all nodes; `classes` by signature.

    compiled_kernel: decides pods if its preconditions hold, with the same result.
    kernels: caches a kernel for later batches on the same table. has_unassumed: pods that are not
    assumed yet were placed on the table before this batch. name_best: decisions name the best nodes
    (`Decision.best`).
    """

    def __init__(
        self,
        table: NodeTable,
        classes: Mapping[Hashable, ClassInput],
        chooser: Chooser,
        *,
        name_best: bool = False,
        compiled_kernel: CompiledKernel | None = None,
        kernels: KernelCache | None = None,
    ) -> None:
        self.table = table
        self._classes = classes
        self._chooser = chooser
        self._name_best = name_best
        self._placed = PlacedClasses()
        self._placed_outside_kernel = PlacedClasses()
        self._has_ended = False
        self.has_unassumed = False
        self._compiled_kernel = compiled_kernel
        self._kernels = kernels
        self._kernel: Kernel | None = None

    def dry_run(self, pod: PodInCycle, request: DryRun) -> DryRunResult:
        """Find the victims for a pod that was just found to have no feasible node."""
        evaluation = self._classes[pod.signature].scores.evaluation
        return dry_run(evaluation, request, evaluation.profile.budgets)

    def decide_by_kernel(self, pods: Sequence[PodInCycle]) -> list[Decision]:
        """Return the kernel's decisions for as many of the next pods as possible.

        If there are none, the next pod is for `decide`.
        """
        compiled_kernel = self._compiled_kernel
        code = None if compiled_kernel is None else compiled_kernel.code
        if compiled_kernel is None or code is None or not pods or self._has_ended:
            return []
        if self.table.nominations:
            compiled_kernel.decision_counts.by_reference["nominated pods"] += 1
            return []
        kernel, why_not = self._kernel_of_batch(code), self._why_not
        if reason := why_not(kernel, pods[0].signature):
            compiled_kernel.decision_counts.by_reference[reason] += 1
            return []
        classes = {pod.signature: pod for pod in pods}
        # The kernel does not recompute what placements outside of it change on other rows.
        not_covered = {
            signature
            for signature, pod in classes.items()
            if (signature != pods[0].signature and why_not(kernel, signature))
            or self._is_out_of_date_for_kernel(pod)
        }
        # `Kernel.best_rows` returns those of the last pod that the kernel decided.
        if self._name_best and pods[0].signature not in not_covered:
            pods = pods[:1]
        elif not_covered:
            pods = list(takewhile(lambda pod: pod.signature not in not_covered, pods))
        return self._decide_pods(pods, compiled_kernel.decision_counts)

    def _kernel_of_batch(self, code: CompiledCode) -> Kernel:
        """Return the kernel of this batch, for the classes that it may decide."""
        if self._kernel is not None:
            return self._kernel
        classes = kernel_classes(self._classes)
        # A kernel that lacks classes of this batch must not be used for a later one.
        may_cache = self._kernels is not None and len(classes) == len(self._classes)
        kernels = self._kernels if self._kernels is not None and may_cache else KernelCache()
        self._kernel = kernels.get(code, self.table, classes, self._chooser)
        return self._kernel

    def _why_not(self, kernel: Kernel, signature: Hashable) -> str:
        """Return why the kernel must not decide a class; "" if it may."""
        return kernel.why_not(signature)

    def _run_kernel(self, kernel: Kernel, pods: Sequence[PodInCycle]) -> DecidedPods:
        return kernel.decide(pods)

    def _decide_pods(
        self, pods: Sequence[PodInCycle], decision_counts: DecisionCounts
    ) -> list[Decision]:
        assert self._kernel is not None
        result = self._run_kernel(self._kernel, pods)
        names = self.table.columns.names
        best: tuple[str, ...] = ()
        if self._name_best and result.rows:
            best = self._names(self._kernel.best_rows(pods[0].signature, result.totals[0]))
        numbers = (result.rows, result.feasible, result.totals, result.tied_best)
        # The kernel may have stopped before the last pods; `stopped` is the reason, or "".
        decided = zip(pods, *numbers, strict=False)
        decisions = [
            Decision(pod, names[row], feasible, total, size, best)
            for pod, row, feasible, total, size in decided
        ]
        self._placed.add(each.pod.pod_class for each in decisions)
        decision_counts.by_kernel += len(decisions)
        if result.stopped:
            decision_counts.stops[result.stopped] += 1
        return decisions

    def flush(self) -> None:
        """Add placements of `decide_by_kernel` to the table, which may lack them until then."""
        if self._kernel is not None:
            self._kernel.flush()

    def decide(self, pod: PodInCycle) -> Decision | None:
        """Decide the next pod and place it on the table; None ends the batch."""
        self.flush()
        if self._has_ended:
            return None
        decision = self._decide(pod)
        # Placed or not, the pod's nomination ends: results that counted the nomination are out of
        # date, so that no further pod is decided in this batch.
        self._has_ended = decision is not None and bool(pod.pod_class.facts.nominated_node_name)
        return decision

    def _decide(self, pod: PodInCycle) -> Decision | None:
        """As `decide`, on a table that has all placements."""
        class_input = self._classes[pod.signature]
        scores = class_input.scores
        if self._is_out_of_date(pod):
            return self._decide_changed(pod, scores)
        if scores.error and self._placed:
            # An extender failed; earlier placements may have changed which rows it would receive.
            return None
        failure = scores.filter(class_input.pre_filter)
        if failure:
            return Decision(pod, None, scores.passed_count(), error=failure)
        if not scores.evaluation.pre_filter.status.is_success:
            return self._failed(pod, scores)
        status = scores.score(class_input.pre_score)
        # Upstream returns the only feasible node before it scores (schedulePod): a failed PreScore
        # or Score does not fail the pod. Here classes are scored before pods are decided.
        only_row = scores.only_row()
        if only_row is not None:
            total = int(scores.total[only_row]) if status.is_success and not scores.error else 0
            return self._place(pod, scores, np.array([only_row], dtype=np.intp), total)
        error = scores.error or ("" if status.is_success else status.message)
        if error:
            return Decision(pod, None, scores.passed_count(), error=error)
        if not scores.has_feasible:
            return self._failed(pod, scores)
        return self._choose(pod, scores)

    def _decide_changed(self, pod: PodInCycle, scores: ClassScores) -> Decision | None:
        """As `decide`, if earlier placements may have changed the answers for other rows."""
        return None

    def _failed(self, pod: PodInCycle, scores: ClassScores) -> Decision | None:
        """Return a decision without a node.

        None if preemption must wait until the placed pods are assumed: no pod is evicted because of
        a placement that the cache may still refuse. `dry_run_size` is None if no plugin preempts.
        """
        diagnosis, profile = scores.diagnosis(), scores.evaluation.profile
        are_assumed = not (self._placed or self.has_unassumed)
        if not are_assumed and dry_run_size(profile, pod.pod_class.facts, diagnosis) is not None:
            return None
        return Decision(pod, None, diagnosis=diagnosis)

    def _is_out_of_date(self, pod: PodInCycle) -> bool:
        """Whether an earlier placement may have changed the answers of the class for other rows."""
        return self._is_changed_by(self._placed, pod)

    def _is_out_of_date_for_kernel(self, pod: PodInCycle) -> bool:
        """The same for placements that the kernel did not make; it accounts for its own."""
        return self._is_changed_by(self._placed_outside_kernel, pod)

    def _is_changed_by(self, placed: PlacedClasses, pod: PodInCycle) -> bool:
        profile = self._classes[pod.signature].scores.evaluation.profile
        return placed.may_affect(pod.signature, pod.pod_class, profile)

    def _choose(self, pod: PodInCycle, scores: ClassScores) -> Decision:
        """Place a pod on one of the best rows."""
        highest = int(scores.total.max())
        assert highest > INFEASIBLE, "a class with feasible rows has totals"
        return self._place(pod, scores, np.flatnonzero(scores.total == highest), highest)

    def _place(self, pod: PodInCycle, scores: ClassScores, best: Rows, total: int) -> Decision:
        """Place a pod on one of some equally good rows."""
        row = self._chooser.one_of(self.table, best, pod.key, pod.tie_break_number)
        name, named = self.table.columns.names[row], self._names(best) if self._name_best else ()
        self._put(pod, name)
        return Decision(pod, name, scores.feasible_count(), total, len(best), named)

    def _put(self, pod: PodInCycle, name: str) -> None:
        """Add a pod to a node, which ends its nomination."""
        self.table.add_pod(name, pod.pod_class, uid=pod.uid, key=pod.key)
        if pod.pod_class.facts.nominated_node_name:
            self.table.withdraw(pod.pod_class.facts.nominated_node_name, pod.pod_class)
        self._record_placement(pod.pod_class)

    def _record_placement(self, pod_class: PodClass) -> None:
        """Record a placement that the kernel did not make."""
        self._placed.add((pod_class,))
        self._placed_outside_kernel.add((pod_class,))

    def _names(self, rows: Rows) -> tuple[str, ...]:
        names = sorted((self.table.columns.names[row] for row in rows), key=str.encode)
        return tuple(names[:MAX_NAMED_BEST])


def kernel_classes(classes: Mapping[Hashable, ClassInput]) -> dict[Hashable, KernelClass]:
    """Return the classes that a kernel may decide (`may_be_covered`), as its input."""
    return {
        signature: kernel_class(each) for signature, each in classes.items() if may_be_covered(each)
    }


def may_be_covered(class_input: ClassInput) -> bool:
    """Whether a kernel may decide a class: no filter failed, and no node search restricts it.

    A kernel evaluates all nodes, or searches itself (`SampledBatch`).
    """
    scores = class_input.scores
    return (
        scores.search_result is None
        and not scores.error
        and scores.evaluation.filter_failure() is None
    )


def kernel_class(class_input: ClassInput) -> KernelClass:
    """Return a class as input of a kernel."""
    own, shared = class_input.scores.evaluation, class_input.shared_evaluation
    return KernelClass(shared or own, own.pod, class_input.pre_filter, class_input.pre_score)
