"""The in-tree registry: every plugin of the default profile by its upstream name.

Plugins that upstream removed are registered under their former names; no profile enables them by
default.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

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
    ServiceAffinityArgs,
)
from roadstead.framework.plugin import Handle, Plugin
from roadstead.framework.registry import Factory, Registry
from roadstead.plugins.coscheduling import Coscheduling
from roadstead.plugins.default_binder import DefaultBinder
from roadstead.plugins.default_preemption import DefaultPreemption
from roadstead.plugins.dynamic_resources import DynamicResources
from roadstead.plugins.image_locality import ImageLocality
from roadstead.plugins.inter_pod_affinity import InterPodAffinity
from roadstead.plugins.node_affinity import NodeAffinity
from roadstead.plugins.node_label import NodeLabel
from roadstead.plugins.node_name import NodeName
from roadstead.plugins.node_ports import NodePorts
from roadstead.plugins.node_prefer_avoid_pods import NodePreferAvoidPods
from roadstead.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from roadstead.plugins.node_resources_fit import NodeResourcesFit
from roadstead.plugins.node_unschedulable import NodeUnschedulable
from roadstead.plugins.node_volume_limits import NodeVolumeLimits
from roadstead.plugins.pod_topology_spread import PodTopologySpread
from roadstead.plugins.priority_sort import PrioritySort
from roadstead.plugins.scheduling_gates import SchedulingGates
from roadstead.plugins.selector_spread import SelectorSpread
from roadstead.plugins.service_affinity import ServiceAffinity
from roadstead.plugins.taint_toleration import TaintToleration
from roadstead.plugins.volume_binding import VolumeBinding
from roadstead.plugins.volume_restrictions import VolumeRestrictions
from roadstead.plugins.volume_zone import VolumeZone

ArgsT = TypeVar("ArgsT", bound=PluginArgs)
"""The arguments that one plugin accepts."""

_WITHOUT_ARGS: tuple[type[Plugin], ...] = (
    SchedulingGates,
    PrioritySort,
    NodeUnschedulable,
    NodeName,
    TaintToleration,
    NodePorts,
    ImageLocality,
    DefaultBinder,
    NodePreferAvoidPods,
)


def in_tree_registry() -> Registry:
    """Return a registry of all in-tree plugins."""
    return Registry({plugin_class.name: factory for plugin_class, factory in _factories().items()})


def in_tree_classes() -> dict[str, type[Plugin]]:
    """Return the class of each in-tree plugin by its name."""
    return {plugin_class.name: plugin_class for plugin_class in _factories()}


def _factories() -> dict[type[Plugin], Factory]:
    # The arguments created here are the defaults for a profile without pluginConfig.
    return {
        **{plugin_class: _without_args(plugin_class) for plugin_class in _WITHOUT_ARGS},
        NodeAffinity: _with_args(NodeAffinity, NodeAffinityArgs()),
        DefaultPreemption: _with_args(DefaultPreemption, DefaultPreemptionArgs()),
        NodeResourcesFit: _with_args_and_handle(NodeResourcesFit, NodeResourcesFitArgs()),
        NodeResourcesBalancedAllocation: _with_args(
            NodeResourcesBalancedAllocation, NodeResourcesBalancedAllocationArgs()
        ),
        PodTopologySpread: _with_args_and_handle(PodTopologySpread, PodTopologySpreadArgs()),
        InterPodAffinity: _with_args_and_handle(InterPodAffinity, InterPodAffinityArgs()),
        NodeLabel: _with_args(NodeLabel, NodeLabelArgs()),
        Coscheduling: _with_args_and_handle(Coscheduling, CoschedulingArgs()),
        VolumeRestrictions: _with_handle(VolumeRestrictions),
        NodeVolumeLimits: _with_handle(NodeVolumeLimits),
        VolumeBinding: _with_handle(VolumeBinding),
        DynamicResources: _with_args_and_handle(DynamicResources, DynamicResourcesArgs()),
        VolumeZone: _with_handle(VolumeZone),
        SelectorSpread: _with_handle(SelectorSpread),
        ServiceAffinity: _with_args_and_handle(ServiceAffinity, ServiceAffinityArgs()),
    }


def _without_args(plugin_class: Callable[[], Plugin]) -> Factory:
    def build(args: PluginArgs | None, handle: Handle) -> Plugin:
        return plugin_class()

    return build


def _with_handle(plugin_class: Callable[[Handle], Plugin]) -> Factory:
    def build(args: PluginArgs | None, handle: Handle) -> Plugin:
        return plugin_class(handle)

    return build


def _with_args(plugin_class: Callable[[ArgsT], Plugin], default: ArgsT) -> Factory:
    def build(args: PluginArgs | None, handle: Handle) -> Plugin:
        if args is None:
            return plugin_class(default)
        assert isinstance(args, type(default)), f"arguments of another plugin: {args!r}"
        return plugin_class(args)

    return build


def _with_args_and_handle(
    plugin_class: Callable[[ArgsT, Handle], Plugin], default: ArgsT
) -> Factory:
    def build(args: PluginArgs | None, handle: Handle) -> Plugin:
        return _with_args(lambda checked: plugin_class(checked, handle), default)(args, handle)

    return build
