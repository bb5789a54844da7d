"""Label selectors, node selectors and the types that contain them (meta/v1 and core/v1).

Operators stay plain strings: upstream reports an unknown one only when it uses the selector, with a
text of its own, so that it is not refused here (see `roadstead.facts.parse_selectors`).
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from roadstead.protocol.objects.base import (
    ApiModel,
    ListOf,
    Name,
    Positive,
    StringMap,
    Weight,
    empty_map,
)


class SelectorRequirement(ApiModel):
    """`key operator values`; None and [] are kept apart: upstream's messages differ."""

    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class LabelSelector(ApiModel):
    """metav1.LabelSelector: an empty one matches everything, an absent one nothing."""

    match_labels: StringMap = Field(default_factory=empty_map)
    match_expressions: ListOf[SelectorRequirement] = ()


class NodeSelectorTerm(ApiModel):
    """Expressions over labels and over fields (`metadata.name`), all of which must hold."""

    match_expressions: ListOf[SelectorRequirement] = ()
    match_fields: ListOf[SelectorRequirement] = ()


class NodeSelector(ApiModel):
    """Terms, at least one of which must match; without terms it matches no node."""

    node_selector_terms: ListOf[NodeSelectorTerm] = ()


class PreferredSchedulingTerm(ApiModel):
    """A weighted node selector term."""

    weight: Weight = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(ApiModel):
    """Required and preferred nodes of a pod."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: ListOf[PreferredSchedulingTerm] = ()


class PodAffinityTerm(ApiModel):
    """Pods by label and namespace, in one topology domain."""

    topology_key: Name
    label_selector: LabelSelector | None = None
    namespaces: ListOf[str] = ()
    namespace_selector: LabelSelector | None = None
    match_label_keys: ListOf[str] = ()
    mismatch_label_keys: ListOf[str] = ()


class WeightedPodAffinityTerm(ApiModel):
    """A preferred pod affinity term."""

    weight: Weight = 0
    pod_affinity_term: PodAffinityTerm


class PodAffinity(ApiModel):
    """Required and preferred pods to be near to, or (as podAntiAffinity) away from."""

    required_during_scheduling_ignored_during_execution: ListOf[PodAffinityTerm] = ()
    preferred_during_scheduling_ignored_during_execution: ListOf[WeightedPodAffinityTerm] = ()


class Affinity(ApiModel):
    """The three kinds of affinity; each may be absent."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(ApiModel):
    """Spread of the pods that a selector matches over topology domains."""

    max_skew: Positive
    topology_key: Name
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"]
    label_selector: LabelSelector | None = None
    min_domains: Positive | None = None
    node_affinity_policy: Literal["Honor", "Ignore"] | None = None
    node_taints_policy: Literal["Honor", "Ignore"] | None = None
    match_label_keys: ListOf[str] = ()


class Taint(ApiModel):
    """A taint of a node. time_added: as written; two taints that differ in it are not equal."""

    key: str = ""
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
    time_added: str | None = None


class Toleration(ApiModel):
    """A toleration of a pod; without an effect it tolerates all effects."""

    key: str = ""
    operator: Literal["", "Exists", "Equal"] = ""
    value: str = ""
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = ""
    toleration_seconds: int | None = None
