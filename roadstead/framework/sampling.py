"""How many feasible nodes are enough for scoring.

Upstream: pkg/scheduler/schedule_one.go (numFeasibleNodesToFind).
"""

from __future__ import annotations

MIN_FEASIBLE_NODES = 100
MIN_FEASIBLE_PERCENTAGE = 5
ALL_PERCENT = 100
_FALLING_FROM_PERCENT = 50
_NODES_PER_PERCENT = 125


def feasible_nodes_to_find(nodes: int, percentage: int | None) -> int:
    """How many feasible nodes are looked for among `nodes`.

    percentage: percentageOfNodesToScore. None or 0 means adaptive: 50 % less one for each 125
    nodes, at least 5 %. Fewer than 100 nodes are always all looked at.
    """
    if nodes < MIN_FEASIBLE_NODES:
        return nodes
    share = percentage or max(
        MIN_FEASIBLE_PERCENTAGE, _FALLING_FROM_PERCENT - nodes // _NODES_PER_PERCENT
    )
    if share >= ALL_PERCENT:
        return nodes
    return max(MIN_FEASIBLE_NODES, nodes * share // ALL_PERCENT)
