"""NodeResourcesBalancedAllocation: prefers nodes whose resources would be used evenly.

    fraction = min(1, requested / allocatable)      per resource, float64
    std      = |f1 - f2| / 2 for two resources, population standard deviation for more, else 0
    score    = int64((1 - std) * 100)

Missing requests count as 0, not with the defaults that NodeResourcesFit uses. Skipped for a pod
that requests none of the resources.

Upstream: pkg/scheduler/framework/plugins/noderesources/balanced_allocation.go.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
from numpy.typing import NDArray

from roadstead.config.plugin_args import NodeResourcesBalancedAllocationArgs
from roadstead.facts.pod import PodFacts
from roadstead.framework.cycle_state import CycleState
from roadstead.framework.plugin import (
    MAX_NODE_SCORE,
    Feasible,
    PreScorePlugin,
    Reads,
    ScorePlugin,
)
from roadstead.nodes.columns import I64
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import Table
from roadstead.plugins.resource_scoring import usages
from roadstead.protocol.status import SKIP, SUCCESS, Status

F64 = NDArray[np.float64]


class NodeResourcesBalancedAllocation(PreScorePlugin, ScorePlugin):
    name = "NodeResourcesBalancedAllocation"
    reads = Reads.ROW
    shares_by_shape = True

    def __init__(self, args: NodeResourcesBalancedAllocationArgs) -> None:
        self.resources = args.resources

    def pre_score(
        self, state: CycleState, pod: PodClass, table: Table, feasible: Feasible
    ) -> Status:
        requests_any = any(pod.request_of.get(resource.name) for resource in self.resources)
        return SUCCESS if requests_any else SKIP

    def score(self, state: CycleState, pod: PodClass, table: Table) -> I64:
        fractions: list[F64] = []
        present: list[NDArray[np.bool_]] = []
        for _, requested, capacity in usages(pod, table, self.resources, nonzero=False):
            fractions.append(np.minimum(requested / np.maximum(capacity, 1), 1.0))
            present.append(capacity != 0)
        if not fractions:
            return np.full(len(table), MAX_NODE_SCORE, dtype=np.int64)
        deviation = _deviation(np.array(fractions), np.array(present))
        return ((1.0 - deviation) * MAX_NODE_SCORE).astype(np.int64)

    def sign(self, pod: PodFacts) -> Hashable:
        return pod.requests


def _deviation(fractions: F64, present: NDArray[np.bool_]) -> F64:
    """Return the standard deviation over the resources that are present: float64[row].

    fractions: float64[resource, row]. present: bool[resource, row], whether the node has any of it.
    """
    if len(fractions) == 2:
        return np.where(present[0] & present[1], np.abs((fractions[0] - fractions[1]) / 2), 0.0)
    return np.where(
        present.sum(axis=0) == 2, _of_two(fractions, present), _of_many(fractions, present)
    )


def _of_two(fractions: F64, present: NDArray[np.bool_]) -> F64:
    """Return half the difference of a row's two present resources; see the module's docstring."""
    first = present.argmax(axis=0)
    second = len(present) - 1 - present[::-1].argmax(axis=0)
    rows = np.arange(fractions.shape[1])
    difference: F64 = fractions[first, rows] - fractions[second, rows]
    return np.abs(difference / 2)


def _of_many(fractions: F64, present: NDArray[np.bool_]) -> F64:
    """Return the population standard deviation; 0 for rows with at most two present resources."""
    count = np.maximum(present.sum(axis=0), 1)
    # Added in the order of the resources, so that float64 rounds as upstream.
    total = np.zeros(fractions.shape[1])
    for fraction, is_present in zip(fractions, present, strict=True):
        total = np.where(is_present, total + fraction, total)
    mean = total / count
    squares = np.zeros(fractions.shape[1])
    for fraction, is_present in zip(fractions, present, strict=True):
        squares = np.where(is_present, squares + (fraction - mean) * (fraction - mean), squares)
    deviation = np.sqrt(squares / count)
    return np.where(present.sum(axis=0) > 2, deviation, 0.0)
