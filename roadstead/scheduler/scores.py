"""Scores: the total scores of the chosen nodes, for the pods that one scheduler placed."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from roadstead.cycle.batch import Decision


class Scores:
    """Columns in the order of the decisions, with one entry for each decision of a pod.

    Decisions with one feasible node are left out: upstream takes it without scoring (schedulePod).
    """

    def __init__(self) -> None:
        self._uids: list[str] = []
        self._nodes: list[str] = []
        self._totals = array("q")

    def __len__(self) -> int:
        return len(self._uids)

    def record(self, decisions: Sequence[Decision]) -> None:
        """Add the scores of a batch's decisions."""
        # Fields of a decision, by index: pod, node name, number of feasible nodes, total.
        scored = [each for each in decisions if each[2] > 1 and each[1] is not None]
        self._uids += [each[0][0] for each in scored]
        self._nodes += [each[1] or "" for each in scored]
        self._totals.extend([each[3] for each in scored])

    def page(
        self, start: int, count: int
    ) -> tuple[tuple[str, ...], tuple[str, ...], tuple[int, ...]]:
        """Return up to `count` UIDs, nodes and totals, from an index on."""
        rows = slice(start, start + count)
        return tuple(self._uids[rows]), tuple(self._nodes[rows]), tuple(self._totals[rows])
