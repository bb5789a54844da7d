"""The explanation of one pod in the Python API."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from roadstead.api.frames import as_frame
from roadstead.cycle.explain import Explanation
from roadstead.report.explain_view import RejectedNodes, score_columns
from roadstead.report.explain_view import refusals as filtered_nodes
from roadstead.report.tables import arrow_answers

if TYPE_CHECKING:
    import pandas as pd
    from arro3.core import Table


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class PodExplanation:
    """The result of `Cluster.explain`: the facts that `roadstead explain` prints.

    notes: on the inputs and the configuration. If a workload was named, they also say which of its
    pods is explained; if the pod runs already, that it is explained as if it were pending.
    """

    notes: tuple[str, ...]
    _explanation: Explanation

    def __repr__(self) -> str:
        answer = f"best {self.best[0]}" if self.best else self.message
        return f"<PodExplanation of {self.pod}: {answer}>"

    @property
    def pod(self) -> str:
        """The explained pod: `namespace/name`."""
        return self._explanation.pod_key

    @property
    def best(self) -> tuple[str, ...]:
        """The nodes with the highest total; the nominated node alone if the pod fits there."""
        return tuple(self._explanation.best)

    @property
    def message(self) -> str:
        """Reason that no node is chosen: the text of the FailedScheduling event, or ""."""
        explanation = self._explanation
        if explanation.cycle_error:
            # It ended the cycle before Filter had an answer for each node.
            return explanation.cycle_error
        return "" if len(explanation.feasible) else explanation.message

    @property
    def refusals(self) -> tuple[RejectedNodes, ...]:
        """The nodes that were filtered out, by plugin and reason; most nodes first."""
        return tuple(filtered_nodes(self._explanation))

    def document(self) -> dict[str, object]:
        """The JSON of `roadstead explain --format json`: all scores of all nodes."""
        return self._explanation.document()

    def to_arrow(self) -> Table:
        """Return a table with one row per node, sorted by name.

        Columns: node; plugin and reason if the node was filtered out; total, and for each score
        plugin a column of its name with the weighted score (int64). Scores are null for a node
        that was filtered out, and for all nodes if one alone was feasible.
        """
        explanation = self._explanation
        feasible = [explanation.names[row] for row in explanation.feasible]
        # Without scores there are no totals: fewer items than feasible nodes.
        totals = dict(zip(feasible, explanation.total.tolist(), strict=False))
        scores: dict[str, dict[str, int]] = {"total": totals}
        for column in score_columns(explanation):
            scores[column.plugin] = dict(zip(feasible, column.weighted, strict=True))
        refused = {
            node: (each.plugin, each.reason) for each in self.refusals for node in each.nodes
        }
        return arrow_answers(explanation.names, refused, scores)

    def to_pandas(self) -> pd.DataFrame:
        """Return `to_arrow` as a pandas frame. Raises RoadsteadError if pandas is not installed."""
        return as_frame(self.to_arrow())
