"""Compilation of manifests to facts of devices.

A `Placement` is here the nodes that reach a device or slice. The requirements of its node selector
keep the order of the manifest, because an allocation repeats them.

Upstream: pkg/apis/resource/types.go.
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
"""Annotation of a claim that the scheduler created for the extended resources of a pod."""


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


def compile_slice(manifest: devices.ResourceSlice) -> SliceFacts:
    """Compile a ResourceSlice."""
    spec = manifest.spec
    return SliceFacts(
        name=manifest.metadata.name,
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


def compile_device_class(manifest: devices.DeviceClass) -> DeviceClassFacts:
    """Compile a DeviceClass."""
    spec = manifest.spec
    return DeviceClassFacts(
        manifest.metadata.name,
        _expressions(spec.selectors),
        _configs(spec.config),
        spec.extended_resource_name or "",
    )


def compile_device_claim(manifest: devices.ResourceClaim) -> DeviceClaimFacts:
    """Compile a ResourceClaim."""
    meta, status = manifest.metadata, manifest.status
    owner = meta.controller
    return DeviceClaimFacts(
        namespace=meta.namespace or DEFAULT_NAMESPACE,
        name=meta.name,
        uid=meta.uid or f"{meta.namespace or DEFAULT_NAMESPACE}/{meta.name}",
        spec=compile_claim_spec(manifest.spec),
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
    """Compile the spec of a claim, or of a template of claims."""
    return ClaimSpec(
        tuple(map(_request, spec.devices.requests)),
        tuple(
            DeviceConstraint(tuple(each.requests), each.match_attribute, each.distinct_attribute)
            for each in spec.devices.constraints
        ),
        _configs(spec.devices.config),
    )


def compile_allocation(manifest: devices.ClaimAllocation) -> Allocation:
    """Compile the allocation in a claim's status."""
    allocated_s = parse_time_s(manifest.allocation_timestamp)
    return Allocation(
        tuple(map(_allocated_device, manifest.devices.results)),
        _configs(manifest.devices.config),
        None if manifest.node_selector is None else _node_terms(manifest.node_selector),
        None if allocated_s is None else round(allocated_s * 1000),
    )


def compile_taint_rule(manifest: devices.DeviceTaintRule) -> DeviceTaintRule:
    """Compile a DeviceTaintRule; without `deviceSelector` it matches all devices."""
    criteria = manifest.spec.device_selector or devices.TaintedDevices()
    return DeviceTaintRule(
        manifest.metadata.name,
        _taint(manifest.spec.taint),
        criteria.device_class_name,
        criteria.driver,
        criteria.pool,
        criteria.device,
        _expressions(criteria.selectors),
    )


def _device(manifest: devices.Device) -> DeviceFacts:
    return DeviceFacts(
        name=manifest.name,
        attributes=tuple(
            _attribute(name, each) for name, each in sorted(manifest.attributes.items())
        ),
        capacity=tuple(_capacity(name, each) for name, each in sorted(manifest.capacity.items())),
        consumes=tuple(
            CounterSetFacts(each.counter_set, _counters(each.counters))
            for each in manifest.consumes_counters
        ),
        placement=_placement(manifest.node_name, manifest.node_selector, manifest.all_nodes),
        taints=tuple(map(_taint, manifest.taints)),
        binds_to_node=manifest.binds_to_node,
        binding_conditions=tuple(manifest.binding_conditions),
        binding_failure_conditions=tuple(manifest.binding_failure_conditions),
        allows_several=manifest.allow_multiple_allocations,
    )


def _attribute(name: str, manifest: devices.DeviceAttribute) -> AttributeFacts:
    if manifest.int_value is not None:
        return AttributeFacts(name, "int", manifest.int_value)
    if manifest.bool_value is not None:
        return AttributeFacts(name, "bool", manifest.bool_value)
    if manifest.string_value is not None:
        return AttributeFacts(name, "string", manifest.string_value)
    if manifest.version_value is not None:
        return AttributeFacts(name, "version", manifest.version_value)
    return AttributeFacts(name, kind="", value="")


def _capacity(name: str, manifest: devices.DeviceCapacityValue) -> DeviceCapacity:
    policy = manifest.request_policy
    return DeviceCapacity(name, str(manifest.value), _request_policy(policy) if policy else None)


