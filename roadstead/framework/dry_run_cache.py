"""Results of preemption's dry runs per row, cached for the next pod of the class.

The result for a row depends on the row, on the outcome of PreFilter and on the disruption budgets.
So it is valid while the row keeps its version (pods and nominations of the node change it). All
results are dropped when the outcome of PreFilter or the budgets change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from roadstead.facts.disruption import DisruptionBudget
from roadstead.framework.victims import Candidate

MAX_CACHED_ROWS = 1 << 16
"""Maximum number of cached rows per class."""


@dataclass(frozen=True, slots=True)
class DryRunRow:
    """The candidate of a row, or the reasons why there is none. error: text of a failure."""

    candidate: Candidate | None = None
    reasons: tuple[str, ...] = ()
    error: str = ""


class DryRunCache:
    """Results by row, each for one version of the row."""

    __slots__ = ("_budgets", "_rows")

    def __init__(self) -> None:
        self._rows: dict[int, tuple[int, DryRunRow]] = {}
        self._budgets: Sequence[DisruptionBudget] | None = None

    def clear(self) -> None:
        """Drop all results."""
        self._rows.clear()

    def use(self, budgets: Sequence[DisruptionBudget]) -> None:
        """Use these disruption budgets from now on; results with others are dropped."""
        if budgets is not self._budgets:
            self.clear()
            self._budgets = budgets

    def get(self, row: int, version: int) -> DryRunRow | None:
        """Return the result for a row at this version; None if there is none."""
        found = self._rows.get(row)
        return found[1] if found is not None and found[0] == version else None

    def put(self, row: int, version: int, found: DryRunRow) -> None:
        """Store a result, unless too many rows are stored."""
        if row in self._rows or len(self._rows) < MAX_CACHED_ROWS:
            self._rows[row] = version, found
