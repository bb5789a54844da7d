"""Pods (staging/src/k8s.io/api/core/v1/types.go), by the fields that scheduling reads."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from roadstead.protocol.objects.base import (
    ApiModel,
    Int32,
    ListOf,
    Name,
    OptionalName,
    Port,
    Resources,
    StringMap,
    empty_map,
    interned,
)
from roadstead.protocol.objects.meta import ApiObject, TemplateMeta
from roadstead.protocol.objects.selectors import Affinity, Toleration, TopologySpreadConstraint
from roadstead.protocol.objects.volumes import Volume


class ContainerPort(ApiModel):
    """A port of a container; scheduling reads those with a host port."""

    container_port: Port = 0
    host_port: Port = 0
    host_ip: Annotated[str, Field(max_length=64)] = Field("", alias="hostIP")
    protocol: Literal["", "TCP", "UDP", "SCTP"] = ""


class ResourceRequirements(ApiModel):
    """Requests and limits, each resource a quantity no less than zero."""

    requests: Resources = Field(default_factory=empty_map)
    limits: Resources = Field(default_factory=empty_map)


class Container(ApiModel):
    """A container or an init container; an init container that always restarts is a sidecar."""

    name: str = ""
    image: Annotated[str, Field(max_length=4096)] = ""
    ports: ListOf[ContainerPort] = ()
    resources: ResourceRequirements | None = None
    restart_policy: Literal["", "Always", "OnFailure", "Never"] = ""


class SchedulingGate(ApiModel):
    name: Name


class PodResourceClaim(ApiModel):
    """A reference to a claim of devices, or to the template from which one is created."""

    name: Name
    resource_claim_name: OptionalName | None = None
    resource_claim_template_name: OptionalName | None = None


class PodSpec(ApiModel):
    """Spec of a pod."""

    containers: Annotated[ListOf[Container], interned()] = ()
    init_containers: Annotated[ListOf[Container], interned()] = ()
    resources: ResourceRequirements | None = None
    overhead: Resources = Field(default_factory=empty_map)
    node_name: OptionalName = ""
    node_selector: StringMap = Field(default_factory=empty_map)
    affinity: Annotated[Affinity | None, interned()] = None
    tolerations: Annotated[ListOf[Toleration], interned()] = ()
    topology_spread_constraints: Annotated[ListOf[TopologySpreadConstraint], interned()] = ()
    volumes: ListOf[Volume] = ()
    scheduling_gates: ListOf[SchedulingGate] = ()
    resource_claims: ListOf[PodResourceClaim] = ()
    scheduler_name: OptionalName = ""
    runtime_class_name: str = ""
    priority: Int32 | None = None
    priority_class_name: str = ""
    preemption_policy: Literal["", "Never", "PreemptLowerPriority"] = ""
    host_network: bool = False
    active_deadline_seconds: int | None = None


class ContainerStatus(ApiModel):
    """Status of a container, for in-place resize."""

    name: str = ""
    resources: ResourceRequirements | None = None
    allocated_resources: Resources = Field(default_factory=empty_map)


class PodCondition(ApiModel):
    type: str = ""
    status: str = ""
    reason: str = ""


class PodResourceClaimStatus(ApiModel):
    """The claim that was created from a pod's claim template."""

    name: str = ""
    resource_claim_name: OptionalName | None = None


class PodStatus(ApiModel):
    """Status of a pod."""

    phase: Literal["", "Pending", "Running", "Succeeded", "Failed", "Unknown"] = ""
    nominated_node_name: OptionalName = ""
    start_time: str | None = None
    conditions: ListOf[PodCondition] = ()
    container_statuses: ListOf[ContainerStatus] = ()
    init_container_statuses: ListOf[ContainerStatus] = ()
    resource_claim_statuses: ListOf[PodResourceClaimStatus] = ()


class Pod(ApiObject):
    """A pod."""

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class PodTemplate(ApiModel):
    """The template of a workload's pods."""

    metadata: TemplateMeta = TemplateMeta()
    spec: PodSpec = PodSpec()
