"""Objects that select pods, and objects that admission applies to new pods and claims."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from roadstead.protocol.objects.base import (
    ApiModel,
    Count,
    Int32,
    IntOrString,
    ListOf,
    Resources,
    StringMap,
    empty_map,
)
from roadstead.protocol.objects.meta import ApiObject
from roadstead.protocol.objects.selectors import LabelSelector, Toleration


class Namespace(ApiObject):
    """A namespace; pod affinity selects it by label."""


class ServiceSpec(ApiModel):
    selector: StringMap = Field(default_factory=empty_map)


class Service(ApiObject):
    """A service."""

    spec: ServiceSpec = ServiceSpec()


class DisruptionBudgetSpec(ApiModel):
    """The pods that a budget selects, and how many of them must stay or may be evicted."""

    min_available: IntOrString | None = None
    max_unavailable: IntOrString | None = None
    selector: LabelSelector | None = None


class DisruptionBudgetStatus(ApiModel):
    disruptions_allowed: Count = 0
    current_healthy: Count = 0
    desired_healthy: Count = 0
    expected_pods: Count = 0
    # By pod name: when its eviction was accepted.
    disrupted_pods: dict[str, str | None] = Field(default_factory=empty_map)


class PodDisruptionBudget(ApiObject):
    """A pod disruption budget."""

    spec: DisruptionBudgetSpec = DisruptionBudgetSpec()
    status: DisruptionBudgetStatus = DisruptionBudgetStatus()


class PodGroupSpec(ApiModel):
    """Number of pods of a gang that must find a node together, and the time that they may wait."""

    min_member: Count = 0
    schedule_timeout_seconds: Count | None = None


class PodGroup(ApiObject):
    """A gang of pods (scheduling.x-k8s.io)."""

    spec: PodGroupSpec = PodGroupSpec()


class PriorityClass(ApiObject):
    """A name for a priority."""

    value: Int32 = 0
    global_default: bool = False
    preemption_policy: Literal["", "Never", "PreemptLowerPriority"] = ""


class LimitRangeItem(ApiModel):
    """Defaults and bounds for the containers, pods or claims of a namespace."""

    type: str = ""
    default: Resources = Field(default_factory=empty_map)
    default_request: Resources = Field(default_factory=empty_map)
    max: Resources = Field(default_factory=empty_map)
    min: Resources = Field(default_factory=empty_map)
    max_limit_request_ratio: Resources = Field(default_factory=empty_map)


class LimitRangeSpec(ApiModel):
    limits: ListOf[LimitRangeItem] = ()


class LimitRange(ApiObject):
    """Defaults and bounds for the requests and limits in a namespace."""

    spec: LimitRangeSpec = LimitRangeSpec()


QuotaScope = Literal[
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "CrossNamespacePodAffinity",
    "VolumeAttributesClass",
]


class ScopeRequirement(ApiModel):
    """`scopeName operator values`: which pods or claims a quota counts."""

    scope_name: QuotaScope
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: ListOf[str] = ()


class ScopeSelector(ApiModel):
    match_expressions: ListOf[ScopeRequirement] = ()


class ResourceQuotaSpec(ApiModel):
    """Bounds of the total use of a namespace's objects that all scopes of the quota select."""

    hard: Resources = Field(default_factory=empty_map)
    scopes: ListOf[QuotaScope] = ()
    scope_selector: ScopeSelector | None = None


class ResourceQuotaStatus(ApiModel):
    used: Resources = Field(default_factory=empty_map)


class ResourceQuota(ApiObject):
    """A quota of a namespace."""

    spec: ResourceQuotaSpec = ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()


class Overhead(ApiModel):
    pod_fixed: Resources = Field(default_factory=empty_map)


class RuntimeScheduling(ApiModel):
    node_selector: StringMap = Field(default_factory=empty_map)
    tolerations: ListOf[Toleration] = ()


class RuntimeClass(ApiObject):
    """A container runtime: its overhead per pod, and the nodes on which it may run."""

    overhead: Overhead = Overhead()
    scheduling: RuntimeScheduling = RuntimeScheduling()
