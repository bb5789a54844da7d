"""I2: the devices of a new allocation are those that the claim requests, on the node of its pod.

An allocation is checked in the commit that writes it, against slices, classes, taints and the node
as earlier records describe them. Of the alternatives of a request, any may be chosen. A share of a
device that several claims may use has a `share_id`; a whole device has None.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from roadstead.facts.devices import (
    ALL_DEVICES,
    EXACT_COUNT,
    AllocatedDevice,
    AttributeFacts,
    DeviceClaimFacts,
    DeviceConstraint,
    DeviceFacts,
    DeviceRequest,
    ExactRequest,
)
from roadstead.facts.node import NodeFacts
from roadstead.facts.selectors import NodeSelectorTerm
from roadstead.facts.taints import tolerated
from roadstead.invariants.device_capacity import capacity_errors
from roadstead.invariants.device_inventory import (
    ADMIN_ACCESS,
    BINDING_CONDITIONS,
    CONSUMABLE,
    PARTITIONABLE,
    PRIORITIZED_LIST,
    TAINTS,
    DeviceId,
    Inventory,
    ReachedDevices,
    first_unmet,
)

RESULTS_MAX = 32
"""Maximum number of devices in one claim (upstream's AllocationResultsMaxSize)."""

_Need = tuple[str, str, frozenset[str]]
"""Key, operator and values of a requirement."""


@dataclass(frozen=True, slots=True)
class _Form:
    """One way to satisfy a request: the request itself, or an alternative of it, with its devices.

    name: as results state it. facts: the request or alternative. matched: `facts`, or the
    alternative whose selectors kube-scheduler compares instead, by its mistake (`_forms_of`).
    number: how many devices the form must have; None for all that match. results: the devices that
    it has.
    """

    name: str
    facts: ExactRequest
    matched: ExactRequest
    number: int | None
    results: Sequence[AllocatedDevice]


def allocation_errors(
    claim: DeviceClaimFacts, node: NodeFacts, inventory: Inventory
) -> Iterator[str]:
    """Yield why a claim must not have been allocated as it is to a pod on a node."""
    assert claim.allocation is not None
    results = claim.allocation.results
    reached = inventory.reached_from(node)
    if len(results) > RESULTS_MAX:
        yield f"has {len(results)} devices, {RESULTS_MAX} at the most are allowed"
    yield from _doubled(results)
    of_request: dict[str, list[AllocatedDevice]] = {each.name: [] for each in claim.spec.requests}
    for each in results:
        name = each.request.partition("/")[0]
        if name not in of_request:
            yield f"has device {_text(each.id)} for request {each.request}, which it does not make"
        else:
            of_request[name].append(each)
    for request in claim.spec.requests:
        yield from _gate_errors(request, inventory)
        yield from _request_errors(request, of_request[request.name], reached, inventory)
    for number, constraint in enumerate(claim.spec.constraints):
        for text in _constraint_errors(constraint, results, reached):
            yield f"violates constraint #{number}: {text}"
    yield from _reach_errors(claim, node, reached)


def _doubled(results: Sequence[AllocatedDevice]) -> Iterator[str]:
    counted = Counter(each.id for each in results if each.share_id is None)
    for device_id, number in counted.items():
        if number > 1:
            yield f"has device {_text(device_id)} {number} times"


def _gate_errors(request: DeviceRequest, inventory: Inventory) -> Iterator[str]:
    """Yield the gates that a request needs and that are off."""
    forms: Sequence[ExactRequest] = request.alternatives or (request,)
    needed = {
        PRIORITIZED_LIST: bool(request.alternatives),
        ADMIN_ACCESS: not request.alternatives and request.has_admin_access,
        CONSUMABLE: any(each.capacity is not None for each in forms),
    }
    for gate, is_needed in needed.items():
        if is_needed and inventory.is_off(gate):
            yield f"has devices for request {request.name}, which needs {gate}"


def _request_errors(
    request: DeviceRequest,
    results: Sequence[AllocatedDevice],
    reached: ReachedDevices,
    inventory: Inventory,
) -> Iterator[str]:
    """Yield why the devices of a request are not those that it asks for."""
    forms = _forms_of(request, results)
    if sum(len(each.results) for each in forms) != len(results):
        names = ", ".join(sorted({each.request for each in results}))
        yield f"has devices for {names}, which are not one way to satisfy request {request.name}"
        return
    for form in forms:
        for result in form.results:
            for text in _device_errors(form, result, reached, inventory):
                yield f"has device {_text(result.id)} for request {form.name}, which {text}"
        if form.number is None:
            yield from _all_errors(form, reached, inventory)
        elif form.number != len(form.results):
            number = len(form.results)
            yield f"has {number} devices for request {form.name}, which asks for {form.number}"


def _forms_of(request: DeviceRequest, results: Sequence[AllocatedDevice]) -> list[_Form]:
    """Return the form of a request that was chosen; in one case two, by a mistake of upstream.

    If an alternative with mode All is chosen that is not the first one, kube-scheduler 1.34
    allocates one device for it, and then continues as if that had been the first device of the
    first alternative: it allocates the second and later devices of that one.
    """
    if not request.alternatives:
        return [_form(request.name, request, results, _number(request))]
    named = {f"{request.name}/{each.name}": each for each in request.alternatives}
    chosen = [name for name in named if any(each.request == name for each in results)]
    first_name, first = next(iter(named.items()))
    name = chosen[-1] if chosen else first_name
    if name == first_name or named[name].mode != ALL_DEVICES:
        return [_form(name, named[name], results, _number(named[name]))]
    is_second = named[name] is request.alternatives[1]
    matched = first if is_second and first.mode == ALL_DEVICES else named[name]
    others = [each for each in results if each.request == first_name]
    remaining = len(others) if first.mode == ALL_DEVICES else first.count - 1
    return [
        _form(name, named[name], results, 1, matched=matched),
        _form(first_name, first, results, remaining),
    ]


def _form(
    name: str,
    facts: ExactRequest,
    results: Sequence[AllocatedDevice],
    number: int | None,
    *,
    matched: ExactRequest | None = None,
) -> _Form:
    own = [each for each in results if each.request == name]
    return _Form(name, facts, matched or facts, number, own)


def _number(request: ExactRequest) -> int | None:
    return request.count if request.mode == EXACT_COUNT else None


def _device_errors(
    form: _Form, result: AllocatedDevice, reached: ReachedDevices, inventory: Inventory
) -> Iterator[str]:
    """Yield what is wrong with one device of a request."""
    facts = form.facts
    if result.has_admin_access != facts.has_admin_access:
        yield "has admin access" if result.has_admin_access else "has no admin access"
    device = reached.devices.get(result.id)
    if device is None:
        newest = reached.outdated.get(result.id)
        if newest is not None:
            yield f"is not in generation {newest} of its pool"
        elif result.id in inventory.devices:
            yield "the node does not reach"
        return
    if result.id[:2] in reached.invalid:
        yield "is in a pool with two devices of one name"
    unmet = _unmet_selector(form.matched, result.driver, device, inventory)
    if unmet is not None:
        yield unmet
    if inventory.is_on(TAINTS):
        for taint in inventory.taints_of(result.driver, result.pool, device):
            if not tolerated(taint, facts.tolerations):
                yield f"has the taint {taint.key}, which is not tolerated"
    # Upstream's search does not see devices that use a feature whose gate is off.
    if device.consumes and inventory.is_off(PARTITIONABLE):
        yield f"consumes counters, which needs {PARTITIONABLE}"
    if device.binding_conditions and inventory.is_off(BINDING_CONDITIONS):
        yield f"has binding conditions, which needs {BINDING_CONDITIONS}"
    if inventory.is_on(CONSUMABLE):
        yield from capacity_errors(device, facts.capacity or (), result)
    elif result.share_id is not None and inventory.is_off(CONSUMABLE):
        yield f"is shared, which needs {CONSUMABLE}"


def _unmet_selector(
    request: ExactRequest, driver: str, device: DeviceFacts, inventory: Inventory
) -> str | None:
    """Return how a device fails a selector of the class or the request; None if it matches."""
    device_class = inventory.classes.get(request.device_class)
    if device_class is None:
        return f"is to be of class {request.device_class}, which is not there"
    unmet = first_unmet(device_class.selectors, driver, device)
    if unmet is not None:
        return f"{unmet} of class {device_class.name}"
    unmet = first_unmet(request.selectors, driver, device)
    return None if unmet is None else f"{unmet} of the request"


def _all_errors(form: _Form, reached: ReachedDevices, inventory: Inventory) -> Iterator[str]:
    """Yield why a request for all devices does not have all that match on the node."""
    if inventory.gates is None:
        return
    if not form.results:
        yield f"has no device for request {form.name}, which asks for all"
    for pool in reached.incomplete:
        text = f"{form.name}, which asks for all, while slices of pool {'/'.join(pool)} are missing"
        yield f"has devices for request {text}"
    has = {each.id for each in form.results}
    for device_id, device in reached.devices.items():
        if device_id in has:
            continue
        if device.binding_conditions and inventory.is_off(BINDING_CONDITIONS):
            continue
        # Other claims may use up the capacity of such a device. This check does not compute what is
        # left, so it accepts that the claim does not have the device.
        if device.capacity and inventory.is_on(CONSUMABLE):
            continue
        if _unmet_selector(form.matched, device_id[0], device, inventory) is None:
            text = f"request {form.name}, which asks for all"
            yield f"does not have device {_text(device_id)} for {text}"


def _constraint_errors(
    constraint: DeviceConstraint, results: Sequence[AllocatedDevice], reached: ReachedDevices
) -> Iterator[str]:
    """Yield how devices violate a constraint.

    Of distinctAttribute, kube-scheduler 1.34 only demands that devices have the attribute.
    """
    name = constraint.match_attribute or constraint.distinct_attribute or ""
    concerned = [each for each in results if _concerns(constraint, each.request)]
    values = set()
    for each in concerned:
        device = reached.devices.get(each.id)
        if device is None:
            continue
        attribute = _attribute(device, each.driver, name)
        if attribute is None:
            yield f"device {_text(each.id)} has no attribute {name}"
        else:
            values.add((attribute.kind, attribute.value))
    # As upstream: the value of each device after the first is compared with that of the first, and
    # an attribute without a value fails only in a comparison.
    if constraint.match_attribute is not None and len(concerned) > 1:
        if len(values) > 1:
            yield f"devices differ in attribute {name}"
        elif any(not kind for kind, _ in values):
            yield f"attribute {name} has no value"


def _concerns(constraint: DeviceConstraint, request: str) -> bool:
    """Whether a constraint is for a request, which may be an alternative (`request/name`)."""
    names = {request, request.partition("/")[0]}
    return not constraint.requests or not names.isdisjoint(constraint.requests)


def _attribute(device: DeviceFacts, driver: str, name: str) -> AttributeFacts | None:
    """Return an attribute by its full name; a name without a domain is in the driver's domain."""
    names = [name]
    if name.startswith(f"{driver}/"):
        names.append(name.removeprefix(f"{driver}/"))
    for each in names:
        attribute = next((has for has in device.attributes if has.name == each), None)
        if attribute is not None:
            return attribute
    return None


def _reach_errors(
    claim: DeviceClaimFacts, node: NodeFacts, reached: ReachedDevices
) -> Iterator[str]:
    """Yield why the allocation's node selector allows nodes that do not reach its devices."""
    assert claim.allocation is not None
    needed: set[_Need] = set()
    for each in claim.allocation.results:
        device, place = reached.devices.get(each.id), reached.placements.get(each.id)
        if device is None or place is None:
            continue
        if place.node_name is not None or device.binds_to_node:
            needed = {("metadata.name", "In", frozenset((node.name,)))}
            break
        for term in place.terms or ():
            needed |= _needs(term)
    terms = claim.allocation.node_terms
    if needed and (terms is None or not all(needed <= _needs(term) for term in terms)):
        yield "has a node selector that allows nodes which do not reach its devices"


def _needs(term: NodeSelectorTerm) -> set[_Need]:
    needs = (*term.expressions, *term.fields)
    return {(each.key, each.operator, frozenset(each.values)) for each in needs}


def _text(device_id: DeviceId) -> str:
    return "/".join(device_id)
