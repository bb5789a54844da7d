"""Kernel: sequences of pods decided by compiled code, over one table whose nodes stay the same.

    Kernel(classes) ──► decide(pods) ──► decided rows, and why it stopped
                          │  ▲
                          │  └── totals of new classes, normalization for other groups of rows
                          └──► flush(): placements are applied to the table

A kernel covers some of the classes. The caller decides all other pods: those of classes that it
does not cover, and those without a feasible row. Rows with equal raw scores are one normalization
group: their normalized scores are equal. For the arrays see `arrays.py`; a position is the index of
a row in the order of tie-breaks.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from roadstead.framework.tie_break import Chooser
from roadstead.kernel.amounts import INEXACT_AMOUNTS
from roadstead.kernel.arrays import (
    NEEDS_NORMALIZATION,
    NO_FEASIBLE_ROW,
    NO_TOTALS,
    RESULTS_CHANGED,
    U64,
    PodArrays,
    new_chunk,
)
from roadstead.kernel.cell_layout import CellChooser, in_best_cells
from roadstead.kernel.counter_layout import lay_out_counters, with_classes
from roadstead.kernel.covered_classes import (
    CoveredClass,
    CoveredClasses,
    KernelClass,
    SharedEvaluation,
)
from roadstead.kernel.layout import affected_by, empty_totals
from roadstead.kernel.listing import KernelLists, ListedRows
from roadstead.kernel.lists import BestRows
from roadstead.kernel.lowering.lowerings import lay_out_classes, replace_amounts
from roadstead.kernel.mirror import Mirror
from roadstead.kernel.repeated_call import RepeatedCall
from roadstead.kernel.start import CompiledCode
from roadstead.kernel.static_scores import (
    StaticRows,
    StaticScores,
    normalized_scores,
    static_scores_of_rows,
)
from roadstead.nodes.columns import I64, Bools
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import NodeTable, Rows
from roadstead.protocol.fast_init import fast_init

BUILD_MAX = 64
"""Maximum number of new classes whose totals are computed in one call."""

_NO_NODE, _OUT_OF_RANGE = "no feasible node", "score out of range"
_UNTIL_BATCH_ENDS = (_NO_NODE, _OUT_OF_RANGE, INEXACT_AMOUNTS)
"""Reasons that hold for all later pods of a class in a batch: placements only use up resources."""
STOP_REASONS = {RESULTS_CHANGED: "changed by a placement", NO_FEASIBLE_ROW: _NO_NODE}


class KernelPod(Protocol):
    """A pod to decide. Pods of one signature may differ in what no plugin reads.

    tie_break_number: 1, plus 1 for each chosen node that failed; `TieBreak.pod_hash` includes it.
    """

    @property
    def uid(self) -> str: ...
    @property
    def key(self) -> str: ...
    @property
    def pod_class(self) -> PodClass: ...
    @property
    def signature(self) -> Hashable: ...
    @property
    def tie_break_number(self) -> int: ...


@fast_init
@dataclass(frozen=True, slots=True)
class DecidedPods:
    """The decided pods. Of each: its row, number of feasible rows, total, number of rows with it.

    stopped: why not all pods were decided; "" if they were. next_start: where the next sampled
    search starts.
    """

    rows: list[int]
    feasible: list[int]
    totals: list[int]
    tied_best: list[int]
    stopped: str = ""
    next_start: int = 0


@dataclass(frozen=True, slots=True)
class Sampling:
    """A sampled search: the node order, and where the next search starts.

    to_find: number of feasible rows by scheduler name; the search ends before the next one.
    """

    order: Rows
    start: int
    to_find: Mapping[str, int]


class Kernel:
    """Decide pods of some classes over one table that holds all nodes.

    classes: by signature; `CoveredClasses` finds those that the kernel covers, and `decide` accepts
    no others. shares_static: classes with equal static scores share one array; only for a table on
    which no facts of nodes change.
    """

    def __init__(
        self,
        code: CompiledCode,
        table: NodeTable,
        classes: Mapping[Hashable, KernelClass],
        chooser: Chooser,
        *,
        shares_static: bool = True,
    ) -> None:
        self._code = code
        self._decide_code = RepeatedCall(code.decide_pods)
        self._build_code = RepeatedCall(code.build)
        self._table = table
        self._tie_break = chooser.tie_break
        self._pending: list[tuple[int, KernelPod]] = []
        self._one_pod_arrays: PodArrays | None = None
        self._lists: KernelLists | None = None
        self._shares_static = shares_static
        found = CoveredClasses(table, classes, shares_static=shares_static)
        self._covered, self._why_not = found.covered, found.why_not
        # By the index of an evaluation: the version of the nodes whose facts its static scores
        # include, and the version of the plugins' state outside the table that its results include.
        self._node_versions = dict.fromkeys(range(len(found.evaluations)), table.node_version)
        self._state_versions = {each.index: each.state_version for each in found.evaluations}
        self._by_index = list(self._covered.values())
        if self._by_index:
            self._lay_out(list(found.static_scores.values()), found.evaluations, chooser)
            row_arrays = self._mirror.row_arrays
            self._lists = KernelLists(code, len(self._by_index), row_arrays, self._totals)

    def _lay_out(
        self,
        static_scores: Sequence[StaticScores],
        evaluations: Sequence[SharedEvaluation],
        chooser: Chooser,
    ) -> None:
        table = self._table
        lowered = [each.shared.lowering for each in self._by_index]
        pod_classes = [each.kernel_class.pod for each in self._by_index]
        profiles = [each.kernel_class.evaluation.profile for each in self._by_index]
        affected = affected_by(profiles, pod_classes)
        index_of = {id(scores): index for index, scores in enumerate(static_scores)}
        static_index = [index_of[id(each.static_scores)] for each in evaluations]
        evaluation_of = np.array([each.shared.index for each in self._by_index], dtype=np.int64)
        static_index_of = np.array(static_index, dtype=np.int64)[evaluation_of]
        self._class_arrays, ports_in_use = lay_out_classes(
            lowered, pod_classes, affected, static_index_of, evaluation_of
        )
        self._mirror = Mirror(table, chooser, ports_in_use)
        row_at = self._mirror.row_arrays.row_at
        self._totals = empty_totals(len(pod_classes), static_scores, len(evaluations), row_at)
        groups = self._totals.group_feasible.shape[1]
        first_evaluations = [each.first_class.evaluation for each in evaluations]
        counters = lay_out_counters(first_evaluations, table, static_index, groups)
        if counters is None:
            # Too many counts: the plugins decide.
            self._why_not |= dict.fromkeys(self._covered, "too many domains")
            counters = lay_out_counters((), table, (), groups)
        assert counters is not None
        self._counters = with_classes(counters, evaluation_of)
        self._has_counters = bool((self._counters.set_of_class >= 0).any())
        self._cells = CellChooser(self._totals.group_of_row, row_at)
        self._changed_rows = np.zeros(1024, dtype=np.int64)
        self._new_totals = np.zeros(1024, dtype=np.int32)
        self._changed_count = np.zeros(1, dtype=np.int64)
        self._one_class = np.zeros(1, dtype=np.int64)
        self._chunk = new_chunk(self._mirror.row_arrays.allocatable.shape[1])

    def why_not(self, signature: Hashable) -> str:
        """Return why pods of a signature are not decided here at the moment; "" if they are."""
        found = self._covered.get(signature)
        if found is None or signature in self._why_not:
            return self._why_not.get(signature, "node search, or an error")
        return "" if self.is_unchanged(signature) else "volumes changed"

    def is_unchanged(self, signature: Hashable) -> bool:
        """Whether the plugins' state outside the table is still that of a covered class's results.

        If it changed, but only for filters that are called for each pod, they are called again.
        """
        covered = self._covered[signature]
        evaluation, shared = covered.kernel_class.evaluation, covered.shared
        version = evaluation.profile.state_version(evaluation.pod)
        if version == self._state_versions[shared.index]:
            return True
        rows = None if shared.per_pod_filters is None else shared.per_pod_filters.call_again()
        if rows is None:
            return False
        self._state_versions[shared.index] = version
        self._write_passes(covered, rows)
        return True

    def _write_passes(self, covered: CoveredClass, rows: Rows) -> None:
        """Write which of some rows pass; their totals are computed again as of changed rows."""
        if not len(rows):
            return
        assert covered.shared.per_pod_filters is not None
        positions = self._mirror.row_arrays.position_of[rows]
        index = int(self._class_arrays.static_index[covered.class_index])
        self._totals.passes[index, positions] = covered.shared.per_pod_filters.passes[rows]
        if self._lists is not None:
            self._lists.drop()
        self._record_changed(rows.tolist(), 0)

    def why_not_sampled(self, signature: Hashable) -> str:
        """Return why a sampled search for a covered class is not possible here; "" if it is."""
        by_name = self._covered[signature].kernel_class.evaluation.pre_filter.node_names is not None
        return "sampled among named nodes" if by_name else ""

    def covers(self, signature: Hashable) -> bool:
        """Whether a class was covered when the kernel was built."""
        return signature in self._covered

    def begin_batch(self) -> None:
        """Begin a batch on the same table, on which other changes may have made rows feasible.

        So classes without a feasible row are tried again.
        """
        assert not self._pending, "a batch begins before the last one was applied to the table"
        if self._lists is not None:
            self._lists.drop()
        for signature in [s for s, why in self._why_not.items() if why in _UNTIL_BATCH_ENDS]:
            del self._why_not[signature]

    def decide(self, pods: Sequence[KernelPod], sampling: Sampling | None = None) -> DecidedPods:
        """Decide pods of covered classes up to the first one that the kernel cannot decide."""
        self._refresh(len(pods))
        is_one = len(pods) == 1 and sampling is None
        pod_arrays = self._arrays_of_one(pods[0]) if is_one else self._new_arrays(pods, sampling)
        if self._mirror.has_inexact_amounts:
            done, stopped = 0, INEXACT_AMOUNTS
        else:
            if self._has_counters or not is_one:
                self._counters = self._cells.prepare(self._counters, pod_arrays.classes)
            done, stopped = self._decide_compiled(pod_arrays)
        if stopped in _UNTIL_BATCH_ENDS:
            self._why_not[pods[done].signature] = stopped
        rows = pod_arrays.row[:done].tolist()
        self._pending += zip(rows, pods, strict=False)
        columns = pod_arrays.feasible, pod_arrays.total, pod_arrays.tied_best
        feasible, totals, tied = (each[:done].tolist() for each in columns)
        return DecidedPods(rows, feasible, totals, tied, stopped, int(pod_arrays.search_start[0]))

    def replace(self, old: Hashable, signature: Hashable, new: KernelClass) -> bool:
        """Cover a class in place of another one of its evaluation; return whether that is possible.

        It is not if the other is not covered, or the new one does not fit into the arrays.
        """
        covered = self._covered.get(old)
        if covered is None:
            return False
        c, shared = covered.class_index, covered.shared
        assert shared.first_class.is_same(new), "a class is replaced by one of another evaluation"
        if new.pod.is_large or not replace_amounts(self._class_arrays, c, shared.lowering, new.pod):
            return False
        del self._covered[old]
        self._why_not.pop(old, None)
        self._covered[signature] = self._by_index[c] = CoveredClass(c, new, shared)
        totals = self._totals
        totals.has_totals[c] = totals.results_changed[c] = totals.needs_normalization[c] = False
        self._counters.has_last_groups[c] = False
        return True

    def update_static_scores(self, signature: Hashable) -> bool:
        """Bring the static scores of a class and its evaluation up to date after changes of nodes.

        The evaluation is up to date. Returns False if only a new kernel can decide the class.
        """
        covered, table = self._covered.get(signature), self._table
        if covered is None:
            return False
        shared = covered.shared
        if self._node_versions[shared.index] == table.node_version:
            return True
        evaluation, state = shared.first_class.evaluation, shared.first_class.pre_score.state
        if self._shares_static or evaluation.node_version != table.node_version:
            return False
        rows = table.facts_changed_since(self._node_versions[shared.index])
        new = static_scores_of_rows(evaluation, state, shared.static_scores, rows)
        if new is None:
            return False
        index = int(self._class_arrays.static_index[covered.class_index])
        self._write_static_scores(index, rows, new)
        self._node_versions[shared.index] = table.node_version
        return True

    def _write_static_scores(self, index: int, rows: Rows, new: StaticRows) -> None:
        """Write static scores of some rows, whose totals are computed again as of changed rows."""
        totals, positions = self._totals, self._mirror.row_arrays.position_of[rows]
        totals.passes[index, positions], totals.static[index, positions] = new.passes, new.sums
        if (totals.group_of_row[index, rows] != new.group).any():
            # The counts of feasible rows by group are of the former groups.
            totals.group_of_row[index, rows] = totals.group_at[index, positions] = new.group
            totals.has_totals[self._class_arrays.static_index == index] = False

    def place_one(self, pod: KernelPod) -> str | None:
        """Decide one pod of a covered class and place it on the table; return its node.

        None, with nothing changed, if it has no feasible row, or a placement changed the results of
        its class for other rows. As a batch of one pod, without the steps that only more pods need.
        """
        self.begin_batch()
        if pod.signature in self._why_not:
            return None
        self._refresh(1)
        if self._mirror.has_inexact_amounts:
            return None
        pod_arrays = self._arrays_of_one(pod)
        if self._has_counters:
            self._counters = self._cells.prepare(self._counters, pod_arrays.classes)
        c = int(pod_arrays.classes[0])
        assert self._lists is not None, "a kernel that covers a class has lists, if empty ones"
        if not self._totals.has_totals[c] and self._lists.lists.list_of_class[c] < 0:
            # Compiled code would return only to have them built.
            self._build_one(c)
        done, _ = self._decide_compiled(pod_arrays)
        if not done:
            return None
        name = self._table.columns.names[int(pod_arrays.row[0])]
        self._table.add_pod(name, pod.pod_class, uid=pod.uid, key=pod.key)
        self._mirror.mark_current()
        return name

    def _arrays_of_one(self, pod: KernelPod) -> PodArrays:
        pod_arrays = self._one_pod_arrays
        if pod_arrays is None or pod_arrays.changed_rows is not self._changed_rows:
            pod_arrays = self._one_pod_arrays = self._new_arrays((pod,), None)
        pod_arrays.classes[0] = self._covered[pod.signature].class_index
        if pod_arrays.is_random[0]:
            pod_arrays.tie_break_hashes[0] = self._tie_break.pod_hash(pod.key, pod.tie_break_number)
        return pod_arrays

    def _decide_compiled(self, pod_arrays: PodArrays) -> tuple[int, str]:
        """Return how many pods were decided, and why not more."""
        assert self._lists is not None, "a kernel that covers a class has lists, if empty ones"
        done = 0
        while True:
            arrays = self._mirror.row_arrays, self._class_arrays, self._totals, self._counters
            done, reason = self._decide_code.call((*arrays, self._lists.lists, pod_arrays), done)
            if reason == NO_TOTALS:
                self._build(pod_arrays.classes[done:])
            elif reason != NEEDS_NORMALIZATION:
                return done, STOP_REASONS.get(reason, "")
            else:
                c = int(pod_arrays.classes[done])
                has_counters = self._counters.set_of_class[c] >= 0
                is_sampled = len(pod_arrays.search_order) > 0 and not has_counters
                # A sampled pod is normalized over the visited rows only, which differ from pod to
                # pod: its scores are cached, and the totals of all rows stay as they are.
                if (
                    why := self._cache_scores(c, pod_arrays.group_feasible)
                    if is_sampled
                    else self._renormalize(c)
                ):
                    return done, why

    def _refresh(self, pods: int) -> None:
        """Copy the rows of the table that others changed, and record them as changed."""
        # With placements pending, a batch is being decided, and nothing else changes the table.
        changed: list[int] = [] if self._pending else self._mirror.refresh().tolist()
        if changed and self._lists is not None:
            self._lists.drop()
        self._record_changed(changed, pods)

    def _record_changed(self, changed: list[int], pods: int) -> None:
        """Append to the changed rows, with space for the placements of some pods behind them."""
        count = int(self._changed_count[0])
        if count + len(changed) + pods > len(self._changed_rows):
            count = self._make_space(len(changed) + pods)
        self._changed_rows[count : count + len(changed)] = changed
        self._changed_count[0] = count + len(changed)

    def _make_space(self, more: int) -> int:
        """Make space for more changed rows; return how many there are."""
        totals, count = self._totals, int(self._changed_count[0])
        # A class that is behind by more changes than there are rows is computed anew in less time.
        is_behind = totals.applied_changes < count - len(self._mirror.row_arrays.row_at)
        totals.has_totals[is_behind & (self._counters.set_of_class < 0)] = False
        # Changes that all classes have applied are dropped.
        first = int(totals.applied_changes[totals.has_totals].min(initial=count))
        self._changed_rows[: count - first] = self._changed_rows[first:count].copy()
        totals.applied_changes[:] -= first
        count = self._changed_count[0] = count - first
        if count + more > len(self._changed_rows) // 2:
            self._changed_rows = np.resize(self._changed_rows, 2 * (count + more))
            self._new_totals = np.zeros(2 * (count + more), dtype=np.int32)
        return count

    def _new_arrays(self, pods: Sequence[KernelPod], sampling: Sampling | None) -> PodArrays:
        to_find, order, start = [], np.zeros(0, np.int64), 0
        if sampling is not None:
            # Nodes may have been removed since the last search.
            order = sampling.order.astype(np.int64)
            start = sampling.start % max(1, len(order))
            names = (each.kernel_class.evaluation.profile.scheduler_name for each in self._by_index)
            to_find = [sampling.to_find.get(name, 0) for name in names]
        is_random = self._tie_break.kind == "random"
        pod_hash = self._tie_break.pod_hash
        hashes = [pod_hash(pod.key, pod.tie_break_number) for pod in pods] if is_random else []
        return PodArrays(
            classes=np.array([self._covered[pod.signature].class_index for pod in pods], np.int64),
            tie_break_hashes=np.array(hashes, np.uint64)
            if is_random
            else np.zeros(len(pods), np.uint64),
            row=np.empty(len(pods), np.int64),
            feasible=np.empty(len(pods), np.int64),
            total=np.empty(len(pods), np.int64),
            tied_best=np.empty(len(pods), np.int64),
            changed_rows=self._changed_rows,
            changed_count=self._changed_count,
            new_totals=self._new_totals,
            is_random=np.array([is_random]),
            search_order=order,
            search_start=np.array([start], np.int64),
            feasible_to_find=np.array(to_find, np.int64),
            visited_rows=np.zeros(1, np.int64),
            group_feasible=np.zeros(self._totals.group_feasible.shape[1], np.int64),
        )

    def _build(self, next_classes: I64) -> None:
        """Compute the totals of the next classes that have none."""
        assert self._lists is not None, "a kernel that covers a class has lists, if empty ones"
        built, listed = self._totals.has_totals, self._lists.lists.list_of_class >= 0
        # The first one is computed even if it has a list, which was not enough.
        first, *later = dict.fromkeys(next_classes.tolist())
        later = [c for c in later if not (built[c] or listed[c])]
        if later:
            self._build_classes(np.array([first, *later[: BUILD_MAX - 1]], np.int64))
        else:
            self._build_one(first)

    def _build_one(self, c: int) -> None:
        self._one_class[0] = c
        self._build_classes(self._one_class)

    def _build_classes(self, classes: I64) -> None:
        self._chunk.used_resources[:] = False
        arrays = self._mirror.row_arrays, self._class_arrays, self._totals
        self._build_code.call((*arrays, classes), int(self._changed_count[0]), (self._chunk,))

    def _renormalize(self, c: int) -> str:
        """Normalize the totals of a class again; return why the reference must decide, or ""."""
        each = self._by_index[c]
        static = each.shared.static_scores
        groups = static.raw.shape[1]
        counters, totals = self._counters, self._totals
        has_counters = counters.set_of_class[c] >= 0
        group_feasible = (counters.group_feasible if has_counters else totals.group_feasible[c])[
            :groups
        ] > 0
        scores = normalized_scores(each.kernel_class.evaluation, static, group_feasible)
        if scores is None:
            return _OUT_OF_RANGE
        if has_counters:
            # Only after a success: the next batch repeats a normalization that failed.
            counters.last_groups[c, :groups], counters.has_last_groups[c] = group_feasible, True
        if (scores != totals.normalized_scores[c, :groups]).any():
            self._code.renormalize(self._mirror.row_arrays, self._class_arrays, totals, c, scores)
            counters.cells.is_built[c] = False
        totals.needs_normalization[c] = False
        index = each.shared.index
        totals.cached_groups[index, :groups], totals.cached_scores[index, :groups] = (
            group_feasible,
            scores,
        )
        totals.has_cached_scores[index] = True
        return ""

    def _cache_scores(self, c: int, group_feasible: I64) -> str:
        """Cache the normalized scores of a class's evaluation for the groups with visited rows.

        Returns why the reference must decide, or "".
        """
        each = self._by_index[c]
        static, index, totals = each.shared.static_scores, each.shared.index, self._totals
        groups = static.raw.shape[1]
        scores = normalized_scores(
            each.kernel_class.evaluation, static, group_feasible[:groups] > 0
        )
        if scores is None:
            return _OUT_OF_RANGE
        totals.cached_groups[index], totals.cached_scores[index, :groups] = (
            group_feasible > 0,
            scores,
        )
        totals.has_cached_scores[index] = True
        return ""

    def listable_classes(self) -> list[Hashable]:
        """Return the signatures of classes without totals whose best rows workers may list.

        The totals of such a class depend on nothing but the pod and the row.
        """
        if self._tie_break.kind != "random" or not self._covered:
            return []
        if self._mirror.has_inexact_amounts:
            return []
        return [
            signature
            for signature, each in self._covered.items()
            if signature not in self._why_not and self._is_listable(each)
        ]

    def _is_listable(self, covered: CoveredClass) -> bool:
        """Whether the class has no totals yet, and its totals depend only on the pod and the row.

        With one normalization group, all rows have the same normalized score.
        """
        kernel_class, c = covered.kernel_class, covered.class_index
        groups = covered.shared.static_scores.raw.shape[1]
        depends_on_more = (
            kernel_class.reads_other_nodes
            or kernel_class.pod.facts.may_bind_claims
            or kernel_class.evaluation.pre_filter.node_names is not None
            or self._counters.set_of_class[c] >= 0
        )
        return not self._totals.has_totals[c] and not depends_on_more and groups == 1

    def use_lists(self, best: BestRows, placements: int) -> None:
        """Use lists of the best rows of new classes, computed on the table's current state.

        placements: the maximum number of pods decided before the table changes otherwise.
        """
        assert self._lists is not None, "lists are of classes that are covered"
        indices = [self._covered[signature].class_index for signature in best.signatures]
        scores = [self._score_of_all_rows(c) for c in indices]
        self._lists.use(best, indices, scores, placements)

    def _score_of_all_rows(self, c: int) -> int | None:
        """Return the normalized score of all rows of a class with one group; None if it fails."""
        totals, index = self._totals, self._by_index[c].shared.index
        if not (totals.has_cached_scores[index] and totals.cached_groups[index, 0]):
            group_feasible = np.zeros(totals.group_feasible.shape[1], np.int64)
            group_feasible[0] = 1
            if self._cache_scores(c, group_feasible):
                return None
        # The list has its own copy: the cached scores may be computed for other rows later.
        return int(totals.cached_scores[index, 0])

    def list_best(
        self, signatures: Sequence[Hashable], tie_break_hashes: U64, most: int
    ) -> ListedRows:
        """List the best rows of classes on this table; none for a class that may not be listed."""
        listable = set(self.listable_classes())
        indices = [self._covered[s].class_index if s in listable else -1 for s in signatures]
        to_build = np.array([c for c in indices if c >= 0], np.int64)
        for start in range(0, len(to_build), BUILD_MAX):
            self._build(to_build[start : start + BUILD_MAX])
        if self._lists is None:
            return ListedRows.empty(len(signatures), most)
        return self._lists.list_best(indices, tie_break_hashes, most)

    def exclude(self, rows: Rows) -> None:
        """Make rows infeasible for a worker; call before totals are computed.

        They changed since the state that the scheduler asks about; it evaluates them itself.
        """
        if self._covered:
            self._totals.passes[:, self._mirror.row_arrays.position_of[rows]] = False

    def best_rows(self, signature: Hashable, total: int) -> Rows:
        """Return all best rows of the last decided pod; total: its total."""
        index = self._covered[signature].class_index
        counters, totals = self._counters, self._totals.total[index]
        is_best: Bools = totals == total
        if counters.set_of_class[index] >= 0:
            layout = int(counters.cells.last_layout[0])
            # -1: the last pod was decided by rows, not by cells.
            if layout < 0:
                best: Rows = np.flatnonzero(counters.total[: len(self._table)] == total)
                return best
            is_best = in_best_cells(counters, layout, totals, total)
        return np.sort(self._mirror.row_arrays.row_at[np.flatnonzero(is_best)])

    def flush(self) -> None:
        """Apply all pending placements to the table."""
        if self._pending:
            names = self._table.columns.names
            rows, pods = [row for row, _ in self._pending], [pod for _, pod in self._pending]
            pod_classes = [pod.pod_class for pod in pods]
            self._table.residents.add_all(
                *([names[row] for row in rows], [pod.uid for pod in pods]),
                *(pod_classes, [pod.key for pod in pods]),
            )
            self._table.add_pods(rows, pod_classes)
            self._pending.clear()
            self._mirror.mark_current()
