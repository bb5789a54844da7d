"""Scenarios with claims of devices: few devices, claims from templates and shared ones.

Drawn from a generator of their own, like `wide.py`. Devices of nodes, of a zone and of all nodes;
partitions that share counters; devices of which several claims consume a capacity; taints; claims
that were never made, that name no device of the fleet, or whose allocation no node reaches.
"""

import random
from dataclasses import replace

from roadstead.facts.devices import (
    ALL_DEVICES,
    Allocation,
    AttributeFacts,
    ClaimSpec,
    CounterSetFacts,
    DeviceCapacity,
    DeviceClaimFacts,
    DeviceClassFacts,
    DeviceConstraint,
    DeviceFacts,
    DeviceRequest,
    DevicesFacts,
    ExactRequest,
    Placement,
    RequestPolicy,
    SliceFacts,
)
from roadstead.facts.pod import PodClaim, PodIdentity, PodReference
from roadstead.facts.taints import Taint, Toleration
from tests.builders import pod, require, term
from tests.simulation.scenarios import HOSTNAME, ZONE, ZONES, Wave

GPU, NIC, SLOTS, SHARED = (f"{name}.example.com" for name in ("gpu", "nic", "partition", "shared"))
DRIVERS = (GPU, NIC, SLOTS, SHARED)
GATES = ("DRAPartitionableDevices", "DRADeviceTaints", "DRAConsumableCapacity")
TAINT = Taint("bad", "", "NoSchedule")
TOLERATION = Toleration("bad", "Exists")


def _classes():
    own = [DeviceClassFacts(each, (f"device.driver == '{each}'",)) for each in DRIVERS]
    big = f"device.driver == '{GPU}' && device.attributes['{GPU}'].model == 'big'"
    return (*own, DeviceClassFacts("big", (big,)), DeviceClassFacts("any"))


def _gpu(draw, number, gates):
    attributes = (
        AttributeFacts("model", "string", draw.choice(("big", "small"))),
        AttributeFacts("numa", "int", draw.choice((0, 1))),
    )
    is_tainted = "DRADeviceTaints" in gates and draw.random() < 0.2
    return DeviceFacts(f"g{number}", attributes, taints=(TAINT,) if is_tainted else ())


def _on_node(draw, host, gates):
    """The slices of a node."""
    here = Placement(node_name=host)
    gpus = tuple(_gpu(draw, number, gates) for number in range(draw.randint(0, 4)))
    yield SliceFacts(f"{host}-gpu", GPU, host, 1, 1, here, devices=gpus)
    if draw.random() < 0.4:
        parts = tuple(
            DeviceFacts(f"p{number}", consumes=(CounterSetFacts("slots", (("all", str(size)),)),))
            for number, size in enumerate((4, 2, 2, 1, 1))
        )
        counters = (CounterSetFacts("slots", (("all", "4"),)),)
        yield SliceFacts(
            f"{host}-slots", SLOTS, host, 1, 1, here, devices=parts, shared_counters=counters
        )
    if draw.random() < 0.4:
        policy = draw.choice((None, RequestPolicy("2"), RequestPolicy("1", ("1", "4"))))
        capacity = DeviceCapacity("bandwidth", "8", policy)
        several = DeviceFacts("s0", capacity=(capacity,), allows_several=True)
        yield SliceFacts(f"{host}-shared", SHARED, host, 1, 1, here, devices=(several,))


def _across(draw):
    """The slices of devices that several nodes reach."""
    nics = tuple(DeviceFacts(f"n{number}") for number in range(draw.randint(1, 3)))
    yield SliceFacts("far", NIC, "far", 1, 1, Placement(all_nodes=True), devices=nics)
    zone = term(require(ZONE, "In", draw.choice(ZONES)))
    nics = tuple(DeviceFacts(f"z{number}") for number in range(draw.randint(1, 3)))
    yield SliceFacts("near", NIC, "near", 1, 1, Placement(terms=(zone,)), devices=nics)


def _request(draw, gates, name="r"):
    """One request: mostly for a device or two of a class."""
    kinds = [GPU, GPU, NIC, "big", "any"]
    kinds += [SLOTS] * 2 if "DRAPartitionableDevices" in gates else []
    kinds += [SHARED] * 2 if "DRAConsumableCapacity" in gates else []
    kind = draw.choice(kinds)
    how = draw.random()
    if how < 0.1:
        return DeviceRequest(name, GPU, mode=ALL_DEVICES, count=0)
    if how < 0.2:
        forms = ExactRequest("big", "big"), ExactRequest("two", GPU, count=2)
        return DeviceRequest(name, alternatives=forms)
    if how < 0.25:
        return DeviceRequest(name, GPU, has_admin_access=True)
    if kind == SHARED:
        wanted = draw.choice((None, (("bandwidth", draw.choice(("1", "3", "4"))),)))
        return DeviceRequest(name, SHARED, capacity=wanted)
    tolerations = (TOLERATION,) if draw.random() < 0.3 else ()
    count = draw.choice((1, 1, 2)) if kind in (GPU, SLOTS) else 1
    return DeviceRequest(name, kind, count=count, tolerations=tolerations)


def _spec(draw, gates):
    if draw.random() < 0.15:
        same = DeviceConstraint(("r",), match_attribute=f"{GPU}/numa")
        return ClaimSpec((DeviceRequest("r", GPU, count=2),), (same,))
    if draw.random() < 0.15:
        return ClaimSpec((_request(draw, gates), _request(draw, gates, "q")))
    return ClaimSpec((_request(draw, gates),))


