"""Objects of resource.k8s.io: slices, classes, claims, templates of claims, taint rules.

Fields and bounds are those of v1 (DeviceTaintRule: v1alpha3) as the API server validates them
(pkg/apis/resource/validation/validation.go). Which fields exclude each other, and which names are
unique, is checked where manifests are read, but not in recordings: their objects were stored by an
API server, which checked them.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from roadstead.protocol.claim_bounds import CLAIM_MAX_CONSUMERS
from roadstead.protocol.objects.base import (
    ApiModel,
    Count,
    ListOf,
    Name,
    NonNegativeInt64,
    OptionalName,
    ResourceQuantity,
    Resources,
    empty_map,
)
from roadstead.protocol.objects.meta import ApiObject, TemplateMeta
from roadstead.protocol.objects.selectors import NodeSelector, Toleration

# Maximum sizes of the API.
SLICE_MAX_DEVICES = 128
SLICE_MAX_COUNTER_SETS = 8
CLAIM_MAX_REQUESTS = 32
CLAIM_MAX_CONSTRAINTS = 32
# Of a class and of a claim; an allocation has those of both.
CLAIM_MAX_CONFIGS = 32
CLAIM_MAX_RESULTS = 32
REQUEST_MAX_ALTERNATIVES = 8
MAX_SELECTORS = 32
MAX_TOLERATIONS = 16
# Of attributes, and of capacities.
DEVICE_MAX_VALUES = 32
EXPRESSION_MAX_CHARS = 10 * 1024
PARAMETERS_MAX_BYTES = 10 * 1024
ATTRIBUTE_MAX_CHARS = 64

_Conditions = Annotated[ListOf[str], Field(max_length=4)]
_Tolerations = Annotated[ListOf[Toleration], Field(max_length=MAX_TOLERATIONS)]
_Json = dict[str, object]


def _capacity_value(value: object) -> object:
    """Convert a capacity of v1alpha3, which is only a quantity, to a capacity of v1."""
    return {"value": value} if type(value) in (str, int, float) else value


class CelSelector(ApiModel):
    expression: Annotated[str, Field(min_length=1, max_length=EXPRESSION_MAX_CHARS)]


class DeviceSelector(ApiModel):
    """A condition on a device; CEL is the only kind."""

    cel: CelSelector


_Selectors = Annotated[ListOf[DeviceSelector], Field(max_length=MAX_SELECTORS)]


class OpaqueConfiguration(ApiModel):
    """Parameters for a driver, which scheduling copies without reading them."""

    driver: Name
    parameters: _Json = Field(default_factory=empty_map)


class DeviceConfiguration(ApiModel):
    """A configuration of a class, a claim or an allocation."""

    opaque: OpaqueConfiguration | None = None
    requests: Annotated[ListOf[str], Field(max_length=CLAIM_MAX_REQUESTS)] = ()
    source: Literal["", "FromClass", "FromClaim"] = ""


class DeviceClassSpec(ApiModel):
    selectors: _Selectors = ()
    config: Annotated[ListOf[DeviceConfiguration], Field(max_length=CLAIM_MAX_CONFIGS)] = ()
    extended_resource_name: OptionalName | None = None


class DeviceClass(ApiObject):
    """A class of devices."""

    spec: DeviceClassSpec = DeviceClassSpec()


class CapacityRequirements(ApiModel):
    requests: Resources = Field(default_factory=empty_map)


class RequestedDevices(ApiModel):
    """The devices that a request, or one of its alternatives, requests."""

    device_class_name: Name
    selectors: _Selectors = ()
    allocation_mode: Literal["", "ExactCount", "All"] = ""
    count: Annotated[int, Field(ge=0, le=2**63 - 1)] = 0
    tolerations: _Tolerations = ()
    capacity: CapacityRequirements | None = None


class ExactDeviceRequest(RequestedDevices):
    """The devices of a request without alternatives."""

    admin_access: bool = False


class DeviceSubRequest(RequestedDevices):
    """An alternative of a request."""

    name: Name


class ClaimDeviceRequest(ApiModel):
    """One request of a claim: exactly one of `exactly` and `firstAvailable` is set."""

    name: Name
    exactly: ExactDeviceRequest | None = None
    first_available: Annotated[
        ListOf[DeviceSubRequest], Field(max_length=REQUEST_MAX_ALTERNATIVES)
    ] = ()


class ClaimDeviceConstraint(ApiModel):
    requests: Annotated[ListOf[str], Field(max_length=CLAIM_MAX_REQUESTS)] = ()
    match_attribute: OptionalName | None = None
    distinct_attribute: OptionalName | None = None


class ClaimDevices(ApiModel):
    requests: Annotated[ListOf[ClaimDeviceRequest], Field(max_length=CLAIM_MAX_REQUESTS)] = ()
    constraints: Annotated[
        ListOf[ClaimDeviceConstraint], Field(max_length=CLAIM_MAX_CONSTRAINTS)
    ] = ()
    config: Annotated[ListOf[DeviceConfiguration], Field(max_length=CLAIM_MAX_CONFIGS)] = ()


class ResourceClaimSpec(ApiModel):
    devices: ClaimDevices = ClaimDevices()


class DeviceRequestAllocationResult(ApiModel):
    """One device of an allocation."""

    request: OptionalName = ""
    driver: OptionalName = ""
    pool: OptionalName = ""
    device: OptionalName = ""
    admin_access: bool = False
    tolerations: _Tolerations = ()
    binding_conditions: _Conditions = ()
    binding_failure_conditions: _Conditions = ()
    share_id: OptionalName | None = Field(None, alias="shareID")
    consumed_capacity: Resources | None = None


class AllocatedDevices(ApiModel):
    results: Annotated[
        ListOf[DeviceRequestAllocationResult], Field(max_length=CLAIM_MAX_RESULTS)
    ] = ()
    config: Annotated[ListOf[DeviceConfiguration], Field(max_length=2 * CLAIM_MAX_CONFIGS)] = ()


class ClaimAllocation(ApiModel):
    """The devices of a claim and the nodes that reach them."""

    devices: AllocatedDevices = AllocatedDevices()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class ClaimConsumer(ApiModel):
    api_group: OptionalName = ""
    resource: OptionalName = ""
    name: OptionalName = ""
    uid: str = ""


class DeviceCondition(ApiModel):
    type: str = ""
    status: str = ""


class AllocatedDeviceStatus(ApiModel):
    """A driver's report on an allocated device."""

    driver: OptionalName = ""
    pool: OptionalName = ""
    device: OptionalName = ""
    share_id: OptionalName | None = Field(None, alias="shareID")
    conditions: ListOf[DeviceCondition] = ()


