"""Listing: decisions from lists of a class's best rows, without evaluating all rows.

A worker lists the best of its rows (`list_best`). The scheduler receives such lists (`take`), and
its kernel decides by them as long as they suffice; see `compiled_lists`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from roadstead.kernel.arrays import NOWHERE, U64, Numbers, Totals
from roadstead.kernel.lists import BestRows, lay_out, no_lists
from roadstead.kernel.start import CompiledCode
from roadstead.nodes.columns import I32, I64, Bools


@dataclass(frozen=True, slots=True)
class Listed:
    """The best rows of classes and one more, which bounds the rows that are not listed.

    rows: int64[class, k + 1]; totals: int32, ranks: uint64 of the same. counts: int64[class],
    number of rows. told: int64[class, 3]: the highest total, number of rows with it, number of
    feasible rows. is_told: bool[class], whether the class is listed.
    """

    rows: I64
    totals: I32
    ranks: U64
    counts: I64
    told: I64
    is_told: Bools

    @classmethod
    def room(cls, classes: int, most: int) -> Listed:
        """Return empty lists for this number of classes."""
        shape = classes, most + 1
        return cls(
            np.full(shape, -1, np.int64),
            np.full(shape, NOWHERE, np.int32),
            np.zeros(shape, np.uint64),
            np.zeros(classes, np.int64),
            np.zeros((classes, 3), np.int64),
            np.zeros(classes, np.bool_),
        )


class Listing:
    """The lists of one kernel."""

    def __init__(self, code: CompiledCode, classes: int, numbers: Numbers, totals: Totals) -> None:
        self._code = code
        self._classes = classes
        self._numbers = numbers
        self._totals = totals
        self.lists = no_lists(classes, numbers)

    def take(
        self, best: BestRows, lines: Sequence[int], added: Sequence[int | None], placements: int
    ) -> None:
        """Use lists for decisions. lines: the indices of their classes.

        added: normalized score of all rows, by list; a list without one is not used.
        """
        of_class = np.full(self._classes, -1, np.int64)
        for place, (line, norm) in enumerate(zip(lines, added, strict=True)):
            if norm is not None:
                of_class[line] = place
        norms = np.array([norm or 0 for norm in added], np.int64)
        best = replace(best, told=np.column_stack([best.told, norms]))
        self.lists = lay_out(best, of_class, self._numbers, placements)

    def drop(self) -> None:
        """Discard the lists: the table was changed other than by placements of the kernel."""
        if len(self.lists.slot):
            self.lists = no_lists(self._classes, self._numbers)

    def list_best(self, lines: Sequence[int], draws: U64, most: int) -> Listed:
        """List the best rows of classes that have totals; nothing for a line of -1."""
        found = Listed.room(len(lines), most)
        for place, line in enumerate(lines):
            if line < 0:
                continue
            count, highest, many = self._code.list_best(
                *(self._numbers, self._totals, line, draws[place]),
                *(found.rows[place], found.totals[place], found.ranks[place]),
            )
            found.rows[place, :count] = self._numbers.row_at[found.rows[place, :count]]
            found.counts[place], found.is_told[place] = count, True
            found.told[place] = highest, many, self._totals.feasible[line]
        return found
