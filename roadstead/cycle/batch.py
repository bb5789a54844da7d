"""BatchRun: pods decided one after another over one table that holds all nodes.

Each placement changes its row, and the classes that come later look at that row again. Where a
placement may matter beyond its row (a plugin that reads the cluster) the run says so with `None`:
the batch ends there, and the remaining pods are begun anew. That is what makes a batch exact.

Upstream: pkg/scheduler/schedule_one.go (schedulePod, selectHost), one pod at a time.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import NamedTuple

import numpy as np

from roadstead.cycle.class_run import INFEASIBLE, ClassRun
from roadstead.cycle.placed import Placed
from roadstead.framework.diagnosis import Diagnosis
from roadstead.framework.evaluation import Evaluation
from roadstead.framework.post_filter import candidates_wanted
from roadstead.framework.post_filter_answers import PostFilterResult
from roadstead.framework.pre_filtering import PreFilterOutcome
from roadstead.framework.scoring import PreScoreOutcome
from roadstead.framework.tie_break import Chooser
from roadstead.framework.victims import DryRun, Tried
from roadstead.kernel.admitted import KernelClass
from roadstead.kernel.coverage import Coverage
from roadstead.kernel.keeper import KernelKeeper
from roadstead.kernel.kernel import Decided, Kernel
from roadstead.kernel.start import CompiledCode
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import NodeTable, Rows
from roadstead.preemption.dry_run import dry_run

MAX_NAMED_BEST = 50


class PodInCycle(NamedTuple):
    """A pod as a cycle sees it. draw: another one chooses anew among equals."""

    uid: str
    key: str
    info: PodClass
    signature: Hashable
    attempt: int = 1
    draw: int = 1


class Decision(NamedTuple):
    """What a cycle decided for one pod: a node, or why there is none, or that it failed.

    total: of the node's scores; 0 where scoring failed, but nothing had to be compared.
    best: names of the best nodes, sorted, at most MAX_NAMED_BEST (only if asked for).
    post_filter: what followed from there being no node, once that was asked.
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
    """A class in a batch, after PreFilter and PreScore.

    model: the evaluation of a class of the same kind, where one was found that this one needs none
    of its own but when the reference decides; `run` is not begun then.
    """

    run: ClassRun
    pre_filter: PreFilterOutcome
    pre_score: PreScoreOutcome
    model: Evaluation | None = None


@dataclass(slots=True)
class Accelerator:
    """The compiled code, which may come in while a batch is decided, and what it decided."""

    code: CompiledCode | None
    coverage: Coverage


