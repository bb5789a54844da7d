"""Normalization: normalized scores of classes, by normalization group, for `Totals`.

The plugins normalize the raw scores of the groups that have feasible rows; the results are added to
the totals of all rows of a group, or cached for classes with the same evaluation.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from roadstead.kernel.arrays import RowArrays, Totals
from roadstead.kernel.compiled_code import CompiledCode
from roadstead.kernel.counter_arrays import CounterArrays
from roadstead.kernel.covered_classes import CoveredClass
from roadstead.kernel.lowering.lowerings import ClassArrays
from roadstead.kernel.static_scores import normalized_scores
from roadstead.nodes.columns import I64

OUT_OF_RANGE = "score out of range"
"""Why the plugins must decide: one of them failed, or its score is out of range."""


class Normalization:
    """Normalize the scores of the classes of one kernel.

    by_index: these classes by their index; the kernel may replace one (`Kernel.replace`).
    """

    def __init__(
        self,
        code: CompiledCode,
        row_arrays: RowArrays,
        class_arrays: ClassArrays,
        totals: Totals,
        by_index: Sequence[CoveredClass],
    ) -> None:
        self._code, self._row_arrays = code, row_arrays
        self._class_arrays, self._totals, self._by_index = class_arrays, totals, by_index

    def renormalize(self, c: int, counters: CounterArrays) -> str:
        """Normalize the totals of class c again; return why the plugins must decide, or ""."""
        covered, totals = self._by_index[c], self._totals
        static = covered.shared.static_scores
        groups = static.raw.shape[1]
        has_counters = counters.set_of_class[c] >= 0
        group_feasible = (counters.group_feasible if has_counters else totals.group_feasible[c])[
            :groups
        ] > 0
        scores = normalized_scores(covered.kernel_class.evaluation, static, group_feasible)
        if scores is None:
            return OUT_OF_RANGE
        if has_counters:
            # Only after a success: the next batch repeats a normalization that failed.
            counters.last_groups[c, :groups], counters.has_last_groups[c] = group_feasible, True
        if (scores != totals.normalized_scores[c, :groups]).any():
            self._code.renormalize(self._row_arrays, self._class_arrays, totals, c, scores)
            counters.cells.is_built[c] = False
        totals.needs_normalization[c] = False
        index = covered.shared.index
        totals.cached_groups[index, :groups], totals.cached_scores[index, :groups] = (
            group_feasible,
            scores,
        )
        totals.has_cached_scores[index] = True
        return ""

    def cache_scores(self, c: int, group_feasible: I64) -> str:
        """Cache the normalized scores of the evaluation of class c; leave its totals as they are.

        group_feasible: number of feasible rows by group. Returns why the plugins must decide, or
        "".
        """
        covered, totals = self._by_index[c], self._totals
        static, index = covered.shared.static_scores, covered.shared.index
        groups = static.raw.shape[1]
        scores = normalized_scores(
            covered.kernel_class.evaluation, static, group_feasible[:groups] > 0
        )
        if scores is None:
            return OUT_OF_RANGE
        totals.cached_groups[index], totals.cached_scores[index, :groups] = (
            group_feasible > 0,
            scores,
        )
        totals.has_cached_scores[index] = True
        return ""

    def score_of_all_rows(self, c: int) -> int | None:
        """Return the normalized score of all rows of a class with one group; None if it fails."""
        totals, index = self._totals, self._by_index[c].shared.index
        if not (totals.has_cached_scores[index] and totals.cached_groups[index, 0]):
            group_feasible = np.zeros(totals.group_feasible.shape[1], np.int64)
            group_feasible[0] = 1
            if self.cache_scores(c, group_feasible):
                return None
        # A copy for the caller: the cached scores may be computed for other rows later.
        return int(totals.cached_scores[index, 0])