class ResourceClaimStatus(ApiModel):
    allocation: ClaimAllocation | None = None
    reserved_for: Annotated[ListOf[ClaimConsumer], Field(max_length=CLAIM_MAX_CONSUMERS)] = ()
    devices: ListOf[AllocatedDeviceStatus] = ()


class ResourceClaim(ApiObject):
    """A claim of devices."""

    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()


class ResourceClaimTemplateSpec(ApiModel):
    metadata: TemplateMeta = TemplateMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(ApiObject):
    """The template of a pod's claim."""

    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()


class DeviceAttribute(ApiModel):
    """The value of an attribute; exactly one field is set."""

    int_value: Annotated[int, Field(ge=-(2**63), le=2**63 - 1)] | None = Field(None, alias="int")
    bool_value: bool | None = Field(None, alias="bool")
    string_value: Annotated[str, Field(max_length=ATTRIBUTE_MAX_CHARS)] | None = Field(
        None, alias="string"
    )
    version_value: Annotated[str, Field(max_length=ATTRIBUTE_MAX_CHARS)] | None = Field(
        None, alias="version"
    )


class CapacityRange(ApiModel):
    min: ResourceQuantity | None = None
    max: ResourceQuantity | None = None
    step: ResourceQuantity | None = None


class CapacityRequestPolicy(ApiModel):
    """The amounts of a capacity that requests may consume."""

    default: ResourceQuantity | None = None
    valid_values: Annotated[ListOf[ResourceQuantity], Field(max_length=10)] = ()
    valid_range: CapacityRange | None = None


class DeviceCapacityValue(ApiModel):
    value: ResourceQuantity
    request_policy: CapacityRequestPolicy | None = None


class Counter(ApiModel):
    value: ResourceQuantity


class CounterSet(ApiModel):
    name: Name
    counters: dict[str, Counter] = Field(default_factory=empty_map)


class ConsumedCounters(ApiModel):
    """Consumption of a device from a counter set of its pool."""

    counter_set: Name
    counters: dict[str, Counter] = Field(default_factory=empty_map)


class DeviceTaint(ApiModel):
    key: Name
    value: OptionalName = ""
    effect: Literal["", "NoSchedule", "NoExecute"] = ""


class Device(ApiModel):
    """A device of a slice."""

    name: Name
    attributes: Annotated[dict[str, DeviceAttribute], Field(max_length=DEVICE_MAX_VALUES)] = Field(
        default_factory=empty_map
    )
    capacity: Annotated[
        dict[str, Annotated[DeviceCapacityValue, BeforeValidator(_capacity_value)]],
        Field(max_length=DEVICE_MAX_VALUES),
    ] = Field(default_factory=empty_map)
    consumes_counters: ListOf[ConsumedCounters] = ()
    node_name: OptionalName | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    taints: Annotated[ListOf[DeviceTaint], Field(max_length=4)] = ()
    binds_to_node: bool = False
    binding_conditions: _Conditions = ()
    binding_failure_conditions: _Conditions = ()
    allow_multiple_allocations: bool = False


class ResourcePool(ApiModel):
    """The pool of a slice. Only slices of the newest generation count."""

    name: Name
    generation: NonNegativeInt64 = 0
    resource_slice_count: Count


class ResourceSliceSpec(ApiModel):
    driver: Name
    pool: ResourcePool
    node_name: OptionalName | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    devices: Annotated[ListOf[Device], Field(max_length=SLICE_MAX_DEVICES)] = ()
    per_device_node_selection: bool | None = None
    shared_counters: Annotated[ListOf[CounterSet], Field(max_length=SLICE_MAX_COUNTER_SETS)] = ()


class ResourceSlice(ApiObject):
    """Devices of a pool, as their driver publishes them."""

    spec: ResourceSliceSpec


class TaintedDevices(ApiModel):
    """Criteria of a taint rule; a device must match each of the given ones."""

    device_class_name: OptionalName | None = None
    driver: OptionalName | None = None
    pool: OptionalName | None = None
    device: OptionalName | None = None
    selectors: _Selectors = ()


class DeviceTaintRuleSpec(ApiModel):
    device_selector: TaintedDevices | None = None
    taint: DeviceTaint


class DeviceTaintRule(ApiObject):
    """A taint of all devices that match."""

    spec: DeviceTaintRuleSpec
