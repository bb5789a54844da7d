"""Further draws of scenarios with claims: extended resources, binding conditions, full claims.

Drawn for two scenarios of five, from a generator of their own, so that those of `devices.py` stay
as they are.
"""

import random
from dataclasses import replace

from roadstead.facts.devices import (
    AllocatedDevice,
    Allocation,
    ClaimSpec,
    Consumer,
    DeviceClaimFacts,
    DeviceRequest,
    DeviceStatus,
)
from roadstead.facts.pod import UNWRITTEN_CLAIM_NAME, ExtendedRequest, PodClaim, PodReference
from roadstead.protocol.claim_bounds import CLAIM_MAX_CONSUMERS
from tests.builders import require, term
from tests.simulation.scenarios import HOSTNAME

EXTENDED_GATE, CONDITIONS_GATE = "DRAExtendedResource", "DRADeviceBindingConditions"
RESOURCES = ("served.example.com/gpu", "served.example.com/nic")
ATTACHED, BROKEN = "Attached", "Broken"


def with_gates(scenario, seed):
    """The scenario with some of these things, or as it was."""
    draw = random.Random(f"devices by gate {seed}")
    kinds = [each for each in (_extended, _conditional, _full) if draw.random() < 0.5]
    if draw.random() < 0.6:
        return scenario
    for each in kinds:
        scenario = each(scenario, draw)
    return scenario


def _with(scenario, gate=None, **devices):
    """The scenario with a gate, and with other device objects."""
    plan = scenario.plan
    settings = plan.settings
    if gate is not None:
        gates = {**settings.feature_gates, gate: True}
        settings = settings.model_copy(update={"feature_gates": gates})
    found = replace(plan.cluster.devices, **devices)
    cluster = replace(plan.cluster, devices=found)
    return replace(scenario, plan=replace(plan, settings=settings, cluster=cluster))


def _with_pods(scenario, change):
    """The scenario with the facts of each pod changed."""
    waves = (
        replace(wave, pods=tuple((who, change(who, facts)) for who, facts in wave.pods))
        for wave in scenario.waves
    )
    return replace(scenario, waves=tuple(waves))


def _extended(scenario, draw):
    """Classes serve extended resources of some pods; some nodes have these resources themselves."""
    facts = scenario.plan.cluster.devices
    # The first two classes are those of the drivers of GPUs and NICs.
    served = zip(facts.classes[:2], RESOURCES, strict=True)
    classes = tuple(replace(each, extended_resource=name) for each, name in served)
    scenario = _with(scenario, EXTENDED_GATE, classes=(*classes, *facts.classes[2:]))
    share = draw.choice((0.2, 0.5))

    def with_plugins(host):
        if draw.random() < 0.7:
            return host
        more = ((name, draw.randint(0, 3)) for name in RESOURCES if draw.random() < 0.6)
        return replace(host, allocatable=tuple(sorted((*host.allocatable, *more))))

    def requesting(who, pod):
        if draw.random() > share:
            return pod
        containers = [draw.sample(RESOURCES, draw.choice((1, 1, 2))) for _ in range(2)]
        containers = containers[: draw.choice((1, 1, 2))]
        requests = tuple(
            ExtendedRequest(f"container-{number}-request-{place}", name, draw.choice((1, 1, 2)))
            for number, names in enumerate(containers)
            for place, name in enumerate(sorted(names))
        )
        totals = {each.resource: 0 for each in requests}
        for each in requests:
            totals[each.resource] += each.count
        by_resource = tuple(sorted(requests, key=lambda each: each.resource))
        own = PodClaim(UNWRITTEN_CLAIM_NAME, extended=by_resource)
        return replace(
            pod,
            requests=tuple(sorted((*pod.requests, *totals.items()))),
            device_claims=(*pod.device_claims, own),
            claims_as=PodReference(who.uid, who.name),
        )

    hosts = tuple(map(with_plugins, scenario.nodes))
    late = (replace(e, nodes=tuple(map(with_plugins, e.nodes))) for e in scenario.waves)
    scenario = replace(scenario, nodes=hosts, waves=tuple(late))
    return _with_pods(scenario, requesting)


def _conditional(scenario, draw):
    """Some devices have binding conditions; a driver reported a failure of an allocated claim."""
    facts = scenario.plan.cluster.devices

    def perhaps(device):
        if draw.random() < 0.6:
            return device
        return replace(
            device,
            binding_conditions=(ATTACHED,),
            binding_failure_conditions=(BROKEN,),
            binds_to_node=draw.random() < 0.5,
        )

    slices = tuple(
        replace(each, devices=tuple(map(perhaps, each.devices))) for each in facts.slices
    )
    failing = [
        (each, device)
        for each in slices
        for device in each.devices
        if device.binding_conditions and each.placement.node_name and not each.shared_counters
        if not device.allows_several
    ]
    scenario = _with(scenario, CONDITIONS_GATE, slices=slices)
    if not failing:
        return scenario
    of, device = draw.choice(failing)
    status = draw.choice(((BROKEN, "True"), (ATTACHED, "True"), (ATTACHED, "False")))
    return _sharing(scenario, draw, "reported", _allocated(of, device), status)


def _full(scenario, draw):
    """A claim that one or two more pods may use, of a device that has no conditions."""
    devices = [
        (each, device)
        for each in scenario.plan.cluster.devices.slices
        for device in each.devices
        if not (device.binding_conditions or device.allows_several or each.shared_counters)
        if each.placement.node_name
    ]
    if not devices:
        return scenario
    users = CLAIM_MAX_CONSUMERS - draw.choice((0, 1, 2))
    allocation = _allocated(*draw.choice(devices))
    return _sharing(scenario, draw, "full", allocation, users=users)


def _allocated(of, device):
    """An allocation of one device of a node's slice."""
    found = AllocatedDevice(
        *("r", of.driver, of.pool, device.name),
        binding_conditions=device.binding_conditions,
        binding_failure_conditions=device.binding_failure_conditions,
    )
    here = term(require(HOSTNAME, "In", of.placement.node_name))
    return Allocation((found,), node_terms=(here,))


def _sharing(scenario, draw, name, allocation, status=None, users=0):
    """The scenario with an allocated claim, that some of the pods with claims name."""
    (device,) = allocation.results
    facts = scenario.plan.cluster.devices
    allocated = (each.allocation for each in facts.claims if each.allocation is not None)
    if any(device.id == each.id for one in allocated for each in one.results):
        return scenario
    claim = DeviceClaimFacts(
        *("default", name, f"c-{name}"),
        ClaimSpec((DeviceRequest("r", device.driver),)),
        allocation=allocation,
        reserved_for=tuple(Consumer("pods", f"u{n}", f"uid-u{n}") for n in range(users)),
        statuses=() if status is None else (DeviceStatus(*device.id, None, (status,)),),
    )
    share = draw.choice((0.2, 0.5))

    def perhaps(who, pod):
        # Of a gang, one member after the other could be refused.
        if not pod.device_claims or pod.pod_group or draw.random() > share:
            return pod
        return replace(pod, device_claims=(PodClaim(name, claim_name=name), *pod.device_claims))

    return _with_pods(_with(scenario, claims=(*facts.claims, claim)), perhaps)
