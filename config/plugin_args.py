"""Arguments of the in-tree plugins as the plugins read them: validated, defaults filled in.

Times are in seconds, weights and shape points are plain integers as upstream counts them.
Upstream: pkg/scheduler/apis/config/types_pluginargs.go, defaults of v1/defaults.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias


@dataclass(frozen=True, slots=True)
class ResourceSpec:
    """A resource and its weight in a score."""

    name: str
    weight: int = 1


@dataclass(frozen=True, slots=True)
class ShapePoint:
    """One point of a piecewise linear function: utilization 0..100, score 0..10."""

    utilization: int
    score: int


@dataclass(frozen=True, slots=True)
class RequestedToCapacityRatio:
    """The function of the strategy RequestedToCapacityRatio; points have increasing utilization."""

    shape: tuple[ShapePoint, ...]


ScoringStrategyType = Literal["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"]

CPU_AND_MEMORY: Final = (ResourceSpec("cpu"), ResourceSpec("memory"))


@dataclass(frozen=True, slots=True)
class ScoringStrategy:
    """Scoring strategy of NodeResourcesFit.

    requested_to_capacity_ratio: None for other types.
    """

    type: ScoringStrategyType = "LeastAllocated"
    resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY
    requested_to_capacity_ratio: RequestedToCapacityRatio | None = None


@dataclass(frozen=True, slots=True)
class NodeResourcesFitArgs:
    """Arguments of NodeResourcesFit.

    ignored_resource_groups: the part before the slash, e.g. `example.com`.
    """

    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy()


@dataclass(frozen=True, slots=True)
class NodeResourcesBalancedAllocationArgs:
    """Arguments of NodeResourcesBalancedAllocation. Every weight is 1 (others are refused)."""

    resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY


@dataclass(frozen=True, slots=True)
class NodeAffinityArgs:
    """Arguments of NodeAffinity.

    added_affinity: a v1 NodeAffinity manifest whose selectors parse, or None.
    """

    added_affinity: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class InterPodAffinityArgs:
    """Arguments of InterPodAffinity. hard_pod_affinity_weight: 0..100."""

    hard_pod_affinity_weight: int = 1
    ignore_preferred_terms_of_existing_pods: bool = False


@dataclass(frozen=True, slots=True)
class PodTopologySpreadArgs:
    """Arguments of PodTopologySpread.

    default_constraints: v1 TopologySpreadConstraint manifests without a label selector. With
    `System` the plugin uses its built-in constraints (hostname and zone, ScheduleAnyway).
    """

    default_constraints: tuple[Mapping[str, Any], ...] = ()
    defaulting_type: Literal["System", "List"] = "System"


@dataclass(frozen=True, slots=True)
class DefaultPreemptionArgs:
    """Arguments of DefaultPreemption: the number of candidate nodes with which a dry run ends.

    Of the two numbers the larger one counts. min_candidate_nodes_percentage: of all nodes.
    """

    min_candidate_nodes_percentage: int = 10
    min_candidate_nodes_absolute: int = 100


@dataclass(frozen=True, slots=True)
class VolumeBindingArgs:
    """Time that PreBind waits for volumes; `shape` is empty: its feature gate is off by default."""

    bind_timeout_s: int = 600
    shape: tuple[ShapePoint, ...] = ()


@dataclass(frozen=True, slots=True)
class DynamicResourcesArgs:
    """Time limit of Filter for one node; 0 means no limit."""

    filter_timeout_s: float = 10.0


@dataclass(frozen=True, slots=True)
class NodeLabelArgs:
    """Keys of node labels that must be, or are preferred to be, present or absent."""

    present_labels: tuple[str, ...] = ()
    absent_labels: tuple[str, ...] = ()
    present_labels_preference: tuple[str, ...] = ()
    absent_labels_preference: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ServiceAffinityArgs:
    """Node labels on which pods of a service agree, and those over which they are spread."""

    affinity_labels: tuple[str, ...] = ()
    anti_affinity_labels_preference: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CoschedulingArgs:
    """Time that Permit waits for the rest of a gang whose own timeout is not set."""

    permit_wait_s: int = 60


PluginArgs: TypeAlias = (
    NodeResourcesFitArgs
    | NodeResourcesBalancedAllocationArgs
    | NodeAffinityArgs
    | InterPodAffinityArgs
    | PodTopologySpreadArgs
    | DefaultPreemptionArgs
    | VolumeBindingArgs
    | DynamicResourcesArgs
    | NodeLabelArgs
    | ServiceAffinityArgs
    | CoschedulingArgs
    | Mapping[str, Any]
    | Sequence[Any]
    | str
    | float
    | bool
)
"""Typed arguments of an in-tree plugin; for any other plugin, the value in the document.

Such a value is nearly always a mapping, but upstream accepts any JSON value.
"""

DEFAULT_ARGS: Final[Mapping[str, PluginArgs]] = MappingProxyType(
    {
        "DefaultPreemption": DefaultPreemptionArgs(),
        "DynamicResources": DynamicResourcesArgs(),
        "InterPodAffinity": InterPodAffinityArgs(),
        "NodeAffinity": NodeAffinityArgs(),
        "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocationArgs(),
        "NodeResourcesFit": NodeResourcesFitArgs(),
        "PodTopologySpread": PodTopologySpreadArgs(),
        "VolumeBinding": VolumeBindingArgs(),
    }
)
"""Arguments of plugins that a profile does not configure, in the order upstream appends them."""