def _shared(draw, gates):
    """Claims that several pods name; of one, the allocation is out of reach of every node."""
    for number in range(draw.randint(1, 3)):
        name = f"shared{number}"
        yield DeviceClaimFacts("default", name, f"c-{name}", _spec(draw, gates))
    away = Allocation(node_terms=(term(require(HOSTNAME, "In", "away")),))
    spec = ClaimSpec((DeviceRequest("r", GPU),))
    if draw.random() < 0.5:
        yield DeviceClaimFacts("default", "away", "c-away", spec, allocation=away)


class _Fleet:
    """templates: specs of which each pod with a template gets a claim of its own."""

    def __init__(self, draw, hosts):
        self._draw = draw
        gates = self.gates = tuple(each for each in GATES if draw.random() < 0.6)
        of_nodes = [each for host in hosts for each in _on_node(draw, host, gates)]
        self._slices = (*of_nodes, *_across(draw))
        self._claims = [*_shared(draw, gates)]
        self._sharing = [each.name for each in self._claims]
        self._templates = [_spec(draw, gates) for _ in range(draw.randint(1, 3))]

    def facts(self):
        return DevicesFacts(self._slices, _classes(), tuple(self._claims))

    def claiming(self, who, facts):
        """The facts of a pod with claims: of a template, shared, or both."""
        draw, claims = self._draw, []
        how = draw.random()
        for number in range(0 if how < 0.3 else draw.choice((1, 1, 1, 2))):
            claims.append(self._made(who, number))
        if how < 0.3 or draw.random() < 0.1:
            name = draw.choice(self._sharing)
            claims.append(PodClaim(name, claim_name=name))
        as_pod = PodReference(who.uid, who.name)
        return replace(facts, device_claims=tuple(claims), claims_as=as_pod)

    def _made(self, who, number):
        draw, name = self._draw, f"{who.name}-t{number}"
        how = draw.random()
        if how < 0.03:
            return PodClaim(f"t{number}", template_name="t", generated=None)
        self._claims.append(
            DeviceClaimFacts(
                *(who.namespace, name, f"c-{name}", draw.choice(self._templates)),
                owner_uid=who.uid if how > 0.06 else "uid-other",
                owner_kind="Pod",
            )
        )
        return PodClaim(f"t{number}", template_name="t", generated=name)


def with_devices(scenario, seed):
    """The scenario with devices, and claims of some of its pods and gangs and of further pods."""
    draw = random.Random(f"devices {seed}")
    hosts = [*scenario.nodes, *(each for wave in scenario.waves for each in wave.nodes)]
    fleet = _Fleet(draw, dict.fromkeys(each.name for each in hosts))
    share = draw.choice((0.0, 0.2, 0.5))
    groups = {facts.pod_group for _, facts in scenario.pods if facts.pod_group is not None}
    groups = {each for each in sorted(groups, key=str) if draw.random() < 0.5}

    def perhaps(who, facts):
        wanted = facts.pod_group in groups if facts.pod_group else draw.random() < share
        return (who, fleet.claiming(who, facts) if wanted else facts)

    waves = [
        replace(wave, pods=tuple(perhaps(*each) for each in wave.pods)) for wave in scenario.waves
    ]
    names = [f"d{number}" for number in range(draw.randint(8, 24))]
    more = [PodIdentity(f"uid-{name}", "default", name) for name in names]
    pods = [(who, fleet.claiming(who, _bare(draw))) for who in more]
    waves += _waves(draw, pods)
    plan = scenario.plan
    settings = plan.settings.model_copy(update={"feature_gates": dict.fromkeys(fleet.gates, True)})
    cluster = replace(plan.cluster, devices=fleet.facts())
    return replace(
        scenario,
        plan=replace(plan, settings=settings, cluster=cluster),
        waves=tuple(sorted(waves, key=lambda wave: wave.at_s)),
        kinds=(*scenario.kinds, "devices"),
    )


def without_claims(scenario):
    """The scenario with the same pods, none of which requests devices."""
    waves = (
        replace(wave, pods=tuple((who, without_devices(facts)) for who, facts in wave.pods))
        for wave in scenario.waves
    )
    return replace(scenario, waves=tuple(waves))


def without_devices(facts):
    """The facts of a pod without claims of devices, and without the resources that need one."""
    extended = {each.resource for each in facts.extended_requests}
    requests = tuple(each for each in facts.requests if each[0] not in extended)
    return replace(facts, requests=requests, device_claims=(), claims_as=None)


def as_consumer(who, facts):
    """The facts of a pod that consumes the claims of another one; those made for it are not its."""
    as_pod = PodReference(who.uid, who.name) if facts.device_claims else None
    return replace(facts, claims_as=as_pod)


def _bare(draw):
    priority = draw.choice((0, 0, 0, 10))
    return pod(cpu=draw.choice((10, 50, 100)), priority=priority)


def _waves(draw, pods):
    """The pods in two waves; some are deleted, so that others get their devices."""
    cut = draw.randint(0, len(pods))
    yield Wave(0.0, (), tuple(pods[:cut]))
    yield Wave(draw.uniform(0.1, 4.0), (), tuple(pods[cut:]))
    for _ in range(draw.choice((0, 1, 3))):
        gone = draw.sample(pods, min(len(pods), draw.randint(1, 4)))
        yield Wave(draw.uniform(4.2, 7.0), gone=tuple(who.uid for who, _ in gone))
