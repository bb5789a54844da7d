"""The API server's checks of slices, classes, claims, templates and taint rules of devices.

Bounds of single fields are in the models. Expressions are compiled here, so that a wrong or too
costly one is refused with its field. Upstream: pkg/apis/resource/validation/validation.go.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from roadstead.facts.parse_selectors import parse_node_selector
from roadstead.facts.selectors import selector_error
from roadstead.manifests.device_policies import (
    capacity_problems,
    condition_problems,
    counter_problems,
    counter_set_problems,
)
from roadstead.manifests.field_problem import FieldProblem, Path
from roadstead.manifests.field_problem import problem_at as _problem
from roadstead.protocol.names import (
    dns_label_errors,
    is_extended_resource,
    label_value_errors,
    qualified_name_errors,
    subdomain_errors,
)
from roadstead.protocol.objects import (
    ApiObject,
    DeviceClass,
    DeviceTaintRule,
    NodeSelector,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
    Toleration,
)
from roadstead.protocol.objects.devices import (
    DEVICE_MAX_VALUES,
    PARAMETERS_MAX_BYTES,
    ClaimDeviceRequest,
    ClaimDevices,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceClassSpec,
    DeviceConfiguration,
    DeviceSelector,
    DeviceTaint,
    OpaqueConfiguration,
    RequestedDevices,
    ResourceSliceSpec,
)

MAX_COST = 1_000_000
"""Estimated cost above which the API server refuses an expression."""

SLICE_MAX_COUNTERS = 32
DRIVER_MAX_CHARS = 63
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,31}")
_SEMVER = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(-(0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)(\.(0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*))*)?"
    r"(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?",
    re.ASCII,
)
# A placement is a field that names the nodes which may use the devices.
_ONE_PLACEMENT = (
    "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
)


def device_problem(obj: ApiObject) -> FieldProblem | None:
    """Return the first problem of an object of resource.k8s.io; None for any other object."""
    if isinstance(obj, ResourceSlice):
        problems = _slice_problems(obj.spec)
    elif isinstance(obj, DeviceClass):
        problems = _below(("spec",), _class_problems(obj.spec))
    elif isinstance(obj, ResourceClaim):
        problems = _below(("spec", "devices"), _claim_problems(obj.spec.devices))
    elif isinstance(obj, ResourceClaimTemplate):
        devices = obj.spec.spec.devices
        problems = _below(("spec", "spec", "devices"), _claim_problems(devices))
    elif isinstance(obj, DeviceTaintRule):
        problems = _rule_problems(obj)
    else:
        return None
    return next(iter(problems), None)


def _below(path: Path, problems: Iterable[FieldProblem]) -> Iterator[FieldProblem]:
    """Yield problems of the value at `path`: put `path` before each problem's field."""
    for problem in problems:
        yield problem.below(*path)


def _slice_problems(spec: ResourceSliceSpec) -> Iterator[FieldProblem]:
    yield from _name_problems(("spec", "driver"), spec.driver, subdomain_errors(spec.driver))
    if len(spec.driver) > DRIVER_MAX_CHARS:
        rule = f"must be no more than {DRIVER_MAX_CHARS} characters"
        yield _problem(("spec", "driver"), spec.driver, rule)
    for part in spec.pool.name.split("/"):
        yield from _name_problems(("spec", "pool", "name"), spec.pool.name, subdomain_errors(part))
    if not spec.pool.resource_slice_count:
        path = ("spec", "pool", "resourceSliceCount")
        yield _problem(path, spec.pool.resource_slice_count, "must be greater than zero")
    placements = (
        bool(spec.node_name),
        spec.node_selector is not None,
        spec.all_nodes,
        bool(spec.per_device_node_selection),
    )
    if sum(placements) != 1:
        yield _problem(("spec",), f"{sum(placements)} of them are set", _ONE_PLACEMENT)
    yield from _node_name_problems(("spec", "nodeName"), spec.node_name)
    yield from _selector_problems(("spec", "nodeSelector"), spec.node_selector)
    for index, each in enumerate(spec.shared_counters):
        yield from _below(("spec", "sharedCounters", index), counter_set_problems(each))
    counter_sets = {each.name: each for each in spec.shared_counters}
    yield from _unique(("spec", "sharedCounters"), [each.name for each in spec.shared_counters])
    counter_count = sum(len(each.counters) for each in spec.shared_counters)
    if counter_count > SLICE_MAX_COUNTERS:
        rule = f"must have no more than {SLICE_MAX_COUNTERS} counters in total"
        yield _problem(("spec", "sharedCounters"), counter_count, rule)
    yield from _unique(("spec", "devices"), [each.name for each in spec.devices])
    for index, device in enumerate(spec.devices):
        yield from _below(("spec", "devices", index), _device_problems(device, spec, counter_sets))


