"""KernelLists: decisions from lists of a class's best rows, without evaluating all rows.

A worker lists the best of its rows (`list_best`). The scheduler receives such lists
(`Kernel.use_lists`), and its kernel decides by them as long as they suffice; see `compiled_lists`.
The module `best_rows` has the form in which lists are merged and passed to compiled code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from roadstead.kernel.arrays import INFEASIBLE, U64, RowArrays, Totals
from roadstead.kernel.best_rows import BestRows, lay_out, no_lists
from roadstead.kernel.compiled_code import CompiledCode
from roadstead.nodes.columns import I32, I64, Bools


@dataclass(frozen=True, slots=True)
class ListedRows:
    """The k best rows of classes and the next one, which bounds the rows that are not listed.

    rows: int64[class, k + 1]; totals: int32, ranks: uint64 of the same. counts: int64[class],
    number of rows. summary: int64[class, 3]: the highest total, number of rows with it, number of
    feasible rows. is_listed: bool[class], whether the class is listed.
    """

    rows: I64
    totals: I32
    ranks: U64
    counts: I64
    summary: I64
    is_listed: Bools

    @classmethod
    def empty(cls, classes: int, k: int) -> ListedRows:
        """Return empty lists for this number of classes."""
        shape = classes, k + 1
        return cls(
            np.full(shape, -1, np.int64),
            np.full(shape, INFEASIBLE, np.int32),
            np.zeros(shape, np.uint64),
            np.zeros(classes, np.int64),
            np.zeros((classes, 3), np.int64),
            np.zeros(classes, np.bool_),
        )


class KernelLists:
    """The lists of one kernel. lists: the lists in use, as arrays."""

    def __init__(
        self, code: CompiledCode, classes: int, row_arrays: RowArrays, totals: Totals
    ) -> None:
        self._code = code
        self._classes = classes
        self._row_arrays = row_arrays
        self._totals = totals
        self.lists = no_lists(classes, row_arrays)

    def use(
        self, best: BestRows, indices: Sequence[int], scores: Sequence[int | None], placements: int
    ) -> None:
        """Use lists for decisions. indices: the index of each list's class.

        scores: for each list, the normalized score of all rows; a list without a score is not used.
        placements: maximum number of rows that will change.
        """
        list_of_class = np.full(self._classes, -1, np.int64)
        for index, (c, score) in enumerate(zip(indices, scores, strict=True)):
            if score is not None:
                list_of_class[c] = index
        score_column = np.array([score or 0 for score in scores], np.int64)
        best = replace(best, summary=np.column_stack([best.summary, score_column]))
        self.lists = lay_out(best, list_of_class, self._row_arrays, placements)

    def drop(self) -> None:
        """Discard the lists: the table was changed other than by placements of the kernel."""
        if len(self.lists.changed_index):
            self.lists = no_lists(self._classes, self._row_arrays)

    def list_best(self, indices: Sequence[int], tie_break_hashes: U64, k: int) -> ListedRows:
        """List the best rows of classes that have totals; nothing for an index of -1."""
        listed = ListedRows.empty(len(indices), k)
        for at, c in enumerate(indices):
            if c < 0:
                continue
            # Compiled code writes positions, which are replaced by rows.
            count, highest, tied = self._code.list_best(
                *(self._row_arrays, self._totals, c, tie_break_hashes[at]),
                *(listed.rows[at], listed.totals[at], listed.ranks[at]),
            )
            listed.rows[at, :count] = self._row_arrays.row_at[listed.rows[at, :count]]
            listed.counts[at], listed.is_listed[at] = count, True
            listed.summary[at] = highest, tied, self._totals.feasible[c]
        return listed
