"""Plugin arguments as written in `pluginConfig[].args`.

Upstream: staging/src/k8s.io/kube-scheduler/config/v1/types_pluginargs.go and the parts of
k8s.io/api/core/v1 that they embed, as of 1.34.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, Final

from roadstead.config.wire import Bool, Int32, Int64, Str, Wire, WireDuration

Names = frozenset[str]


class Args(Wire):
    """Base of all arguments: the type, which may be left out as the plugin's name implies it."""

    api_version: Str = ""
    kind: Str = ""


class WireResourceSpec(Wire):
    """A resource and its weight; 0 means 1."""

    always: ClassVar[Names] = frozenset({"name"})
    name: Str = ""
    weight: Int64 = 0


class WireShapePoint(Wire):
    """One point of a function."""

    always: ClassVar[Names] = frozenset({"utilization", "score"})
    utilization: Int32 = 0
    score: Int32 = 0


class WireCapacityRatio(Wire):
    """The function of RequestedToCapacityRatio."""

    shape: list[WireShapePoint] | None = None


class WireScoringStrategy(Wire):
    """How NodeResourcesFit scores."""

    type: Str = ""
    resources: list[WireResourceSpec] | None = None
    requested_to_capacity_ratio: WireCapacityRatio | None = None


class WireRequirement(Wire):
    """A requirement of a node selector or a label selector."""

    always: ClassVar[Names] = frozenset({"key", "operator"})
    key: Str = ""
    operator: Str = ""
    values: list[Str] | None = None


class WireNodeSelectorTerm(Wire):
    """Requirements that all hold."""

    match_expressions: list[WireRequirement] | None = None
    match_fields: list[WireRequirement] | None = None


class WireNodeSelector(Wire):
    """Terms of which one holds."""

    always: ClassVar[Names] = frozenset({"node_selector_terms"})
    node_selector_terms: list[WireNodeSelectorTerm] | None = None


class WirePreferredTerm(Wire):
    """A term with its weight."""

    always: ClassVar[Names] = frozenset({"weight", "preference"})
    weight: Int32 = 0
    preference: WireNodeSelectorTerm = WireNodeSelectorTerm()


class WireNodeAffinity(Wire):
    """A v1 NodeAffinity."""

    required_during_scheduling_ignored_during_execution: WireNodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: list[WirePreferredTerm] | None = None


class WireLabelSelector(Wire):
    """A v1 LabelSelector."""

    match_labels: dict[str, Str] | None = None
    match_expressions: list[WireRequirement] | None = None


class WireSpreadConstraint(Wire):
    """A v1 TopologySpreadConstraint."""

    always: ClassVar[Names] = frozenset({"max_skew", "topology_key", "when_unsatisfiable"})
    max_skew: Int32 = 0
    topology_key: Str = ""
    when_unsatisfiable: Str = ""
    label_selector: WireLabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: Str | None = None
    node_taints_policy: Str | None = None
    match_label_keys: list[Str] | None = None


class WireDefaultPreemptionArgs(Args):
    """Arguments of DefaultPreemption."""

    min_candidate_nodes_percentage: Int32 | None = None
    min_candidate_nodes_absolute: Int32 | None = None


class WireDynamicResourcesArgs(Args):
    """Arguments of DynamicResources."""

    always: ClassVar[Names] = frozenset({"filter_timeout"})
    filter_timeout: WireDuration | None = None


class WireInterPodAffinityArgs(Args):
    """Arguments of InterPodAffinity."""

    always: ClassVar[Names] = frozenset({"ignore_preferred_terms_of_existing_pods"})
    hard_pod_affinity_weight: Int32 | None = None
    ignore_preferred_terms_of_existing_pods: Bool = False


class WireNodeAffinityArgs(Args):
    """Arguments of NodeAffinity."""

    added_affinity: WireNodeAffinity | None = None


class WireBalancedAllocationArgs(Args):
    """Arguments of NodeResourcesBalancedAllocation."""

    resources: list[WireResourceSpec] | None = None


class WireFitArgs(Args):
    """Arguments of NodeResourcesFit."""

    ignored_resources: list[Str] | None = None
    ignored_resource_groups: list[Str] | None = None
    scoring_strategy: WireScoringStrategy | None = None


class WireSpreadArgs(Args):
    """Arguments of PodTopologySpread."""

    default_constraints: list[WireSpreadConstraint] | None = None
    defaulting_type: Str = ""


class WireVolumeBindingArgs(Args):
    """Arguments of VolumeBinding."""

    bind_timeout_seconds: Int64 | None = None
    shape: list[WireShapePoint] | None = None


ARGS_MODELS: Final[Mapping[str, type[Args]]] = MappingProxyType(
    {
        "DefaultPreemption": WireDefaultPreemptionArgs,
        "DynamicResources": WireDynamicResourcesArgs,
        "InterPodAffinity": WireInterPodAffinityArgs,
        "NodeAffinity": WireNodeAffinityArgs,
        "NodeResourcesBalancedAllocation": WireBalancedAllocationArgs,
        "NodeResourcesFit": WireFitArgs,
        "PodTopologySpread": WireSpreadArgs,
        "VolumeBinding": WireVolumeBindingArgs,
    }
)
"""Plugin → model of its arguments; their kind is the plugin's name with the suffix `Args`."""
