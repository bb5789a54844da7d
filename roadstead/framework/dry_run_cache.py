"""Results of preemption's dry runs per row, cached for the next pod of the class.

The result for a row depends on the row and on the inputs of its evaluation. So it is valid while
the row keeps its version (pods and nominations of the node change it); all results are dropped when
the evaluation restarts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from roadstead.facts.disruption import DisruptionBudget
from roadstead.framework.victims import Candidate

MAX_TRIED_ROWS = 1 << 16
"""Maximum number of cached rows per class."""


@dataclass(frozen=True, slots=True)
class DryRunRow:
    """A candidate, or the reasons why there is none. error: set for a failure."""

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
        if row in self._rows or len(self._rows) < MAX_TRIED_ROWS:
            self._rows[row] = version, found
