"""Compilation of manifests to facts of devices.

The requirements of node selectors keep the order of the manifest, because an allocation repeats
them. Upstream: pkg/apis/resource/types.go.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from roadstead.facts.compile import DEFAULT_NAMESPACE, parse_time_s
from roadstead.facts.devices import (
    EXACT_COUNT,
    AllocatedDevice,
    Allocation,
    Amounts,
    AttributeFacts,
    ClaimSpec,
    Consumer,
    CounterSetFacts,
    DeviceCapacity,
    DeviceClaimFacts,
    DeviceClassFacts,
    DeviceConstraint,
    DeviceFacts,
    DeviceRequest,
    DevicesFacts,
    DeviceStatus,
    DeviceTaintRule,
    DriverConfig,
    ExactRequest,
    NodeTerms,
    Placement,
    RequestPolicy,
    SliceFacts,
)
from roadstead.facts.parse_selectors import parse_node_selector
from roadstead.facts.selectors import NodeSelectorTerm, Requirement
from roadstead.facts.taints import Taint, Toleration
from roadstead.protocol import objects
from roadstead.protocol.objects import devices
from roadstead.protocol.quantity import Quantity

EXTENDED_RESOURCE_ANNOTATION = "resource.kubernetes.io/extended-resource-claim"
"""Annotation of a claim that the scheduler made for the extended resources of a pod."""


def compile_devices(
    slices: Iterable[devices.ResourceSlice] = (),
    classes: Iterable[devices.DeviceClass] = (),
    claims: Iterable[devices.ResourceClaim] = (),
    taint_rules: Iterable[devices.DeviceTaintRule] = (),
) -> DevicesFacts:
    """Compile validated objects."""
    return DevicesFacts(
        tuple(map(compile_slice, slices)),
        tuple(map(compile_device_class, classes)),
        tuple(map(compile_device_claim, claims)),
        tuple(map(compile_taint_rule, taint_rules)),
    )


def compile_slice(found: devices.ResourceSlice) -> SliceFacts:
    """Compile a ResourceSlice."""
    spec = found.spec
    return SliceFacts(
        name=found.metadata.name,
        driver=spec.driver,
        pool=spec.pool.name,
        generation=spec.pool.generation,
        slices_in_pool=spec.pool.resource_slice_count,
        placement=_placement(spec.node_name, spec.node_selector, spec.all_nodes),
        placed_per_device=spec.per_device_node_selection,
        devices=tuple(map(_device, spec.devices)),
        shared_counters=tuple(
            CounterSetFacts(each.name, _counters(each.counters)) for each in spec.shared_counters
        ),
    )


def compile_device_class(found: devices.DeviceClass) -> DeviceClassFacts:
    """Compile a DeviceClass."""
    spec = found.spec
    return DeviceClassFacts(
        found.metadata.name,
        _expressions(spec.selectors),
        _configs(spec.config),
        spec.extended_resource_name or "",
    )


def compile_device_claim(found: devices.ResourceClaim) -> DeviceClaimFacts:
    """Compile a ResourceClaim."""
    meta, status = found.metadata, found.status
    owner = meta.controller
    return DeviceClaimFacts(
        namespace=meta.namespace or DEFAULT_NAMESPACE,
        name=meta.name,
        uid=meta.uid or f"{meta.namespace or DEFAULT_NAMESPACE}/{meta.name}",
        spec=compile_claim_spec(found.spec),
        allocation=compile_allocation(status.allocation) if status.allocation else None,
        reserved_for=tuple(
            Consumer(each.resource, each.name, each.uid, each.api_group)
            for each in status.reserved_for
        ),
        statuses=tuple(map(_device_status, status.devices)),
        is_terminating=meta.deletion_timestamp is not None,
        owner_uid=owner.uid if owner else "",
        owner_kind=owner.kind if owner else "",
        finalizers=tuple(meta.finalizers),
        is_for_extended_resources=meta.annotations.get(EXTENDED_RESOURCE_ANNOTATION) == "true",
    )


def compile_claim_spec(spec: devices.ResourceClaimSpec) -> ClaimSpec:
    """Compile what a claim, or a template of claims, asks for."""
    return ClaimSpec(
        tuple(map(_request, spec.devices.requests)),
        tuple(
            DeviceConstraint(tuple(each.requests), each.match_attribute, each.distinct_attribute)
            for each in spec.devices.constraints
        ),
        _configs(spec.devices.config),
    )


def compile_allocation(found: devices.ClaimAllocation) -> Allocation:
    """Compile the allocation in a claim's status."""
    allocated_s = parse_time_s(found.allocation_timestamp)
    return Allocation(
        tuple(map(_allocated_device, found.devices.results)),
        _configs(found.devices.config),
        None if found.node_selector is None else _node_terms(found.node_selector),
        None if allocated_s is None else round(allocated_s * 1000),
    )


def compile_taint_rule(found: devices.DeviceTaintRule) -> DeviceTaintRule:
    """Compile a DeviceTaintRule; without `deviceSelector` it has no criteria."""
    wanted = found.spec.device_selector or devices.TaintedDevices()
    return DeviceTaintRule(
        found.metadata.name,
        _taint(found.spec.taint),
        wanted.device_class_name,
        wanted.driver,
        wanted.pool,
        wanted.device,
        _expressions(wanted.selectors),
    )


