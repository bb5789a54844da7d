"""NodeResourcesBalancedAllocation as arrays: the resources whose usage is balanced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from roadstead.config.plugin_args import ResourceSpec
from roadstead.facts.resources import is_scalar_resource
from roadstead.framework.evaluation import Evaluation
from roadstead.framework.profile import WeightedScore
from roadstead.kernel.arrays import padded
from roadstead.nodes.columns import I64
from roadstead.nodes.pod_class import PodClass
from roadstead.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation


class BalancedArrays(NamedTuple):
    """Requests of classes. weight: int64[class], of the score; -1 if the score is off.

    scored_requests: int64[class, k, 2]: resource, requested amount.
    """

    weight: I64
    scored_requests: I64


class BalancedLowering:
    """The plugin for classes of one evaluation."""

    def __init__(self, evaluation: Evaluation, scoring: Mapping[type, WeightedScore]) -> None:
        self._resources = evaluation.table.classes.resources
        self.weight = -1
        self._scored: Sequence[ResourceSpec] = ()
        if (each := scoring.get(NodeResourcesBalancedAllocation)) is not None:
            assert isinstance(each.plugin, NodeResourcesBalancedAllocation)
            self.weight, self._scored = each.weight, each.plugin.resources

    def scored_requests(self, pod: PodClass) -> list[tuple[int, int]]:
        requests = [(each.name, pod.request_of.get(each.name, 0)) for each in self._scored]
        code = self._resources.code
        # As upstream: a scalar resource that the pod does not request is not balanced.
        return [(code(name), n) for name, n in requests if n or not is_scalar_resource(name)]


def lay_out_balanced(each: Sequence[BalancedLowering], pods: Sequence[PodClass]) -> BalancedArrays:
    """Return the arrays of classes. each, pods: of each class, its lowering and its pod."""
    return BalancedArrays(
        weight=np.array([balanced.weight for balanced in each], np.int64),
        scored_requests=padded(
            [balanced.scored_requests(pod) for balanced, pod in zip(each, pods, strict=True)], 2
        ),
    )
