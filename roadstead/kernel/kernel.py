"""Kernel: sequences of pods decided by compiled code, over one table whose nodes stay the same.

    Kernel(classes) ──► decide(pods) ──► decided rows, and why it stopped
                          │  ▲
                          │  └── totals of new classes, normalization for other groups of rows
                          └──► flush(): placements are applied to the table

A kernel covers some of the classes: those whose plugins it computes (`covered_classes`). The caller
decides all other pods, and pods without a feasible row. c is the index of a covered class in all
arrays (`arrays.py`). The mirror is the copy of the table's amounts that compiled code reads and
writes (`mirror`).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

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
from roadstead.kernel.best_rows import BestRows
from roadstead.kernel.cell_layout import CellChooser, in_best_cells
from roadstead.kernel.changed_rows import ChangedRows
from roadstead.kernel.compiled_code import CompiledCode
from roadstead.kernel.covered_classes import CoveredClass, CoveredClasses, KernelClass
from roadstead.kernel.kernel_lists import KernelLists, ListedRows
from roadstead.kernel.layout import lay_out
from roadstead.kernel.lowering.lowerings import replace_amounts
from roadstead.kernel.normalization import OUT_OF_RANGE, Normalization
from roadstead.kernel.pods import DecidedPods, KernelPod, PodLayout, Sampling
from roadstead.kernel.repeated_call import RepeatedCall
from roadstead.kernel.static_scores import StaticRows, static_scores_of_rows
from roadstead.nodes.columns import I64, Bools
from roadstead.nodes.table import NodeTable, Rows

BUILD_MAX = 64
"""Maximum number of new classes whose totals are computed in one call."""

_NO_NODE = "no feasible node"
_UNTIL_BATCH_ENDS = (_NO_NODE, OUT_OF_RANGE, INEXACT_AMOUNTS)
"""Reasons in `_why_not` that hold to the end of a batch, as placements only use up resources."""

_STOP_REASONS = {RESULTS_CHANGED: "changed by a placement", NO_FEASIBLE_ROW: _NO_NODE}
"""By code that `decide_pods` returns: why it stopped before the last pod."""


class Kernel:
    """Decide pods of some classes over one table that holds all nodes.

    classes: by signature; `CoveredClasses` finds those that the kernel covers, and `decide` accepts
    no others. chooser: chooses among rows with equal totals. shares_static: classes with equal
    static scores share one array; only for a table on which no facts of nodes change.
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
        # (row, pod) of placements that are not on the table yet.
        self._pending: list[tuple[int, KernelPod]] = []
        self._lists: KernelLists | None = None
        self._shares_static = shares_static
        coverage = CoveredClasses(table, classes, shares_static=shares_static)
        self._covered, self._why_not = coverage.covered, coverage.why_not
        # By the index of an evaluation: the version of the nodes whose facts its static scores
        # include, and the version of the plugins' state outside the table that its results include.
        self._node_versions = dict.fromkeys(range(len(coverage.evaluations)), table.node_version)
        self._state_versions = {each.index: each.state_version for each in coverage.evaluations}
        # The covered classes, in the order of their index.
        self._by_index = list(self._covered.values())
        if self._by_index:
            self._lay_out(coverage, chooser)

    def _lay_out(self, coverage: CoveredClasses, chooser: Chooser) -> None:
        """Create the arrays (`KernelArrays`), and the objects that read and write them."""
        arrays = lay_out(self._table, coverage, chooser)
        self._mirror, self._class_arrays = arrays.mirror, arrays.class_arrays
        self._totals, self._counters = arrays.totals, arrays.counters
        if arrays.too_many_counts:
            self._why_not |= dict.fromkeys(self._covered, "too many domains")
        row_arrays, has_counters = self._mirror.row_arrays, self._counters.set_of_class >= 0
        self._has_counters = bool(has_counters.any())
        self._cells = CellChooser(self._totals.group_of_row, row_arrays.row_at)
        self._changed = ChangedRows(self._totals, has_counters)
        names = [each.kernel_class.evaluation.profile.scheduler_name for each in self._by_index]
        groups = self._totals.group_feasible.shape[1]
        self._pod_layout = PodLayout(self._covered, names, self._tie_break, self._changed, groups)
        self._normalization = Normalization(
            self._code, row_arrays, self._class_arrays, self._totals, self._by_index
        )
        self._one_class = np.zeros(1, dtype=np.int64)
        self._chunk = new_chunk(row_arrays.allocatable.shape[1])
        self._lists = KernelLists(self._code, len(self._by_index), row_arrays, self._totals)

    def why_not(self, signature: Hashable) -> str:
        """Return why pods of a signature are not decided here at the moment; "" if they are."""
        if signature not in self._covered or signature in self._why_not:
            return self._why_not.get(signature, "node search, or an error")
        return "" if self.update_per_pod_filters(signature) else "volumes changed"

    def update_per_pod_filters(self, signature: Hashable) -> bool:
        """Bring a covered class up to date with the plugins' state outside the table.

        Only filters that are called before each pod (`PerPodFilters`) can be called again. Returns
        False if other results have changed, so that the class needs a new kernel.
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
        """Write which of some rows pass, and mark them as changed: their totals are out of date."""
        if not len(rows):
            return
        assert covered.shared.per_pod_filters is not None
        positions = self._mirror.row_arrays.position_of[rows]
        index = int(self._class_arrays.static_index[covered.class_index])
        self._totals.passes[index, positions] = covered.shared.per_pod_filters.passes[rows]
        if self._lists is not None:
            self._lists.drop()
        self._changed.append(rows.tolist(), placements=0)

    def why_not_sampled(self, signature: Hashable) -> str:
        """Return why a sampled search for a covered class is not possible here; "" if it is."""
        by_name = self._covered[signature].kernel_class.evaluation.pre_filter.node_names is not None
        return "sampled among named nodes" if by_name else ""

    def covers(self, signature: Hashable) -> bool:
        """Whether the kernel covers a class, even if its pods cannot be decided at the moment."""
        return signature in self._covered

    def begin_batch(self) -> None:
        """Begin a batch on the same table. Classes that had no feasible row are tried again.

        Changes of the table since the last batch may have made rows feasible.
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
        layout = self._pod_layout
        pod_arrays = layout.lay_out_one(pods[0]) if is_one else layout.lay_out(pods, sampling)
        if self._mirror.has_inexact_amounts:
            done, stopped = 0, INEXACT_AMOUNTS
        else:
            # A single pod saves the call that would change nothing.
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
        """Cover a class in place of an old one with the same evaluation.

        Returns False, with nothing changed, if the old class is not covered, or the new one does
        not fit into the arrays.
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
        """Update the static scores of a class, and of all with its evaluation, after nodes changed.

        The caller has updated the evaluation itself. Returns False if only a new kernel can decide
        the class.
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
        self._write_static_scores(covered.class_index, rows, new)
        self._node_versions[shared.index] = table.node_version
        return True

    def _write_static_scores(self, c: int, rows: Rows, new: StaticRows) -> None:
        """Write static scores of changed rows, whose totals are computed again when needed."""
        index, totals = int(self._class_arrays.static_index[c]), self._totals
        positions = self._mirror.row_arrays.position_of[rows]
        totals.passes[index, positions], totals.static[index, positions] = new.passes, new.sums
        if (totals.group_of_row[index, rows] != new.group).any():
            # The numbers of feasible rows by group are those of the former groups.
            totals.group_of_row[index, rows] = totals.group_at[index, positions] = new.group
            totals.has_totals[self._class_arrays.static_index == index] = False

    def place_one(self, pod: KernelPod) -> str | None:
        """Decide one pod of a covered class and place it on the table; return its node.

        Returns None, with nothing changed, if it has no feasible row, or a placement changed the
        results of its class for other rows. A batch of one pod, without steps for more pods.
        """
        self.begin_batch()
        if pod.signature in self._why_not:
            return None
        self._refresh(1)
        if self._mirror.has_inexact_amounts:
            return None
        pod_arrays = self._pod_layout.lay_out_one(pod)
        if self._has_counters:
            self._counters = self._cells.prepare(self._counters, pod_arrays.classes)
        c = int(pod_arrays.classes[0])
        assert self._lists is not None, "a kernel that covers a class has lists, if empty ones"
        if not self._totals.has_totals[c] and self._lists.lists.list_of_class[c] < 0:
            # Compiled code would return NO_TOTALS, and be called again.
            self._build_one(c)
        done, _ = self._decide_compiled(pod_arrays)
        if not done:
            return None
        name = self._table.columns.names[int(pod_arrays.row[0])]
        self._table.add_pod(name, pod.pod_class, uid=pod.uid, key=pod.key)
        self._mirror.mark_current()
        return name

    def _decide_compiled(self, pod_arrays: PodArrays) -> tuple[int, str]:
        """Decide pods by compiled code; return how many were decided, and why not more."""
        assert self._lists is not None, "a kernel that covers a class has lists, if empty ones"
        done = 0
        while True:
            arrays = self._mirror.row_arrays, self._class_arrays, self._totals, self._counters
            done, reason = self._decide_code.call((*arrays, self._lists.lists, pod_arrays), done)
            if reason == NO_TOTALS:
                self._build(pod_arrays.classes[done:])
            elif reason != NEEDS_NORMALIZATION:
                return done, _STOP_REASONS.get(reason, "")
            else:
                c = int(pod_arrays.classes[done])
                has_counters = self._counters.set_of_class[c] >= 0
                is_sampled = len(pod_arrays.search_order) > 0 and not has_counters
                # A sampled pod is normalized over the visited rows only, which differ from pod to
                # pod: its scores are cached, and the totals of all rows stay as they are.
                if (
                    why := self._normalization.cache_scores(c, pod_arrays.group_feasible)
                    if is_sampled
                    else self._normalization.renormalize(c, self._counters)
                ):
                    return done, why

    def _refresh(self, placements: int) -> None:
        """Copy the rows of the table that others changed; make space for this many placements."""
        # With placements pending, a batch is being decided, and nothing else changes the table.
        changed: list[int] = [] if self._pending else self._mirror.refresh().tolist()
        if changed and self._lists is not None:
            self._lists.drop()
        self._changed.append(changed, placements)

    def _build(self, next_classes: I64) -> None:
        """Compute the totals of the classes of the next pods, for those that have none."""
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
        self._build_code.call((*arrays, classes), int(self._changed.count[0]), (self._chunk,))

    def listable_classes(self) -> list[Hashable]:
        """Return the signatures of classes without totals whose best rows workers may list."""
        is_random = self._tie_break.kind == "random"
        if not is_random or not self._covered or self._mirror.has_inexact_amounts:
            return []
        has_totals, set_of_class = self._totals.has_totals, self._counters.set_of_class
        return [
            signature
            for signature, each in self._covered.items()
            if signature not in self._why_not
            and not has_totals[each.class_index]
            and set_of_class[each.class_index] < 0
            and each.has_independent_rows
        ]

    def use_lists(self, best: BestRows, placements: int) -> None:
        """Use lists of the best rows of new classes, computed on the table's current state.

        placements: the maximum number of pods decided before the table changes in another way.
        """
        assert self._lists is not None, "lists are of covered classes"
        indices = [self._covered[signature].class_index for signature in best.signatures]
        scores = [self._normalization.score_of_all_rows(c) for c in indices]
        self._lists.use(best, indices, scores, placements)

    def list_best(
        self, signatures: Sequence[Hashable], tie_break_hashes: U64, k: int
    ) -> ListedRows:
        """List the k best rows of each class; none for a class that may not be listed."""
        listable = set(self.listable_classes())
        indices = [self._covered[s].class_index if s in listable else -1 for s in signatures]
        to_build = np.array([c for c in indices if c >= 0], np.int64)
        for start in range(0, len(to_build), BUILD_MAX):
            self._build(to_build[start : start + BUILD_MAX])
        if self._lists is None:
            return ListedRows.empty(len(signatures), k)
        return self._lists.list_best(indices, tie_break_hashes, k)

    def exclude(self, rows: Rows) -> None:
        """Make rows infeasible in a worker's kernel; call before totals are computed.

        The rows changed since the state that the scheduler asks about: the scheduler evaluates
        these rows itself.
        """
        if self._covered:
            self._totals.passes[:, self._mirror.row_arrays.position_of[rows]] = False

    def best_rows(self, signature: Hashable, total: int) -> Rows:
        """Return all best rows of the last decided pod. total: of its row."""
        c = self._covered[signature].class_index
        counters, totals = self._counters, self._totals.total[c]
        is_best: Bools = totals == total
        if counters.set_of_class[c] >= 0:
            cell_set = int(counters.cells.last_cell_set[0])
            # -1: the last pod was decided by rows, not by cells.
            if cell_set < 0:
                best: Rows = np.flatnonzero(counters.total[: len(self._table)] == total)
                return best
            is_best = in_best_cells(counters, cell_set, totals, total)
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
