"""Conversion of v1 documents with defaults (`config.schema`) to the types that schedulers read.

These types are in `config.model` and `config.plugin_args`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, Literal, cast

from roadstead.config.coscheduling import PERMIT_WAIT_S, V1CoschedulingArgs
from roadstead.config.go_struct import to_document
from roadstead.config.legacy.plugins import V1NodeLabelArgs, V1ServiceAffinityArgs
from roadstead.config.model import (
    ExtenderConfig,
    ExtenderTLS,
    ProfileConfig,
    SchedulerConfig,
)
from roadstead.config.plugin_args import (
    CoschedulingArgs,
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeLabelArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PluginArgs,
    PodTopologySpreadArgs,
    RequestedToCapacityRatio,
    ResourceSpec,
    ScoringStrategy,
    ScoringStrategyType,
    ServiceAffinityArgs,
    ShapePoint,
    VolumeBindingArgs,
)
from roadstead.config.schema import ExtenderTLSConfig, KubeSchedulerConfiguration, V1Extender
from roadstead.config.schema_args import (
    V1DefaultPreemptionArgs,
    V1DynamicResourcesArgs,
    V1InterPodAffinityArgs,
    V1NodeAffinityArgs,
    V1NodeResourcesBalancedAllocationArgs,
    V1NodeResourcesFitArgs,
    V1PodTopologySpreadArgs,
    V1ResourceSpec,
    V1UtilizationShapePoint,
    V1VolumeBindingArgs,
)


def _defaulted(value: int | None) -> int:
    """Return a value that `config.defaults` has set."""
    assert value is not None, "defaults come before conversion"
    return value


def to_plugin_args(args: object) -> PluginArgs:
    """Convert checked arguments of an in-tree plugin; those of other plugins stay as written."""
    convert = _CONVERTERS.get(type(args))
    return cast(PluginArgs, args) if convert is None else convert(args)


def _resources(specs: Iterable[V1ResourceSpec] | None) -> tuple[ResourceSpec, ...]:
    return tuple(ResourceSpec(spec.name, spec.weight) for spec in specs or ())


def _shape(points: Iterable[V1UtilizationShapePoint] | None) -> tuple[ShapePoint, ...]:
    return tuple(ShapePoint(point.utilization, point.score) for point in points or ())


def _fit(args: V1NodeResourcesFitArgs) -> NodeResourcesFitArgs:
    strategy = args.scoring_strategy
    assert strategy is not None, "defaults come before conversion"
    ratio = strategy.requested_to_capacity_ratio
    return NodeResourcesFitArgs(
        tuple(args.ignored_resources or ()),
        tuple(args.ignored_resource_groups or ()),
        ScoringStrategy(
            cast(ScoringStrategyType, strategy.type),
            _resources(strategy.resources),
            RequestedToCapacityRatio(_shape(ratio.shape)) if ratio is not None else None,
        ),
    )


def _node_affinity(args: V1NodeAffinityArgs) -> NodeAffinityArgs:
    added = args.added_affinity
    return NodeAffinityArgs(None if added is None else to_document(added))


def _spread(args: V1PodTopologySpreadArgs) -> PodTopologySpreadArgs:
    constraints = tuple(to_document(constraint) for constraint in args.default_constraints or ())
    return PodTopologySpreadArgs(constraints, cast(Literal["System", "List"], args.defaulting_type))


def _dynamic_resources(args: V1DynamicResourcesArgs) -> DynamicResourcesArgs:
    assert args.filter_timeout is not None, "defaults come before conversion"
    return DynamicResourcesArgs(args.filter_timeout.seconds)


_CONVERTERS: Final[dict[type, Callable[[Any], PluginArgs]]] = {
    V1CoschedulingArgs: lambda args: CoschedulingArgs(
        PERMIT_WAIT_S
        if args.permit_waiting_time_seconds is None
        else args.permit_waiting_time_seconds
    ),
    V1NodeResourcesFitArgs: _fit,
    V1NodeAffinityArgs: _node_affinity,
    V1PodTopologySpreadArgs: _spread,
    V1DynamicResourcesArgs: _dynamic_resources,
    V1NodeResourcesBalancedAllocationArgs: lambda args: NodeResourcesBalancedAllocationArgs(
        _resources(args.resources)
    ),
    V1InterPodAffinityArgs: lambda args: InterPodAffinityArgs(
        _defaulted(args.hard_pod_affinity_weight), args.ignore_preferred_terms_of_existing_pods
    ),
    V1DefaultPreemptionArgs: lambda args: DefaultPreemptionArgs(
        _defaulted(args.min_candidate_nodes_percentage),
        _defaulted(args.min_candidate_nodes_absolute),
    ),
    V1VolumeBindingArgs: lambda args: VolumeBindingArgs(
        _defaulted(args.bind_timeout_seconds), _shape(args.shape)
    ),
    V1NodeLabelArgs: lambda args: NodeLabelArgs(
        tuple(args.present_labels or ()),
        tuple(args.absent_labels or ()),
        tuple(args.present_labels_preference or ()),
        tuple(args.absent_labels_preference or ()),
    ),
    V1ServiceAffinityArgs: lambda args: ServiceAffinityArgs(
        tuple(args.affinity_labels or ()), tuple(args.anti_affinity_labels_preference or ())
    ),
}


def to_extender(extender: V1Extender) -> ExtenderConfig:
    """Convert one extender to the form that schedulers read."""
    return ExtenderConfig(
        url_prefix=extender.url_prefix,
        filter_verb=extender.filter_verb,
        preempt_verb=extender.preempt_verb,
        prioritize_verb=extender.prioritize_verb,
        weight=extender.weight,
        bind_verb=extender.bind_verb,
        tls=None if extender.tls_config is None else _tls(extender.tls_config),
        http_timeout_s=extender.http_timeout.seconds,
        node_cache_capable=extender.node_cache_capable,
        managed_resources=tuple(each.name for each in extender.managed_resources or ()),
        ignorable=extender.ignorable,
    )


def _tls(tls: ExtenderTLSConfig) -> ExtenderTLS:
    return ExtenderTLS(**{name: getattr(tls, name) for name in type(tls).model_fields})


def to_scheduler_config(
    config: KubeSchedulerConfiguration,
    profiles: tuple[ProfileConfig, ...],
    extenders: tuple[ExtenderConfig, ...],
) -> SchedulerConfig:
    """Convert the configuration to the form that schedulers read."""
    return SchedulerConfig(
        profiles=profiles,
        percentage_of_nodes_to_score=_defaulted(config.percentage_of_nodes_to_score),
        pod_initial_backoff_s=_defaulted(config.pod_initial_backoff_seconds),
        pod_max_backoff_s=_defaulted(config.pod_max_backoff_seconds),
        extenders=extenders,
    )