def _device_problems(
    device: Device, spec: ResourceSliceSpec, counter_sets: dict[str, CounterSet]
) -> Iterator[FieldProblem]:
    yield from _name_problems(("name",), device.name, dns_label_errors(device.name))
    if len(device.attributes) + len(device.capacity) > DEVICE_MAX_VALUES:
        rule = f"a device has no more than {DEVICE_MAX_VALUES} attributes and capacities"
        yield _problem(("attributes",), len(device.attributes) + len(device.capacity), rule)
    for name, attribute in device.attributes.items():
        yield from _value_name_problems(("attributes", name), name)
        yield from _attribute_problems(("attributes", name), attribute)
    for name, capacity in device.capacity.items():
        yield from _value_name_problems(("capacity", name), name)
        problems = capacity_problems(capacity, is_shared=device.allow_multiple_allocations)
        yield from _below(("capacity", name), problems)
    placements = bool(device.node_name), device.node_selector is not None, device.all_nodes
    if spec.per_device_node_selection and sum(placements) != 1:
        rule = "exactly one of `nodeName`, `nodeSelector`, `allNodes` is required"
        yield _problem(("name",), device.name, rule)
    if any(placements) and not spec.per_device_node_selection:
        rule = "may have a placement of its own only with `perDeviceNodeSelection`"
        yield _problem(("name",), device.name, rule)
    yield from _node_name_problems(("nodeName",), device.node_name)
    yield from _selector_problems(("nodeSelector",), device.node_selector)
    yield from condition_problems(device)
    sets = [each.counter_set for each in device.consumes_counters]
    yield from _unique(("consumesCounters",), sets, "counterSet")
    for index, consumed in enumerate(device.consumes_counters):
        path: Path = ("consumesCounters", index)
        shared = counter_sets.get(consumed.counter_set)
        if shared is None:
            yield _problem((*path, "counterSet"), consumed.counter_set, "is not in sharedCounters")
            continue
        yield from _below(path, counter_problems(consumed.counters))
        for name in consumed.counters:
            if name not in shared.counters:
                rule = f"counter set {shared.name} has no such counter"
                yield _problem((*path, "counters", name), name, rule)
    for index, taint in enumerate(device.taints):
        yield from _below(("taints", index), _taint_problems(taint))


def _attribute_problems(path: Path, attribute: DeviceAttribute) -> Iterator[FieldProblem]:
    values = (
        attribute.int_value,
        attribute.bool_value,
        attribute.string_value,
        attribute.version_value,
    )
    if sum(each is not None for each in values) != 1:
        rule = "exactly one of `int`, `bool`, `string`, `version` is required"
        yield _problem(path, [each for each in values if each is not None], rule)
    if attribute.version_value is not None and not _SEMVER.fullmatch(attribute.version_value):
        rule = "must be a version of semver.org 2.0.0"
        yield _problem((*path, "version"), attribute.version_value, rule)


def _value_name_problems(path: Path, name: str) -> Iterator[FieldProblem]:
    """Yield problems of the name of an attribute or capacity, with or without a domain."""
    domain, slash, identifier = name.rpartition("/")
    if slash:
        yield from _name_problems(path, name, subdomain_errors(domain))
    if not _IDENTIFIER.fullmatch(identifier):
        rule = "must be a C identifier of no more than 32 characters"
        yield _problem(path, name, rule)


