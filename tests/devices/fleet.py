"""A small fleet with devices: facts of nodes, slices, claims and pods."""

from roadstead.facts.cluster import ClusterFacts
from roadstead.facts.devices import (
    ClaimSpec,
    DeviceClaimFacts,
    DeviceClassFacts,
    DeviceFacts,
    DeviceRequest,
    DevicesFacts,
    Placement,
    SliceFacts,
)
from roadstead.facts.pod import PodClaim, PodReference
from tests.builders import node, pod

DRIVER = "gpu.example.com"
CLASS = DeviceClassFacts("gpu", (f"device.driver == '{DRIVER}'",))


def slice_of(name, *devices, **fields):
    """Return the only slice of a node's pool."""
    facts = tuple(DeviceFacts(each) for each in devices)
    return SliceFacts(name, DRIVER, name, 1, 1, Placement(node_name=name), devices=facts, **fields)


def claim(name, count=1, **fields):
    spec = ClaimSpec((DeviceRequest("r", "gpu", count=count),))
    fields = {"uid": f"uid-{name}", "spec": spec, **fields}
    return DeviceClaimFacts("default", name, **fields)


def owned(name, uid, **fields):
    """Return the claim that was made from a template for a pod."""
    return claim(name, owner_uid=uid, owner_kind="Pod", **fields)


def using(uid, *names, **fields):
    """Return the facts of a pod that names claims."""
    claims = tuple(PodClaim(name, claim_name=name) for name in names)
    return pod(device_claims=claims, claims_as=PodReference(uid, uid), **fields)


def with_template(uid, generated, **fields):
    """Return the facts of a pod with a claim from a template; generated: None if not made."""
    claims = (PodClaim("g", template_name="t", generated=generated),)
    return pod(device_claims=claims, claims_as=PodReference(uid, uid), **fields)


def devices(*claims, slices=None):
    slices = (slice_of("n1", "d0", "d1"),) if slices is None else slices
    return DevicesFacts(tuple(slices), (CLASS,), tuple(claims))


def cluster(*claims, slices=None):
    return ClusterFacts(devices=devices(*claims, slices=slices))


N1, N2 = node("n1"), node("n2")
