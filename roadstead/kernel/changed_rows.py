"""ChangedRows: the rows that changed, in order, so that each class updates its totals when needed.

append ──► rows, count ◄── compiled code appends the rows of its placements
               └──► a class applies the changes after its `Totals.applied_changes`
"""

from __future__ import annotations

import numpy as np

from roadstead.kernel.arrays import Totals
from roadstead.nodes.columns import I32, I64, Bools

_FIRST_CAPACITY = 1024


class ChangedRows:
    """Changed rows, the same arrays for all calls of compiled code, until they are full.

    rows: int64[capacity]; count: int64[1], how many are used; new_totals: int32[capacity], scratch
    (`PodArrays`). has_counters: bool[class], whether the class has spread or affinity counters.
    """

    def __init__(self, totals: Totals, has_counters: Bools) -> None:
        self._totals, self._has_counters = totals, has_counters
        self.rows: I64 = np.zeros(_FIRST_CAPACITY, dtype=np.int64)
        self.new_totals: I32 = np.zeros(_FIRST_CAPACITY, dtype=np.int32)
        self.count: I64 = np.zeros(1, dtype=np.int64)

    def append(self, changed: list[int], placements: int) -> None:
        """Append changed rows, and make space for the rows of some placements behind them."""
        count = int(self.count[0])
        if count + len(changed) + placements > len(self.rows):
            count = self._make_space(len(changed) + placements)
        self.rows[count : count + len(changed)] = changed
        self.count[0] = count + len(changed)

    def _make_space(self, more: int) -> int:
        """Make space for more rows; return how many there are."""
        totals, count = self._totals, int(self.count[0])
        # A class that is behind by more changes than there are rows is computed anew in less time.
        # Not one with counters: its cells are updated with each change of its totals.
        is_behind = totals.applied_changes < count - totals.total.shape[1]
        totals.has_totals[is_behind & ~self._has_counters] = False
        # Changes that all classes have applied are dropped.
        first = int(totals.applied_changes[totals.has_totals].min(initial=count))
        self.rows[: count - first] = self.rows[first:count].copy()
        totals.applied_changes[:] -= first
        count = self.count[0] = count - first
        if count + more > len(self.rows) // 2:
            self.rows = np.resize(self.rows, 2 * (count + more))
            self.new_totals = np.zeros(2 * (count + more), dtype=np.int32)
        return count
