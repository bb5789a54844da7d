"""Schema models → the frozen types that the core reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, Literal, cast

from roadstead.config.coscheduling import PERMIT_WAIT_S, WireCoschedulingArgs
from roadstead.config.legacy.plugins import WireNodeLabelArgs, WireServiceAffinityArgs
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
from roadstead.config.schema import ExtenderTLSConfig, KubeSchedulerConfiguration, WireExtender
from roadstead.config.schema_args import (
    WireBalancedAllocationArgs,
    WireDefaultPreemptionArgs,
    WireDynamicResourcesArgs,
    WireFitArgs,
    WireInterPodAffinityArgs,
    WireNodeAffinityArgs,
    WireResourceSpec,
    WireShapePoint,
    WireSpreadArgs,
    WireVolumeBindingArgs,
)
from roadstead.config.wire import to_document


def _set(value: int | None) -> int:
    assert value is not None, "defaults come before conversion"
    return value


def to_plugin_args(args: object) -> PluginArgs:
    """Convert checked arguments of an in-tree plugin to the plugin's type; keep others as is."""
    convert = _CONVERTERS.get(type(args))
    return cast(PluginArgs, args) if convert is None else convert(args)


def _resources(specs: Iterable[WireResourceSpec] | None) -> tuple[ResourceSpec, ...]:
    return tuple(ResourceSpec(spec.name, spec.weight) for spec in specs or ())


def _shape(points: Iterable[WireShapePoint] | None) -> tuple[ShapePoint, ...]:
    return tuple(ShapePoint(point.utilization, point.score) for point in points or ())


def _fit(args: WireFitArgs) -> NodeResourcesFitArgs:
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


def _node_affinity(args: WireNodeAffinityArgs) -> NodeAffinityArgs:
    added = args.added_affinity
    return NodeAffinityArgs(None if added is None else to_document(added))


def _spread(args: WireSpreadArgs) -> PodTopologySpreadArgs:
    constraints = tuple(to_document(constraint) for constraint in args.default_constraints or ())
    return PodTopologySpreadArgs(constraints, cast(Literal["System", "List"], args.defaulting_type))


def _dynamic_resources(args: WireDynamicResourcesArgs) -> DynamicResourcesArgs:
    assert args.filter_timeout is not None, "defaults come before conversion"
    return DynamicResourcesArgs(args.filter_timeout.seconds)


_CONVERTERS: Final[dict[type, Callable[[Any], PluginArgs]]] = {
    WireCoschedulingArgs: lambda args: CoschedulingArgs(
        PERMIT_WAIT_S
        if args.permit_waiting_time_seconds is None
        else args.permit_waiting_time_seconds
    ),
    WireFitArgs: _fit,
    WireNodeAffinityArgs: _node_affinity,
    WireSpreadArgs: _spread,
    WireDynamicResourcesArgs: _dynamic_resources,
    WireBalancedAllocationArgs: lambda args: NodeResourcesBalancedAllocationArgs(
        _resources(args.resources)
    ),
    WireInterPodAffinityArgs: lambda args: InterPodAffinityArgs(
        _set(args.hard_pod_affinity_weight), args.ignore_preferred_terms_of_existing_pods
    ),
    WireDefaultPreemptionArgs: lambda args: DefaultPreemptionArgs(
        _set(args.min_candidate_nodes_percentage), _set(args.min_candidate_nodes_absolute)
    ),
    WireVolumeBindingArgs: lambda args: VolumeBindingArgs(
        _set(args.bind_timeout_seconds), _shape(args.shape)
    ),
    WireNodeLabelArgs: lambda args: NodeLabelArgs(
        tuple(args.present_labels or ()),
        tuple(args.absent_labels or ()),
        tuple(args.present_labels_preference or ()),
        tuple(args.absent_labels_preference or ()),
    ),
    WireServiceAffinityArgs: lambda args: ServiceAffinityArgs(
        tuple(args.affinity_labels or ()), tuple(args.anti_affinity_labels_preference or ())
    ),
}


def to_extender(extender: WireExtender) -> ExtenderConfig:
    """Convert one extender for the core."""
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
    """Convert the configuration for the core."""
    return SchedulerConfig(
        profiles=profiles,
        percentage_of_nodes_to_score=_set(config.percentage_of_nodes_to_score),
        pod_initial_backoff_s=_set(config.pod_initial_backoff_seconds),
        pod_max_backoff_s=_set(config.pod_max_backoff_seconds),
        extenders=extenders,
    )
