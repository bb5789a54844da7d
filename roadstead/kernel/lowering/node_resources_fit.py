"""NodeResourcesFit as arrays: the amounts that Filter compares, and the terms of its score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from roadstead.facts.resources import is_scalar_resource
from roadstead.framework.evaluation import Evaluation
from roadstead.framework.profile import WeightedScore
from roadstead.kernel.arrays import padded
from roadstead.nodes.columns import I64
from roadstead.nodes.pod_class import CPU, MEMORY, PodClass
from roadstead.plugins.node_resources_fit import NodeResourcesFit
from roadstead.plugins.resource_scoring import AllocationScorer, RatioScorer

OFF, LEAST, MOST, RATIO = 0, 1, 2, 3
"""Scoring strategies: LeastAllocated, MostAllocated, RequestedToCapacityRatio; OFF: no score."""


class FitArrays(NamedTuple):
    """Requests of classes, and their scoring strategies.

    filtered_requests: int64[class, k, 2], (resource, amount) that Filter compares. score:
    int64[class, 3]: strategy, weight, index in shapes. scored_requests: int64[class, k, 4]:
    resource, column of `RowArrays.nonzero` or -1, requested amount, weight. shapes: int64[shape,
    101], of RequestedToCapacityRatio: the score at each percentage of use.
    """

    filtered_requests: I64
    score: I64
    scored_requests: I64
    shapes: I64


class FitLowering:
    """The plugin for classes of one evaluation; parts without amounts are computed once."""

    def __init__(self, evaluation: Evaluation, scoring: Mapping[type, WeightedScore]) -> None:
        self._resources = evaluation.table.classes.resources
        names, requests = self._resources.values, evaluation.pod.coded_requests
        filters = [p for p in evaluation.profile.filter if isinstance(p, NodeResourcesFit)]
        # Codes of resources that Filter ignores.
        self._ignored = {code for p in filters for code, _ in requests if p.is_ignored(names[code])}
        self.strategy, self.weight = OFF, 0
        self.shape: I64 | None = None
        self._scorer: AllocationScorer | RatioScorer | None = None
        if (each := scoring.get(NodeResourcesFit)) is not None:
            assert isinstance(each.plugin, NodeResourcesFit)
            scorer = each.plugin.scorer
            assert isinstance(scorer, (AllocationScorer, RatioScorer))
            self._scorer, self.weight = scorer, each.weight
            if isinstance(scorer, RatioScorer):
                self.strategy, self.shape = RATIO, scorer.score_at
            else:
                self.strategy = MOST if scorer.most else LEAST

    def filtered_requests(self, pod: PodClass) -> tuple[tuple[int, int], ...]:
        """Return the list of a class for `FitArrays.filtered_requests`."""
        if not self._ignored:
            return pod.coded_requests
        return tuple(each for each in pod.coded_requests if each[0] not in self._ignored)

    def scored_requests(self, pod: PodClass) -> list[tuple[int, int, int, int]]:
        """Return the list of a class for `FitArrays.scored_requests`."""
        scored_requests = []
        for resource in self._scorer.resources if self._scorer is not None else ():
            amount = pod.scoring_requests.get(resource.name, 0)
            if amount or not is_scalar_resource(resource.name):
                code = self._resources.code(resource.name)
                column = code if code in (CPU, MEMORY) else -1
                scored_requests.append((code, column, amount, resource.weight))
        return scored_requests


def lay_out_fit(fits: Sequence[FitLowering], pods: Sequence[PodClass]) -> FitArrays:
    """Return the arrays of classes. fits, pods: of each class, its lowering and its pod."""
    shapes = {id(fit.shape): fit.shape for fit in fits if fit.shape is not None}
    index_of = {each: index for index, each in enumerate(shapes)}
    scores = [(fit.strategy, fit.weight, index_of.get(id(fit.shape), 0)) for fit in fits]
    return FitArrays(
        filtered_requests=padded(
            [fit.filtered_requests(pod) for fit, pod in zip(fits, pods, strict=True)], 2
        ),
        score=np.array(scores, dtype=np.int64).reshape(-1, 3),
        scored_requests=padded(
            [fit.scored_requests(pod) for fit, pod in zip(fits, pods, strict=True)], 4
        ),
        shapes=np.array([*shapes.values()], dtype=np.int64).reshape(-1, 101),
    )
