"""Check the arguments of NodeResourcesFit.

Upstream: pkg/scheduler/framework/plugins/noderesources/fit.go (NewFit), which checks them only when
profiles are built; apis/config/validation/validation_pluginargs.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from roadstead.config.errors import Problem, invalid, required, unsupported
from roadstead.config.schema_args import V1NodeResourcesFitArgs, V1UtilizationShapePoint
from roadstead.protocol.names import qualified_name_errors

_STRATEGIES: Final = ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")


def validate_fit_args(args: V1NodeResourcesFitArgs) -> Iterator[Problem]:
    """Yield the problems of NodeResourcesFit's arguments; upstream checks them at `build`."""
    for i, name in enumerate(args.ignored_resources or ()):
        yield from qualified_name_problems(f"ignoredResources[{i}]", name)
    for i, group in enumerate(args.ignored_resource_groups or ()):
        where = f"ignoredResourceGroups[{i}]"
        if "/" in group:
            yield invalid(where, group, "resource group name can't contain '/'")
        yield from qualified_name_problems(where, group)
    strategy = args.scoring_strategy
    assert strategy is not None, "defaults come before validation"
    if strategy.type not in _STRATEGIES:
        yield unsupported("scoringStrategy.type", strategy.type, _STRATEGIES)
    for i, resource in enumerate(strategy.resources or ()):
        if not 0 < resource.weight <= 100:
            rule = f"resource weight of {resource.name} not in valid range (0, 100]"
            yield invalid(f"scoringStrategy.resources[{i}].weight", resource.weight, rule)
    if strategy.requested_to_capacity_ratio is not None:
        shape = strategy.requested_to_capacity_ratio.shape or []
        yield from _shape("scoringStrategy.shape", shape)


def _shape(path: str, shape: list[V1UtilizationShapePoint]) -> Iterator[Problem]:
    if not shape:
        yield required(path, "at least one point must be specified")
    for i in range(1, len(shape)):
        if shape[i - 1].utilization >= shape[i].utilization:
            where = f"{path}[{i}].utilization"
            rule = "values must be sorted in increasing order"
            yield invalid(where, shape[i].utilization, rule)
            break
    for i, point in enumerate(shape):
        if not 0 <= point.utilization <= 100:
            where = f"{path}[{i}].utilization"
            yield invalid(where, point.utilization, "not in valid range [0, 100]")
        if not 0 <= point.score <= 10:
            yield invalid(f"{path}[{i}].score", point.score, "not in valid range [0, 10]")


def qualified_name_problems(path: str, name: str) -> Iterator[Problem]:
    return (invalid(path, name, rule) for rule in qualified_name_errors(name))