class BatchRun:
    """Decides pods over all nodes; `classes` by signature.

    accelerator: decides runs of pods where its preconditions hold, to the same result.
    kernels: keeps a kernel for the batches that follow on the same table. follows_placed: pods that
    are not assumed yet were placed on it before this batch.
    """

    def __init__(
        self,
        table: NodeTable,
        classes: Mapping[Hashable, ClassInput],
        chooser: Chooser,
        *,
        name_best: bool = False,
        accelerator: Accelerator | None = None,
        kernels: KernelKeeper | None = None,
    ) -> None:
        self.table = table
        self._classes = classes
        self._chooser = chooser
        self._name_best = name_best
        self._placed = Placed()
        self._placed_outside = Placed()
        self._has_ended = False
        self.follows_placed = False
        self._accelerator = accelerator
        self._kernels = kernels
        self._kernel: Kernel | None = None

    def dry_run(self, pod: PodInCycle, ask: DryRun) -> Tried:
        """Who would have to go for a pod that was just found to fit nowhere."""
        evaluation = self._classes[pod.signature].run.evaluation
        return dry_run(evaluation, ask, evaluation.profile.budgets)

    def decide_run(self, pods: Sequence[PodInCycle]) -> list[Decision]:
        """Decisions for as many of the next pods as are settled at once; perhaps for none.

        `decide` is for the pod that follows.
        """
        accelerator = self._accelerator
        code = None if accelerator is None else accelerator.code
        if accelerator is None or code is None or not pods or self._has_ended:
            return []
        if self.table.nominations:
            accelerator.coverage.by_reference["nominated pods"] += 1
            return []
        kernel, why_not = self._admit(code), self._why_not
        if why := why_not(kernel, pods[0].signature):
            accelerator.coverage.by_reference[why] += 1
            return []
        classes = {pod.signature: pod for pod in pods}
        left = {
            signature
            for signature, pod in classes.items()
            if why_not(kernel, signature) or self._changed_outside(pod)
        }
        if self._name_best and pods[0].signature not in left:
            pods = pods[:1]
        elif left:
            pods = list(takewhile(lambda pod: pod.signature not in left, pods))
        return self._run(pods, accelerator.coverage)

    def _admit(self, code: CompiledCode) -> Kernel:
        """The kernel of this batch, for the classes that it may decide."""
        if self._kernel is not None:
            return self._kernel
        classes = kernel_classes(self._classes)
        may_keep = self._kernels is not None and len(classes) == len(self._classes)
        kernels = self._kernels if self._kernels is not None and may_keep else KernelKeeper()
        self._kernel = kernels.take(code, self.table, classes, self._chooser)
        return self._kernel

    def _why_not(self, kernel: Kernel, signature: Hashable) -> str:
        return kernel.why_not(signature)

    def _decide_by(self, kernel: Kernel, pods: Sequence[PodInCycle]) -> Decided:
        return kernel.run(pods)

    def _run(self, pods: Sequence[PodInCycle], coverage: Coverage) -> list[Decision]:
        assert self._kernel is not None
        done = self._decide_by(self._kernel, pods)
        names = self.table.columns.names
        best: tuple[str, ...] = ()
        if self._name_best and done.rows:
            best = self._names(self._kernel.best_rows(pods[0].signature, done.totals[0]))
        told = zip(pods, done.rows, done.feasible, done.totals, done.best, strict=False)
        decisions = [
            Decision(pod, names[row], feasible, total, size, best)
            for pod, row, feasible, total, size in told
        ]
        self._placed.add(each.pod.info for each in decisions)
        coverage.by_kernel += len(decisions)
        if done.stopped:
            coverage.stops[done.stopped] += 1
        return decisions

    def settle(self) -> None:
        """Tells the table of every placement; until then it may lack those of `decide_run`."""
        if self._kernel is not None:
            self._kernel.flush()

    def decide(self, pod: PodInCycle) -> Decision | None:
        """The decision for the next pod, which takes effect on the table; None ends the batch."""
        self.settle()
        if self._has_ended:
            return None
        decision = self._decide(pod)
        # Placed or not, a pod gives its nomination up: what others were told of its node is over.
        self._has_ended = decision is not None and bool(pod.info.facts.nominated_node_name)
        return decision

    def _decide(self, pod: PodInCycle) -> Decision | None:
        """As `decide`, on a table that has every placement."""
        each = self._classes[pod.signature]
        run = each.run
        if self._changed_elsewhere(pod):
            return self._decide_changed(pod, run)
        if run.error and self._placed:
            # Scoring fails while rows are feasible, which earlier placements may have changed.
            return None
        failure = run.filter(each.pre_filter)
        if failure:
            return Decision(pod, None, run.passed_count(), error=failure)
        if not run.evaluation.pre_filter.status.is_success:
            return self._failed(pod, run)
        status = run.score(each.pre_score)
        # Upstream returns the only feasible node before it scores (schedulePod): a PreScore or a
        # Score that fails does not fail the pod. Classes are scored here before pods are decided.
        taken = run.only_row()
        if taken is not None:
            total = int(run.total[taken]) if status.is_success and not run.error else 0
            return self._place(pod, run, np.array([taken], dtype=np.intp), total)
        error = run.error or ("" if status.is_success else status.message)
        if error:
            return Decision(pod, None, run.passed_count(), error=error)
        if not run.has_feasible:
            return self._failed(pod, run)
        return self._choose(pod, run)

    def _decide_changed(self, pod: PodInCycle, run: ClassRun) -> Decision | None:
        """As `decide`, where earlier placements may have changed more for a pod than their rows."""
        return None

    def _failed(self, pod: PodInCycle, run: ClassRun) -> Decision | None:
        """No node; preemption is not tried for pods that are not assumed yet."""
        diagnosis, profile = run.diagnosis(), run.evaluation.profile
        are_assumed = not (self._placed or self.follows_placed)
        if not are_assumed and candidates_wanted(profile, pod.info.facts, diagnosis) is not None:
            return None
        return Decision(pod, None, diagnosis=diagnosis)

    def _changed_elsewhere(self, pod: PodInCycle) -> bool:
        """Whether an earlier placement may have changed more for this class than its own row."""
        return self._is_changed_by(self._placed, pod)

    def _changed_outside(self, pod: PodInCycle) -> bool:
        """The same of placements that the kernel did not make; it knows of its own."""
        return self._is_changed_by(self._placed_outside, pod)

    def _is_changed_by(self, placed: Placed, pod: PodInCycle) -> bool:
        profile = self._classes[pod.signature].run.evaluation.profile
        return placed.matters_to(pod.signature, pod.info, profile)

    def _choose(self, pod: PodInCycle, run: ClassRun) -> Decision:
        """One of the best rows."""
        highest = int(run.total.max())
        assert highest > INFEASIBLE, "a class with feasible rows has totals"
        return self._place(pod, run, np.flatnonzero(run.total == highest), highest)

    def _place(self, pod: PodInCycle, run: ClassRun, best: Rows, total: int) -> Decision:
        """Places a pod on one of some rows that are equally good."""
        row = self._chooser.one_of(self.table, best, pod.key, pod.draw)
        name, named = self.table.columns.names[row], self._names(best) if self._name_best else ()
        self._put(pod, name)
        return Decision(pod, name, run.feasible_count(), total, len(best), named)

    def _put(self, pod: PodInCycle, name: str) -> None:
        """A pod comes to a node, which ends its nomination."""
        self.table.add_pod(name, pod.info, uid=pod.uid, key=pod.key)
        if pod.info.facts.nominated_node_name:
            self.table.withdraw(pod.info.facts.nominated_node_name, pod.info)
        self._note_placed(pod.info)

    def _note_placed(self, info: PodClass) -> None:
        """A pod was placed, and not by the kernel."""
        self._placed.add((info,))
        self._placed_outside.add((info,))

    def _names(self, rows: Rows) -> tuple[str, ...]:
        names = sorted((self.table.columns.names[row] for row in rows), key=str.encode)
        return tuple(names[:MAX_NAMED_BEST])


def kernel_classes(classes: Mapping[Hashable, ClassInput]) -> dict[Hashable, KernelClass]:
    """Those classes that nothing outside of the profile has a say in, as a kernel takes them."""
    return {
        signature: _kernel_class(each)
        for signature, each in classes.items()
        if each.run.search_result is None
        and not each.run.error
        and each.run.evaluation.filter_failure() is None
    }


def _kernel_class(each: ClassInput) -> KernelClass:
    own = each.run.evaluation
    return KernelClass(each.model or own, own.pod, each.pre_filter, each.pre_score)
