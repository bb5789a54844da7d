"""Sampling: how many feasible nodes suffice for scoring, and which nodes are evaluated for them.

Upstream: pkg/scheduler/schedule_one.go (numFeasibleNodesToFind, findNodesThatPassFilters with
parallelism 1).
"""

from __future__ import annotations

import numpy as np

from roadstead.nodes.columns import Bools
from roadstead.nodes.table import Rows

MIN_FEASIBLE_NODES = 100
MIN_FEASIBLE_PERCENTAGE = 5
ALL_PERCENT = 100
# The adaptive percentage is 50, minus 1 for each 125 nodes.
_FALLING_FROM_PERCENT = 50
_NODES_PER_PERCENT = 125


def feasible_nodes_to_find(nodes: int, percentage: int | None) -> int:
    """Return how many feasible nodes to search for among `nodes`.

    percentage: percentageOfNodesToScore. None or 0 means adaptive: 50 % minus 1 % for each 125
    nodes, at least 5 %. Fewer than 100 nodes are always evaluated in full.
    """
    if nodes < MIN_FEASIBLE_NODES:
        return nodes
    share = percentage or max(
        MIN_FEASIBLE_PERCENTAGE, _FALLING_FROM_PERCENT - nodes // _NODES_PER_PERCENT
    )
    if share >= ALL_PERCENT:
        return nodes
    return max(MIN_FEASIBLE_NODES, nodes * share // ALL_PERCENT)


def indices_to_visit(fits: Bools, to_find: int, start: int) -> Rows:
    """Return the positions in the node order that a search from `start` on evaluates in one thread.

    fits: bool[position]. The search ends at the first feasible node in excess of `to_find`. That
    node is not included; refused nodes before it are.
    """
    nodes = len(fits)
    indices: Rows = (start + np.arange(nodes, dtype=np.intp)) % max(nodes, 1)
    found = np.cumsum(fits[indices])
    return indices[: int(np.searchsorted(found, to_find + 1))]