def _class_problems(spec: DeviceClassSpec) -> Iterator[FieldProblem]:
    yield from _expression_problems(spec.selectors)
    yield from _config_problems(spec.config, requests=None)
    name = spec.extended_resource_name
    if name is not None and not is_extended_resource(name):
        yield _problem(("extendedResourceName",), name, "must be a valid extended resource name")


def _claim_problems(devices: ClaimDevices) -> Iterator[FieldProblem]:
    yield from _unique(("requests",), [each.name for each in devices.requests])
    names: set[str] = set()
    for index, request in enumerate(devices.requests):
        yield from _below(("requests", index), _request_problems(request))
        alternatives = (each.name for each in request.first_available)
        names |= {request.name, *(f"{request.name}/{each}" for each in alternatives)}
    for index, constraint in enumerate(devices.constraints):
        path: Path = ("constraints", index)
        yield from _unknown_requests((*path, "requests"), constraint.requests, names)
        attributes = constraint.match_attribute, constraint.distinct_attribute
        named = [each for each in attributes if each is not None]
        if len(named) != 1:
            rule = "exactly one of `matchAttribute`, `distinctAttribute` is required"
            yield _problem(path, named, rule)
        for name in named:
            yield from _value_name_problems(path, name)
            if "/" not in name:
                yield _problem(path, name, "must be a fully qualified name, with a domain")
    yield from _config_problems(devices.config, names)


def _request_problems(request: ClaimDeviceRequest) -> Iterator[FieldProblem]:
    yield from _name_problems(("name",), request.name, dns_label_errors(request.name))
    if (request.exactly is None) == (not request.first_available):
        rule = "exactly one of `exactly`, `firstAvailable` is required"
        yield _problem(("name",), request.name, rule)
    if request.exactly is not None:
        yield from _below(("exactly",), _exact_problems(request.exactly))
    yield from _unique(("firstAvailable",), [each.name for each in request.first_available])
    for index, each in enumerate(request.first_available):
        path: Path = ("firstAvailable", index)
        yield from _name_problems((*path, "name"), each.name, dns_label_errors(each.name))
        yield from _below(path, _exact_problems(each))


def _exact_problems(requested: RequestedDevices) -> Iterator[FieldProblem]:
    name = requested.device_class_name
    yield from _name_problems(("deviceClassName",), name, subdomain_errors(name))
    if requested.allocation_mode == "All" and requested.count:
        yield _problem(("count",), requested.count, "must not be given with allocationMode All")
    yield from _expression_problems(requested.selectors)
    for index, toleration in enumerate(requested.tolerations):
        yield from _below(("tolerations", index), _toleration_problems(toleration))
    if requested.capacity is not None:
        for name in requested.capacity.requests:
            yield from _value_name_problems(("capacity", "requests", name), name)


def _config_problems(
    configs: Sequence[DeviceConfiguration], requests: set[str] | None
) -> Iterator[FieldProblem]:
    """Yield problems of configurations. requests: their names; None for a device class."""
    for index, each in enumerate(configs):
        path: Path = ("config", index)
        if each.opaque is None:
            yield _problem((*path, "opaque"), "", "is required")
        else:
            yield from _below((*path, "opaque"), _opaque_problems(each.opaque))
        if requests is not None:
            yield from _unknown_requests((*path, "requests"), each.requests, requests)


def _opaque_problems(config: OpaqueConfiguration) -> Iterator[FieldProblem]:
    yield from _name_problems(("driver",), config.driver, subdomain_errors(config.driver))
    if "parameters" not in config.model_fields_set:
        yield _problem(("parameters",), "", "is required")
    size = len(json.dumps(config.parameters, ensure_ascii=False, separators=(",", ":")).encode())
    if size > PARAMETERS_MAX_BYTES:
        rule = f"must be no more than {PARAMETERS_MAX_BYTES} bytes"
        yield _problem(("parameters",), f"{size} bytes", rule)


