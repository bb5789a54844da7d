"""Scores by used resources: LeastAllocated, MostAllocated, RequestedToCapacityRatio.

Divisions are integer divisions, as upstream, but the node score of RequestedToCapacityRatio is
rounded.

    LeastAllocated            score = (capacity - requested) * 100 / capacity
    MostAllocated             score = requested * 100 / capacity
    RequestedToCapacityRatio  score = shape(requested * 100 / capacity)
    node score                = sum(weight * score) / sum(weight)

A request above the capacity counts as the capacity. A resource with allocatable 0, or a scalar
resource that the pod does not request, is in no sum; nor is one that RequestedToCapacityRatio
scores 0.
Upstream: pkg/scheduler/framework/plugins/noderesources/{resource_allocation,least_allocated,
most_allocated,requested_to_capacity_ratio}.go and plugins/helper/shape_score.go.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from roadstead.config.plugin_args import ResourceSpec, ScoringStrategy, ShapePoint
from roadstead.facts.resources import is_scalar_resource
from roadstead.framework.plugin import MAX_NODE_SCORE
from roadstead.nodes.columns import I64
from roadstead.nodes.pod_class import CPU, MEMORY, PodClass
from roadstead.nodes.table import Table

MAX_UTILIZATION = 100
_SHAPE_SCORE_MAX = 10
"""Highest score of a point of a shape (MaxCustomPriorityScore)."""


class ResourceScorer(Protocol):
    def score(self, pod: PodClass, table: Table) -> I64:
        """Return the scores of all rows with the pod on them: int64[row] in 0..100."""


def build_scorer(strategy: ScoringStrategy) -> ResourceScorer:
    """Return the scorer of a validated strategy."""
    if strategy.type == "LeastAllocated":
        return AllocationScorer(strategy.resources, most=False)
    if strategy.type == "MostAllocated":
        return AllocationScorer(strategy.resources, most=True)
    function = strategy.requested_to_capacity_ratio
    assert function is not None, "validation requires a shape for RequestedToCapacityRatio"
    return RatioScorer(strategy.resources, function.shape)


def usages(
    pod: PodClass, table: Table, resources: Iterable[ResourceSpec], *, nonzero: bool
) -> Iterator[tuple[int, I64, I64]]:
    """Yield (weight, requested with the pod, allocatable) of each resource that counts.

    Requested and allocatable: int64[row]. nonzero: use upstream's non-zero requests of cpu and
    memory, as NodeResourcesFit does: defaults in place of requests that are missing or 0.
    """
    for resource in resources:
        code = table.resource_code(resource.name)
        amount = (pod.scoring_requests if nonzero else pod.request_of).get(resource.name, 0)
        if not amount and is_scalar_resource(resource.name):
            continue
        is_nonzero = nonzero and code in (CPU, MEMORY)
        before = table.nonzero_requested(code) if is_nonzero else table.requested(code)
        yield resource.weight, before + amount, table.allocatable(code)


def _quotient(dividend: I64, divisor: I64) -> I64:
    """Divide by positive numbers towards zero, as Go does.

    A dividend is negative only if a product or sum wrapped around, as it does in Go.
    """
    result = dividend // divisor
    # For a few rows, `argmin` takes a third of the time of `min`.
    if len(dividend) and dividend[dividend.argmin()] < 0:
        result += (dividend < 0) & (result * divisor != dividend)
    return result


class AllocationScorer:
    """LeastAllocated and MostAllocated."""

    def __init__(self, resources: Sequence[ResourceSpec], *, most: bool) -> None:
        self.resources = tuple(resources)
        self.most = most

    def score(self, pod: PodClass, table: Table) -> I64:
        weighted = np.zeros(len(table), dtype=np.int64)
        weights = np.zeros(len(table), dtype=np.int64)
        for weight, requested, capacity in usages(pod, table, self.resources, nonzero=True):
            used = np.minimum(requested, capacity)
            amount = used if self.most else capacity - used
            weighted += _quotient(amount * MAX_NODE_SCORE, np.maximum(capacity, 1)) * weight
            weights += weight * (capacity != 0)
        return _quotient(weighted, np.maximum(weights, 1))


class RatioScorer:
    """RequestedToCapacityRatio; the weight of a resource that scores 0 is not in the sum."""

    def __init__(self, resources: Sequence[ResourceSpec], shape: Sequence[ShapePoint]) -> None:
        self.resources = tuple(resources)
        # By utilization in percent.
        self.score_at = broken_linear(shape)

    def score(self, pod: PodClass, table: Table) -> I64:
        weighted = np.zeros(len(table), dtype=np.int64)
        weights = np.zeros(len(table), dtype=np.int64)
        for weight, requested, capacity in usages(pod, table, self.resources, nonzero=True):
            clipped = np.clip(requested, 0, capacity)
            share = _quotient(clipped * MAX_UTILIZATION, np.maximum(capacity, 1))
            # Only sums that wrapped around give shares below 0; upstream scores them as 0.
            utilization = np.where(requested > capacity, MAX_UTILIZATION, np.maximum(share, 0))
            score = self.score_at[utilization] * (capacity != 0)
            weighted += score * weight
            weights += weight * (score > 0)
        # math.Round of a quotient of integers rounds halves up: (2n + d) / 2d.
        divisor = np.maximum(weights, 1)
        rounded: I64 = (2 * weighted + divisor) // (2 * divisor)
        return rounded


def broken_linear(shape: Sequence[ShapePoint]) -> NDArray[np.int64]:
    """Return a piecewise linear function at utilizations 0..100: int64[101].

    Shape scores 0..10 become node scores 0..100; the function is constant outside the points.
    Rounded towards zero, as by upstream's BuildBrokenLinearFunction.
    """
    unit = MAX_NODE_SCORE // _SHAPE_SCORE_MAX
    points = [(point.utilization, point.score * unit) for point in shape]
    return np.array([_at(points, x) for x in range(MAX_UTILIZATION + 1)], dtype=np.int64)


def _at(points: list[tuple[int, int]], x: int) -> int:
    if x <= points[0][0]:
        return points[0][1]
    for (x0, y0), (x1, y1) in itertools.pairwise(points):
        if x <= x1:
            # Go divides towards zero, and a falling line has a negative numerator.
            return y0 + int((y1 - y0) * (x - x0) / (x1 - x0))
    return points[-1][1]
