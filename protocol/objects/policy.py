"""Objects that select pods, and objects that admission applies to created ones."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from roadstead.protocol.objects.base import (
    Count,
    Int32,
    IntOrString,
    Labels,
    ListOf,
    Manifest,
    Resources,
    nothing,
)
from roadstead.protocol.objects.meta import ApiObject
from roadstead.protocol.objects.selectors import LabelSelector, Toleration


class Namespace(ApiObject):
    """A namespace; pod affinity selects it by label."""


class ServiceSpec(Manifest):
    selector: Labels = Field(default_factory=nothing)


class Service(ApiObject):
    """A service."""

    spec: ServiceSpec = ServiceSpec()


class DisruptionBudgetSpec(Manifest):
    """The pods that a budget selects, and how many of them must stay or may be evicted."""

    min_available: IntOrString | None = None
    max_unavailable: IntOrString | None = None
    selector: LabelSelector | None = None


class DisruptionBudgetStatus(Manifest):
    disruptions_allowed: Count = 0
    current_healthy: Count = 0
    desired_healthy: Count = 0
    expected_pods: Count = 0
    disrupted_pods: dict[str, str | None] = Field(default_factory=nothing)


class PodDisruptionBudget(ApiObject):
    """A pod disruption budget."""

    spec: DisruptionBudgetSpec = DisruptionBudgetSpec()
    status: DisruptionBudgetStatus = DisruptionBudgetStatus()


class PodGroupSpec(Manifest):
    """How many pods of a gang must find a node together, and for how long they may wait."""

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


class LimitRangeItem(Manifest):
    """Defaults and bounds for the containers, pods or claims of a namespace."""

    type: str = ""
    default: Resources = Field(default_factory=nothing)
    default_request: Resources = Field(default_factory=nothing)
    max: Resources = Field(default_factory=nothing)
    min: Resources = Field(default_factory=nothing)
    max_limit_request_ratio: Resources = Field(default_factory=nothing)


class LimitRangeSpec(Manifest):
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


class ScopeRequirement(Manifest):
    """`scopeName operator values`: which pods or claims a quota counts."""

    scope_name: QuotaScope
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: ListOf[str] = ()


class ScopeSelector(Manifest):
    match_expressions: ListOf[ScopeRequirement] = ()


class ResourceQuotaSpec(Manifest):
    """Bounds of what the objects in all scopes may use together in a namespace."""

    hard: Resources = Field(default_factory=nothing)
    scopes: ListOf[QuotaScope] = ()
    scope_selector: ScopeSelector | None = None


class ResourceQuotaStatus(Manifest):
    used: Resources = Field(default_factory=nothing)


class ResourceQuota(ApiObject):
    """A quota of a namespace."""

    spec: ResourceQuotaSpec = ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()


class Overhead(Manifest):
    pod_fixed: Resources = Field(default_factory=nothing)


class RuntimeScheduling(Manifest):
    node_selector: Labels = Field(default_factory=nothing)
    tolerations: ListOf[Toleration] = ()


class RuntimeClass(ApiObject):
    """A container runtime: its overhead per pod, and the nodes on which it may run."""

    overhead: Overhead = Overhead()
    scheduling: RuntimeScheduling = RuntimeScheduling()