def _toleration_problems(toleration: Toleration) -> Iterator[FieldProblem]:
    """Yield problems of a toleration of devices; an empty key needs no operator Exists."""
    if toleration.key:
        yield from _name_problems(("key",), toleration.key, qualified_name_errors(toleration.key))
    if toleration.operator == "Exists" and toleration.value:
        yield _problem(("value",), toleration.value, "must be empty for operator `Exists`")
    yield from _name_problems(("value",), toleration.value, label_value_errors(toleration.value))
    if toleration.effect == "PreferNoSchedule":
        yield _problem(("effect",), toleration.effect, "must be NoSchedule or NoExecute")


def _unknown_requests(
    path: Path, named: Sequence[str], of_claim: set[str]
) -> Iterator[FieldProblem]:
    """Yield the names at a path that are not among the names of the claim's requests."""
    yield from _unique(path, named, "")
    for index, each in enumerate(named):
        if each not in of_claim:
            yield _problem((*path, index), each, "must be the name of a request in the claim")


def _expression_problems(selectors: Sequence[DeviceSelector]) -> Iterator[FieldProblem]:
    for index, each in enumerate(selectors):
        if rule := expression_error(each.cel.expression):
            yield _problem(("selectors", index, "cel", "expression"), each.cel.expression, rule)


@lru_cache(maxsize=4096)
def expression_error(expression: str) -> str:
    """Return why the API server refuses an expression; "" if it does not."""
    # Imported here: few manifests have expressions, and the compiler is large.
    from roadstead.cel.errors import CelCompileError
    from roadstead.cel.selector import compile_selector

    try:
        cost = compile_selector(expression).max_cost
    except CelCompileError as error:
        return str(error)
    if cost > MAX_COST:
        return f"is too complex: its estimated cost {cost:,} exceeds the limit of {MAX_COST:,}"
    return ""


def _rule_problems(rule: DeviceTaintRule) -> Iterator[FieldProblem]:
    yield from _below(("spec", "taint"), _taint_problems(rule.spec.taint))
    if rule.spec.device_selector is not None:
        problems = _expression_problems(rule.spec.device_selector.selectors)
        yield from _below(("spec", "deviceSelector"), problems)


def _taint_problems(taint: DeviceTaint) -> Iterator[FieldProblem]:
    yield from _name_problems(("key",), taint.key, qualified_name_errors(taint.key))
    yield from _name_problems(("value",), taint.value, label_value_errors(taint.value))
    if not taint.effect:
        yield _problem(("effect",), "", "is required")


def _selector_problems(path: Path, selector: NodeSelector | None) -> Iterator[FieldProblem]:
    if selector is not None and len(selector.node_selector_terms) != 1:
        rule = "must have exactly one node selector term"
        yield _problem((*path, "nodeSelectorTerms"), len(selector.node_selector_terms), rule)
    elif selector is not None and (error := selector_error(parse_node_selector(selector))):
        # The error is `FIELD: RULE`, with the value in quotes.
        field, _, rule = error.partition(": ")
        value = rule.partition('"')[2].partition('"')[0]
        yield FieldProblem(field, value, (rule,)).below(*path)


def _node_name_problems(path: Path, name: str | None) -> Iterator[FieldProblem]:
    if name:
        yield from _name_problems(path, name, subdomain_errors(name))


def _name_problems(path: Path, name: str, rules: tuple[str, ...]) -> Iterator[FieldProblem]:
    if rules:
        yield _problem(path, name, *rules)


def _unique(path: Path, names: Sequence[str], field: str = "name") -> Iterator[FieldProblem]:
    """Yield names that occur twice. field: of the name in its item; "" for lists of names."""
    earlier: set[str] = set()
    for index, name in enumerate(names):
        if name in earlier:
            yield _problem((*path, index, *([field] if field else ())), name, "must be unique")
        earlier.add(name)