def _device(found: devices.Device) -> DeviceFacts:
    return DeviceFacts(
        name=found.name,
        attributes=tuple(_attribute(name, each) for name, each in sorted(found.attributes.items())),
        capacity=tuple(_capacity(name, each) for name, each in sorted(found.capacity.items())),
        consumes=tuple(
            CounterSetFacts(each.counter_set, _counters(each.counters))
            for each in found.consumes_counters
        ),
        placement=_placement(found.node_name, found.node_selector, found.all_nodes),
        taints=tuple(map(_taint, found.taints)),
        binds_to_node=found.binds_to_node,
        binding_conditions=tuple(found.binding_conditions),
        binding_failure_conditions=tuple(found.binding_failure_conditions),
        allows_several=found.allow_multiple_allocations,
    )


def _attribute(name: str, found: devices.DeviceAttribute) -> AttributeFacts:
    if found.int_value is not None:
        return AttributeFacts(name, "int", found.int_value)
    if found.bool_value is not None:
        return AttributeFacts(name, "bool", found.bool_value)
    if found.string_value is not None:
        return AttributeFacts(name, "string", found.string_value)
    if found.version_value is not None:
        return AttributeFacts(name, "version", found.version_value)
    return AttributeFacts(name, "", "")


def _capacity(name: str, found: devices.DeviceCapacityValue) -> DeviceCapacity:
    policy = found.request_policy
    return DeviceCapacity(name, str(found.value), _request_policy(policy) if policy else None)


def _request_policy(found: devices.CapacityRequestPolicy) -> RequestPolicy:
    limits = found.valid_range
    return RequestPolicy(
        _text(found.default),
        tuple(map(str, found.valid_values)),
        _text(limits.min) if limits else None,
        _text(limits.max) if limits else None,
        _text(limits.step) if limits else None,
    )


def _request(found: devices.ClaimDeviceRequest) -> DeviceRequest:
    alternatives = tuple(_exact(each.name, each) for each in found.first_available)
    if found.exactly is None:
        return DeviceRequest(found.name, alternatives=alternatives)
    exact = _exact(found.name, found.exactly)
    return DeviceRequest(
        exact.name,
        exact.device_class,
        exact.selectors,
        exact.mode,
        exact.count,
        exact.has_admin_access,
        exact.tolerations,
        exact.capacity,
        alternatives,
    )


def _exact(name: str, found: devices.ExactDeviceRequest) -> ExactRequest:
    """Compile a request; an absent mode and count are the API server's defaults."""
    mode = found.allocation_mode or EXACT_COUNT
    return ExactRequest(
        name=name,
        device_class=found.device_class_name,
        selectors=_expressions(found.selectors),
        mode=mode,
        count=found.count or (1 if mode == EXACT_COUNT else 0),
        has_admin_access=found.admin_access,
        tolerations=_tolerations(found.tolerations),
        capacity=None if found.capacity is None else _amounts(found.capacity.requests),
    )


def _allocated_device(found: devices.AllocationResult) -> AllocatedDevice:
    consumed = found.consumed_capacity
    return AllocatedDevice(
        found.request,
        found.driver,
        found.pool,
        found.device,
        found.admin_access,
        _tolerations(found.tolerations),
        tuple(found.binding_conditions),
        tuple(found.binding_failure_conditions),
        found.share_id,
        None if consumed is None else _amounts(consumed),
    )


def _device_status(found: devices.AllocatedDeviceStatus) -> DeviceStatus:
    conditions = tuple((each.type, each.status) for each in found.conditions)
    return DeviceStatus(found.driver, found.pool, found.device, found.share_id, conditions)


def _placement(
    node_name: str | None, selector: objects.NodeSelector | None, all_nodes: bool
) -> Placement:
    return Placement(node_name, all_nodes, None if selector is None else _node_terms(selector))


def _node_terms(selector: objects.NodeSelector) -> NodeTerms:
    """Compile a node selector; terms that parse keep the manifest's order of requirements."""
    parsed = parse_node_selector(selector)
    return tuple(
        term if term.errors else _in_order(manifest)
        for manifest, term in zip(selector.node_selector_terms, parsed, strict=True)
    )


def _in_order(term: objects.NodeSelectorTerm) -> NodeSelectorTerm:
    return NodeSelectorTerm(_requirements(term.match_expressions), _requirements(term.match_fields))


def _requirements(found: Iterable[objects.SelectorRequirement]) -> tuple[Requirement, ...]:
    return tuple(Requirement(each.key, each.operator, tuple(each.values or ())) for each in found)


def _configs(found: Iterable[devices.DeviceConfiguration]) -> tuple[DriverConfig, ...]:
    return tuple(
        DriverConfig(
            each.opaque.driver,
            json.dumps(each.opaque.parameters, separators=(",", ":"), ensure_ascii=False),
            tuple(each.requests),
            each.source,
        )
        for each in found
        if each.opaque is not None
    )


def _expressions(found: Iterable[devices.DeviceSelector]) -> tuple[str, ...]:
    return tuple(each.cel.expression for each in found)


def _taint(found: devices.DeviceTaint) -> Taint:
    return Taint(found.key, found.value, found.effect)


def _tolerations(found: Iterable[objects.Toleration]) -> tuple[Toleration, ...]:
    return tuple(Toleration(each.key, each.operator, each.value, each.effect) for each in found)


def _counters(found: Mapping[str, devices.Counter]) -> Amounts:
    return tuple((name, str(each.value)) for name, each in sorted(found.items()))


def _amounts(found: Mapping[str, Quantity]) -> Amounts:
    return tuple((name, str(each)) for name, each in sorted(found.items()))


def _text(found: Quantity | None) -> str | None:
    return None if found is None else str(found)
