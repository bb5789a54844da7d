"""What dry runs of preemption found of rows, kept for the next pod of the class.

What a dry run says of a row hangs on the row and on the inputs of its evaluation. So it holds while
the row keeps its version (pods and nominations of the node change it), and all is dropped where the
evaluation begins anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from roadstead.facts.disruption import DisruptionBudget
from roadstead.framework.victims import Candidate

MAX_TRIED_ROWS = 1 << 16
"""Rows of one class of which something is kept."""


@dataclass(frozen=True, slots=True)
class TriedRow:
    """A candidate, or why there is none: the reasons of a refusal. error: set for a failure."""

    candidate: Candidate | None = None
    reasons: tuple[str, ...] = ()
    error: str = ""


class TriedRows:
    """Answers by row, each for one version of the row."""

    __slots__ = ("_budgets", "_rows")

    def __init__(self) -> None:
        self._rows: dict[int, tuple[int, TriedRow]] = {}
        self._budgets: Sequence[DisruptionBudget] | None = None

    def clear(self) -> None:
        """Nothing that was found holds any longer."""
        self._rows.clear()

    def use(self, budgets: Sequence[DisruptionBudget]) -> None:
        """These budgets are asked from now on; what others said is dropped."""
        if budgets is not self._budgets:
            self.clear()
            self._budgets = budgets

    def get(self, row: int, version: int) -> TriedRow | None:
        """What was found of a row at this version of it."""
        found = self._rows.get(row)
        return found[1] if found is not None and found[0] == version else None

    def put(self, row: int, version: int, found: TriedRow) -> None:
        """Keeps what was found, unless too much is kept."""
        if row in self._rows or len(self._rows) < MAX_TRIED_ROWS:
            self._rows[row] = version, found
