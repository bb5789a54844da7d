"""Plugin arguments as written in `pluginConfig[].args`.

The prefix V1 marks the types of the document; `config.plugin_args` has those that plugins read.
`never_omitted`: fields that Go prints even if they are empty (see `go_struct.GoStruct`).
Upstream: staging/src/k8s.io/kube-scheduler/config/v1/types_pluginargs.go and the parts of
k8s.io/api/core/v1 that they embed, as of 1.34.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, Final

from roadstead.config.go_struct import Bool, GoDuration, GoStruct, Int32, Int64, Str

Names = frozenset[str]
"""Names of fields of a model."""


class Args(GoStruct):
    """Base of all arguments, with their type. It may be absent: the plugin's name implies it."""

    api_version: Str = ""
    kind: Str = ""


class V1ResourceSpec(GoStruct):
    """A resource and its weight; 0 means 1."""

    never_omitted: ClassVar[Names] = frozenset({"name"})
    name: Str = ""
    weight: Int64 = 0


class V1UtilizationShapePoint(GoStruct):
    """One point of a function."""

    never_omitted: ClassVar[Names] = frozenset({"utilization", "score"})
    utilization: Int32 = 0
    score: Int32 = 0


class V1RequestedToCapacityRatio(GoStruct):
    """The function of RequestedToCapacityRatio."""

    shape: list[V1UtilizationShapePoint] | None = None


class V1ScoringStrategy(GoStruct):
    """Scoring strategy of NodeResourcesFit."""

    type: Str = ""
    resources: list[V1ResourceSpec] | None = None
    requested_to_capacity_ratio: V1RequestedToCapacityRatio | None = None


class V1SelectorRequirement(GoStruct):
    """A requirement of a node selector or a label selector."""

    never_omitted: ClassVar[Names] = frozenset({"key", "operator"})
    key: Str = ""
    operator: Str = ""
    values: list[Str] | None = None


class V1NodeSelectorTerm(GoStruct):
    """Requirements that all hold."""

    match_expressions: list[V1SelectorRequirement] | None = None
    match_fields: list[V1SelectorRequirement] | None = None


class V1NodeSelector(GoStruct):
    """Terms of which one holds."""

    never_omitted: ClassVar[Names] = frozenset({"node_selector_terms"})
    node_selector_terms: list[V1NodeSelectorTerm] | None = None


class V1PreferredSchedulingTerm(GoStruct):
    """A term with its weight."""

    never_omitted: ClassVar[Names] = frozenset({"weight", "preference"})
    weight: Int32 = 0
    preference: V1NodeSelectorTerm = V1NodeSelectorTerm()


class V1NodeAffinity(GoStruct):
    """A v1 NodeAffinity."""

    required_during_scheduling_ignored_during_execution: V1NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: list[V1PreferredSchedulingTerm] | None = (
        None
    )


class V1LabelSelector(GoStruct):
    """A v1 LabelSelector."""

    match_labels: dict[str, Str] | None = None
    match_expressions: list[V1SelectorRequirement] | None = None


class V1TopologySpreadConstraint(GoStruct):
    """A v1 TopologySpreadConstraint."""

    never_omitted: ClassVar[Names] = frozenset({"max_skew", "topology_key", "when_unsatisfiable"})
    max_skew: Int32 = 0
    topology_key: Str = ""
    when_unsatisfiable: Str = ""
    label_selector: V1LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: Str | None = None
    node_taints_policy: Str | None = None
    match_label_keys: list[Str] | None = None


class V1DefaultPreemptionArgs(Args):
    """Arguments of DefaultPreemption."""

    min_candidate_nodes_percentage: Int32 | None = None
    min_candidate_nodes_absolute: Int32 | None = None


class V1DynamicResourcesArgs(Args):
    """Arguments of DynamicResources."""

    never_omitted: ClassVar[Names] = frozenset({"filter_timeout"})
    filter_timeout: GoDuration | None = None


class V1InterPodAffinityArgs(Args):
    """Arguments of InterPodAffinity."""

    never_omitted: ClassVar[Names] = frozenset({"ignore_preferred_terms_of_existing_pods"})
    hard_pod_affinity_weight: Int32 | None = None
    ignore_preferred_terms_of_existing_pods: Bool = False


class V1NodeAffinityArgs(Args):
    """Arguments of NodeAffinity."""

    added_affinity: V1NodeAffinity | None = None


class V1NodeResourcesBalancedAllocationArgs(Args):
    """Arguments of NodeResourcesBalancedAllocation."""

    resources: list[V1ResourceSpec] | None = None


class V1NodeResourcesFitArgs(Args):
    """Arguments of NodeResourcesFit."""

    ignored_resources: list[Str] | None = None
    ignored_resource_groups: list[Str] | None = None
    scoring_strategy: V1ScoringStrategy | None = None


class V1PodTopologySpreadArgs(Args):
    """Arguments of PodTopologySpread."""

    default_constraints: list[V1TopologySpreadConstraint] | None = None
    defaulting_type: Str = ""


class V1VolumeBindingArgs(Args):
    """Arguments of VolumeBinding."""

    bind_timeout_seconds: Int64 | None = None
    shape: list[V1UtilizationShapePoint] | None = None


ARGS_MODELS: Final[Mapping[str, type[Args]]] = MappingProxyType(
    {
        "DefaultPreemption": V1DefaultPreemptionArgs,
        "DynamicResources": V1DynamicResourcesArgs,
        "InterPodAffinity": V1InterPodAffinityArgs,
        "NodeAffinity": V1NodeAffinityArgs,
        "NodeResourcesBalancedAllocation": V1NodeResourcesBalancedAllocationArgs,
        "NodeResourcesFit": V1NodeResourcesFitArgs,
        "PodTopologySpread": V1PodTopologySpreadArgs,
        "VolumeBinding": V1VolumeBindingArgs,
    }
)
"""Plugin → model of its arguments; their kind is the plugin's name with the suffix `Args`."""