def _request_policy(manifest: devices.CapacityRequestPolicy) -> RequestPolicy:
    valid_range = manifest.valid_range
    return RequestPolicy(
        _quantity_text(manifest.default),
        tuple(map(str, manifest.valid_values)),
        _quantity_text(valid_range.min) if valid_range else None,
        _quantity_text(valid_range.max) if valid_range else None,
        _quantity_text(valid_range.step) if valid_range else None,
    )


def _request(manifest: devices.ClaimDeviceRequest) -> DeviceRequest:
    alternatives = tuple(_exact(each.name, each) for each in manifest.first_available)
    if manifest.exactly is None:
        return DeviceRequest(manifest.name, alternatives=alternatives)
    exact = _exact(manifest.name, manifest.exactly)
    return DeviceRequest(
        exact.name,
        exact.device_class,
        exact.selectors,
        exact.mode,
        exact.count,
        manifest.exactly.admin_access,
        exact.tolerations,
        exact.capacity,
        alternatives,
    )


def _exact(name: str, manifest: devices.RequestedDevices) -> ExactRequest:
    """Compile a request; mode and count get the API server's defaults if they are absent."""
    mode = manifest.allocation_mode or EXACT_COUNT
    return ExactRequest(
        name=name,
        device_class=manifest.device_class_name,
        selectors=_expressions(manifest.selectors),
        mode=mode,
        count=manifest.count or (1 if mode == EXACT_COUNT else 0),
        tolerations=_tolerations(manifest.tolerations),
        capacity=None if manifest.capacity is None else _amounts(manifest.capacity.requests),
    )


def _allocated_device(manifest: devices.DeviceRequestAllocationResult) -> AllocatedDevice:
    consumed = manifest.consumed_capacity
    return AllocatedDevice(
        manifest.request,
        manifest.driver,
        manifest.pool,
        manifest.device,
        manifest.admin_access,
        _tolerations(manifest.tolerations),
        tuple(manifest.binding_conditions),
        tuple(manifest.binding_failure_conditions),
        manifest.share_id,
        None if consumed is None else _amounts(consumed),
    )


def _device_status(manifest: devices.AllocatedDeviceStatus) -> DeviceStatus:
    conditions = tuple((each.type, each.status) for each in manifest.conditions)
    return DeviceStatus(
        manifest.driver, manifest.pool, manifest.device, manifest.share_id, conditions
    )


def _placement(
    node_name: str | None, selector: objects.NodeSelector | None, all_nodes: bool
) -> Placement:
    return Placement(node_name, all_nodes, None if selector is None else _node_terms(selector))


def _node_terms(selector: objects.NodeSelector) -> NodeTerms:
    """Compile a node selector; terms that parse keep the manifest's order of requirements."""
    parsed = parse_node_selector(selector)
    return tuple(
        term if term.errors else _unsorted_term(manifest)
        for manifest, term in zip(selector.node_selector_terms, parsed, strict=True)
    )


def _unsorted_term(term: objects.NodeSelectorTerm) -> NodeSelectorTerm:
    return NodeSelectorTerm(_requirements(term.match_expressions), _requirements(term.match_fields))


def _requirements(manifest: Iterable[objects.SelectorRequirement]) -> tuple[Requirement, ...]:
    return tuple(
        Requirement(each.key, each.operator, tuple(each.values or ())) for each in manifest
    )


def _configs(manifest: Iterable[devices.DeviceConfiguration]) -> tuple[DriverConfig, ...]:
    return tuple(
        DriverConfig(
            each.opaque.driver,
            json.dumps(each.opaque.parameters, separators=(",", ":"), ensure_ascii=False),
            tuple(each.requests),
            each.source,
        )
        for each in manifest
        if each.opaque is not None
    )


def _expressions(manifest: Iterable[devices.DeviceSelector]) -> tuple[str, ...]:
    """Return the CEL expressions of selectors."""
    return tuple(each.cel.expression for each in manifest)


def _taint(manifest: devices.DeviceTaint) -> Taint:
    return Taint(manifest.key, manifest.value, manifest.effect)


def _tolerations(manifest: Iterable[objects.Toleration]) -> tuple[Toleration, ...]:
    return tuple(Toleration(each.key, each.operator, each.value, each.effect) for each in manifest)


def _counters(manifest: Mapping[str, devices.Counter]) -> Amounts:
    return tuple((name, str(each.value)) for name, each in sorted(manifest.items()))


def _amounts(manifest: Mapping[str, Quantity]) -> Amounts:
    return tuple((name, str(each)) for name, each in sorted(manifest.items()))


def _quantity_text(manifest: Quantity | None) -> str | None:
    return None if manifest is None else str(manifest)
